"""Which paths nobody is to read any more after a redaction."""

from engramfs.history.recursive_redaction import redact_recursively
from engramfs.history.redacted_names import redacted_names
from engramfs.history.redaction import redact
from engramfs.history.redaction_rows import Removed
from engramfs.model.author import Author

from .conftest import Book

PERSON = Author("person", actor="root")


def names(book: Book, asked: bytes, *removed: Removed) -> set[bytes]:
    with book.repository.engine.reading() as reader:
        return redacted_names(reader, book.store, asked, removed)


def test_they_are_all_that_the_content_had_but_for_what_the_head_has(book: Book) -> None:
    book.write(a=b"secret", d__b=b"secret", c=b"secret")
    book.rename("d", "e")
    book.write(a=b"clean")
    book.remove("e", "c")
    done = redact(book.repository, book.store.name, 1, b"a", PERSON, "a reason", 5, everywhere=True)
    assert names(book, b"a", done) == {b"c", b"d/b", b"e/b"}


def test_of_a_directory_its_name_says_it_all(book: Book) -> None:
    book.write(top__secret__a=b"1", top__secret__deep__b=b"2", other=b"3")
    book.remove("top/secret")
    done = redact_recursively(book.repository, book.store.name, 1, b"top/secret", PERSON, "a reason", 5)
    assert names(book, b"top/secret", *done) == {b"top/secret"}
