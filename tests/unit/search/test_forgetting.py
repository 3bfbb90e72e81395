"""Text that is gone from the log's heads is gone from the index's files; a test greps them."""

import os
from pathlib import Path

import msgspec

from engramfs.history import catalog
from engramfs.model.author import Author
from engramfs.model.redaction import Redaction
from engramfs.search.searching import Search
from engramfs.storage import keys
from engramfs.storage.protocol import Table, Writer

from .conftest import Book, Find, Shelf, paths, put

SECRET = "xylophonequark"


def in_files(state: Path, text: str) -> bool:
    """Whether a term is in any file of the index, read as bytes or as a keyword index."""
    for directory, _, names in os.walk(state / "search"):
        for name in names:
            if text.encode() in Path(directory, name).read_bytes():
                return True
    return False


def test_the_secret_would_be_seen(book: Book, find: Find, state: Path) -> None:
    book.write(a=SECRET.encode())
    assert find(SECRET)
    assert in_files(state, SECRET)


def test_a_deleted_file_leaves_nothing(book: Book, find: Find, state: Path) -> None:
    book.write(a=SECRET.encode(), b=b"oolong")
    assert find(SECRET)
    book.remove("a")
    assert find(SECRET) == []
    assert not in_files(state, SECRET)
    assert paths(find("oolong")) == ["b"]


def test_a_deleted_store_leaves_nothing(book: Book, shelf: Shelf, find: Find, state: Path) -> None:
    other = shelf("memories/bob")
    other.write(a=SECRET.encode())
    book.write(b=b"oolong")
    assert find(SECRET)
    other.repository.transact(lambda writer: catalog.delete(writer, other.store))
    assert find(SECRET) == []
    assert not in_files(state, SECRET)


def test_a_redacted_version_leaves_nothing(book: Book, find: Find, state: Path) -> None:
    """The file was written anew before, as redaction demands; that alone need not rewrite the index."""
    book.write(a=SECRET.encode(), b=b"oolong")
    assert find(SECRET)
    book.write(a=b"sencha")
    assert paths(find("sencha")) == ["a"]
    redaction = Redaction(book.clock, Author("person"), "a secret", 1)

    def redact(writer: Writer) -> None:
        writer.put(Table.REDACTED, keys.version(book.store.id, 1), msgspec.msgpack.encode([redaction]))

    book.repository.transact(redact)
    assert find(SECRET) == []
    assert not in_files(state, SECRET)
    assert set(paths(find("sencha oolong"))) == {"a", "b"}


def test_a_collected_version_leaves_nothing(book: Book, find: Find, state: Path) -> None:
    book.write(a=SECRET.encode())
    assert find(SECRET)
    book.write(a=b"sencha")

    def collect(writer: Writer) -> None:
        head = catalog.head(writer, book.store.id)
        catalog.put_head(writer, book.store.id, msgspec.structs.replace(head, oldest=2))

    assert paths(find("sencha")) == ["a"]
    book.repository.transact(collect)
    find("sencha")
    assert not in_files(state, SECRET)


def test_much_that_was_replaced_is_thrown_out(book: Book, search: Search, find: Find, state: Path) -> None:
    for number in range(4):
        put(book, {f"f{each}": f"word{number} tea {each}".encode() for each in range(150)})
        assert len(find("tea", limit=500)) == 150
    assert not in_files(state, "word0")
