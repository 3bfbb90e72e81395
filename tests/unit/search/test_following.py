"""The index follows the log: what is found is what the heads hold now."""

import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from engramfs.history import catalog
from engramfs.history.repository import Repository
from engramfs.model.author import Author
from engramfs.model.redaction import Redaction
from engramfs.search.index_directory import IndexDirectory
from engramfs.search.query import Query
from engramfs.search.searching import Search
from engramfs.storage import keys
from engramfs.storage.protocol import Table, Writer

from .conftest import WORDS, Book, Find, Opened, Shelf, paths, put, record


def test_a_new_file_is_found_by_what_it_says_and_by_its_name(book: Book, find: Find) -> None:
    book.write(notes__tea__md=b"Oolong in the morning.", empty=b"")
    assert paths(find("oolong")) == ["notes/tea/md"]
    assert paths(find("empty")) == ["empty"]
    (found,) = find("mornings")
    assert (found.line, found.snippet, found.version) == (1, "Oolong in the morning.", 1)
    assert found.matched == ("keyword",)


def test_an_edit_by_hand_is_followed(book: Book, find: Find) -> None:
    put(book, {"records/taste/a.md": record("Likes tea.", agentId="x")})
    assert paths(find("tea", agent="x")) == ["records/taste/a.md"]
    put(book, {"records/taste/a.md": record("Likes coffee.", agentId="y")})
    assert find("tea") == []
    assert find("coffee", agent="x") == []
    (found,) = find("coffee", agent="y", category="taste")
    assert (found.line, found.version) == (4, 2)


def test_a_deleted_file_is_not_found(book: Book, find: Find) -> None:
    book.write(a=b"oolong", b__c=b"oolong", b__d=b"oolong")
    book.remove("b")
    assert paths(find("oolong")) == ["a"]


def test_renames_are_followed_of_files_and_directories(book: Book, find: Find) -> None:
    book.write(a=b"oolong", old__deep__b=b"sencha", old__deep__c=b"matcha", older=b"x")
    assert len(find("oolong sencha matcha")) == 3
    book.rename("a", "z")
    book.rename("old", "new")
    assert paths(find("oolong")) == ["z"]
    assert paths(find("sencha")) == ["new/deep/b"]
    assert {one.path for one in find("oolong sencha matcha")} == {"z", "new/deep/b", "new/deep/c"}


def test_every_name_of_a_file_is_found_and_followed(book: Book, find: Find) -> None:
    book.write(a=b"oolong")
    book.link("a", "b")
    assert set(paths(find("oolong"))) == {"a", "b"}


def test_a_deleted_store_is_forgotten(book: Book, shelf: Shelf, find: Find) -> None:
    other = shelf("memories/bob")
    book.write(a=b"oolong")
    other.write(a=b"oolong")
    assert len(find("oolong")) == 2
    other.repository.transact(lambda writer: catalog.delete(writer, other.store))
    assert [one.store for one in find("oolong")] == [book.store.name]
    shelf("memories/bob").write(b=b"sencha")
    assert {(one.store, one.path) for one in find("oolong sencha")} == {
        (book.store.name, "a"),
        ("memories/bob", "b"),
    }


def test_a_fork_is_never_indexed(book: Book, shelf: Shelf, find: Find) -> None:
    fork = shelf("fork")
    book.write(a=b"x")

    def hide(writer: Writer) -> None:
        catalog.put(writer, msgspec.structs.replace(fork.store, base=book.store.id))
        writer.delete(Table.NAMES, b"fork")

    fork.repository.transact(hide)
    fork.write(a=b"oolong")
    assert find("oolong") == []


def test_redaction_makes_the_index_look_again(book: Book, find: Find, search: Search) -> None:
    """Even where the changes of the redacted versions no longer say which path it was."""
    book.write(a=b"oolong", b=b"sencha")
    assert len(find("oolong sencha")) == 2
    version = book.remove("a")
    redaction = Redaction(book.clock, Author("person"), "private", 1)

    def redact(writer: Writer) -> None:
        writer.delete(Table.CHANGES, keys.changes(book.store.id, version.number, 0))
        writer.put(Table.REDACTED, keys.version(book.store.id, 1), msgspec.msgpack.encode([redaction]))

    book.repository.transact(redact)
    assert paths(find("oolong sencha")) == ["b"]


def test_a_hit_is_not_shown_once_the_head_is_another(
    book: Book, search: Search, find: Find, repository: Repository
) -> None:
    """Though another process holds the lock, so that the index cannot follow."""
    book.write(a=b"oolong", b=b"oolong")
    assert len(find("oolong")) == 2
    book.write(a=b"sencha")
    book.remove("b")
    with IndexDirectory(repository.state).locked(0) as is_ours:
        assert is_ours
        assert find("oolong", patience=0.0) == []
        assert find("sencha", patience=0.0) == []
    assert paths(find("sencha")) == ["a"]


def test_the_position_is_that_of_the_feed(book: Book, search: Search) -> None:
    assert search.position() == 0
    book.write(a=b"x")
    book.write(a=b"y")
    assert search.wait(2, timeout=10)
    assert search.position() == 2
    assert not search.wait(3, timeout=0.1)


def test_what_is_no_text_is_skipped_once(book: Book, find: Find, search: Search) -> None:
    book.write(binary=b"\0\1oolong", text=b"oolong", large=b"oolong " * (1 << 18))
    assert paths(find("oolong")) == ["text"]
    assert find("binary large") == []


def test_one_search_sees_what_another_indexed(book: Book, open_search: Opened, find: Find) -> None:
    other = open_search(WORDS)
    for number in range(5):
        put(book, {f"f{number}": b"oolong"})
        assert len(other.find(Query("oolong"))) == number + 1
        assert len(find("oolong")) == number + 1


@pytest.mark.parametrize("text", ["", "   ", "?!", "的", "zzz", "a" * 5000, 'x" OR y:z (^', "\0"])
def test_any_text_may_be_asked(book: Book, find: Find, text: str) -> None:
    book.write(a=b"oolong")
    assert find(text) == []


def test_who_searches_while_another_makes_the_first_index_waits_for_it(
    repository: Repository, book: Book, search: Search
) -> None:
    book.write(a=b"oolong")
    with ThreadPoolExecutor(1) as pool:
        with IndexDirectory(repository.state).locked(1) as is_ours:
            assert is_ours
            finding = pool.submit(search.find, Query("oolong", patience=0.0))
            time.sleep(0.1)
            assert not finding.done()
        assert paths(finding.result(30)) == ["a"]
