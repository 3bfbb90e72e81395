"""Whatever is wrong with the index, it is made anew from the log, and nothing is lost by that."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from engramfs.errors import Unavailable
from engramfs.history import log
from engramfs.storage import keys
from engramfs.storage.protocol import Table, Writer

from .conftest import WORDS, Book, Find, Opened, Query, paths


def generation(state: Path) -> Path:
    (only,) = [path for path in (state / "search").iterdir() if path.name.isdecimal()]
    return only


def files(state: Path, suffix: str = "") -> list[Path]:
    keywords = generation(state) / "keywords"
    return [path for path in keywords.iterdir() if path.name.endswith(suffix) and path.stat().st_size]


@pytest.fixture
def indexed(book: Book, open_search: Opened) -> Book:
    book.write(a=b"oolong", b=b"sencha")
    search = open_search(WORDS)
    assert len(search.find(Query("oolong sencha"))) == 2
    search.close()
    return book


@pytest.mark.parametrize("suffix", ["meta.json", ".term", ".idx", ".store", ".fast"])
@pytest.mark.parametrize("how", ["missing", "empty", "cut", "flipped"])
def test_a_damaged_file_of_the_keyword_index(
    indexed: Book, open_search: Opened, state: Path, suffix: str, how: str
) -> None:
    for path in files(state, suffix):
        content = path.read_bytes()
        damaged = {
            "empty": b"",
            "cut": content[: len(content) // 2],
            "flipped": bytes(255 - byte for byte in content),
        }
        path.unlink()
        if how != "missing":
            path.write_bytes(damaged[how])
    search = open_search(WORDS)
    assert paths(search.find(Query("oolong"))) == ["a"]
    indexed.write(c=b"oolong")
    assert set(paths(search.find(Query("oolong")))) == {"a", "c"}


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"format": 0, "generation": 1}', b'{"format": 1, "generation": 77}']
)
def test_a_pointer_to_nothing(indexed: Book, open_search: Opened, state: Path, content: bytes) -> None:
    (state / "search" / "current").write_bytes(content)
    assert paths(open_search(WORDS).find(Query("oolong"))) == ["a"]


def test_a_directory_that_is_removed_under_an_open_search(book: Book, find: Find, state: Path) -> None:
    book.write(a=b"oolong")
    assert paths(find("oolong")) == ["a"]
    shutil.rmtree(state / "search")
    assert paths(find("oolong")) == ["a"]


def test_another_log_in_the_place_of_the_one_that_was_indexed(
    indexed: Book, open_search: Opened, state: Path
) -> None:
    """As when a backup is put back: the same numbers, other versions."""

    def change_digest(writer: Writer) -> None:
        key = keys.version(indexed.store.id, 1)
        value = writer.get(Table.VERSIONS, key)
        assert value is not None
        version = msgspec.structs.replace(log.decode_version(value), digest=b"another")
        writer.put(Table.VERSIONS, key, msgspec.msgpack.encode(version))

    before = generation(state).name
    indexed.repository.transact(change_digest)
    assert len(open_search(WORDS).find(Query("oolong sencha"))) == 2
    assert generation(state).name != before


def test_what_a_killed_process_left_beside_the_index_is_removed(
    indexed: Book, open_search: Opened, state: Path
) -> None:
    left = state / "search" / "99"
    (left / "keywords").mkdir(parents=True)
    assert paths(open_search(WORDS).find(Query("oolong"))) == ["a"]
    assert not left.exists()


def test_a_place_that_cannot_be_written_is_named(book: Book, open_search: Opened, state: Path) -> None:
    book.write(a=b"oolong")
    (state / "search").write_bytes(b"")
    with pytest.raises(Unavailable, match="search"):
        open_search(WORDS).find(Query("oolong"))
    os.unlink(state / "search")
