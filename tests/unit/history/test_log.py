"""Versions, newest first: as values, as JSON and as text."""

import hashlib
import json
from datetime import datetime

import pytest

from engramfs.errors import NotFound
from engramfs.history import log
from engramfs.history.imported import subject
from engramfs.model.author import Author
from engramfs.model.entry import Kind
from engramfs.model.times import parse_time
from engramfs.model.version import Change, ChangeKind

from .conftest import SECOND, Book, Shelf, replace


def numbers(book: Book, path: bytes) -> list[int]:
    with book.repository.engine.reading() as reader:
        return list(log.numbers_touching(reader, book.store, path, book.head().number))


def test_versions_come_newest_first_and_stop_at_the_limit(shelf: Shelf) -> None:
    before, book, after = shelf("contexts/a"), shelf("contexts/b"), shelf("contexts/c")
    for one in (before, book, after, book, after, book):
        one.write_paths({b"f": b"%d" % one.clock})
    with book.repository.engine.reading() as reader:

        def found(newest: int | None = None, limit: int | None = None) -> list[int]:
            return [one.number for one in log.versions(reader, book.store.id, newest=newest, limit=limit)]

        assert found() == [3, 2, 1]
        assert found(limit=2) == [3, 2]
        assert found(newest=2) == [2, 1]
        assert found(newest=2, limit=1) == [2]
        assert found(newest=99) == [3, 2, 1]
        assert found(newest=0) == found(limit=0) == []


def test_a_store_without_versions_has_an_empty_log(book: Book) -> None:
    with book.repository.engine.reading() as reader:
        assert list(log.versions(reader, book.store.id)) == []
        assert log.at_time(reader, book.store.id, 1 << 62) == 0


def test_one_version_by_number(book: Book) -> None:
    version = book.write(a=b"1")
    with book.repository.engine.reading() as reader:
        assert log.version(reader, book.store, 1) == version
        for number in (0, 2, -1, 1 << 64):
            with pytest.raises(NotFound, match=f"has no version {number}; its newest is 1"):
                log.version(reader, book.store, number)


def test_touching_finds_a_file_and_everything_below_a_directory(book: Book) -> None:
    book.write(a__x=b"1")
    book.write(a__xy=b"1", b=b"1")
    book.write(b=b"2")
    book.remove("a/x")
    assert numbers(book, b"a/x") == [4, 1]
    assert numbers(book, b"a") == [4, 2, 1]
    assert numbers(book, b"b") == [3, 2]
    assert numbers(book, b"") == [4, 3, 2, 1]
    assert numbers(book, b"a/x/deeper") == numbers(book, b"nothing") == []


def test_a_renamed_directory_touches_both_names_and_what_is_below(book: Book) -> None:
    book.write(a__x=b"1")
    book.rename("a", "b")
    for path, found in ((b"a", [2, 1]), (b"a/x", [2, 1]), (b"b", [2]), (b"b/x", [2]), (b"b/x/y", [2])):
        assert numbers(book, path) == found


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_at_time_is_the_newest_version_that_is_not_later(book: Book, count: int) -> None:
    times = [book.write_paths({b"f": b"%d" % number}).time for number in range(count)]
    with book.repository.engine.reading() as reader:
        for number, time in enumerate(times, start=1):
            assert log.at_time(reader, book.store.id, time) == number
            assert log.at_time(reader, book.store.id, time - 1) == number - 1
        assert log.at_time(reader, book.store.id, 0) == 0
        assert log.at_time(reader, book.store.id, times[-1] + SECOND) == count


def test_at_time_finds_the_last_of_versions_with_one_time(book: Book) -> None:
    first = book.write(a=b"1")
    for content in (b"2", b"3"):
        book.clock -= 10 * SECOND
        book.write(a=content)
    with book.repository.engine.reading() as reader:
        assert log.at_time(reader, book.store.id, first.time) == 3


def test_the_json_of_a_version_has_the_documented_shape(book: Book) -> None:
    book.write(d__ü=b"one")
    version = book.write(d__ü=b"two!")
    with book.repository.engine.reading() as reader:
        described = log.describe(version, log.changes(reader, book.store.id, 2))
    assert described == {
        "number": 2,
        "time": "2023-11-14T22:13:22.000000000Z",
        "author": {"kind": "agent", "agent": "digest", "actor": "alice", "tenant": None, "session": "s1"},
        "via": "fs",
        "message": "",
        "flags": [],
        "digest": version.digest.hex(),
        "changes": [
            {
                "op": "modified",
                "path": "d/ü",
                "from_path": None,
                "sha256": hashlib.sha256(b"two!").hexdigest(),
                "size": 4,
            }
        ],
    }
    json.dumps(described)


def test_the_time_in_the_log_names_its_version_exactly(book: Book) -> None:
    book.clock += 123_456_789
    version = book.write(a=b"1")
    with book.repository.engine.reading() as reader:
        text = log.describe(version, [])["time"]
        assert log.at_time(reader, book.store.id, parse_time(text)) == 1
    assert datetime.fromisoformat(text).utcoffset() is not None


def test_bytes_that_are_not_utf8_survive_json() -> None:
    change = Change(ChangeKind.RENAMED, b"a/\xff", Kind.FILE, 0o644, 1, b"\1" * 32, 2, from_path=b"\xfe")
    described = log.describe_change(change)
    assert described["path"].encode("utf-8", "surrogateescape") == b"a/\xff"
    assert described["from_path"].encode("utf-8", "surrogateescape") == b"\xfe"
    assert json.loads(json.dumps(described)) == described


def test_of_a_message_a_line_shows_the_first_and_of_a_long_one_its_beginning(book: Book) -> None:
    version = book.write(a=b"1")
    assert subject(replace(version, message="\nfirst\n\nmore")) == "first"
    assert subject(replace(version, message="x" * 200)) == "x" * 200
    assert subject(replace(version, message="x" * 201)) == "x" * 199 + "…"


def test_a_line_says_who_when_what_and_how_many(book: Book) -> None:
    version = replace(
        book.write(a=b"1"), message="first\nsecond \x1b[31m", flags=("concurrent",), overwrites=(7,)
    )
    assert log.line(version) == (
        "     1  2023-11-14T22:13:21.000000000Z  digest for alice  [concurrent, overwrites 7]  1 change"
        "  first\\nsecond \\x1b[31m"
    )
    assert log.line(
        replace(version, author=Author("system"), flags=(), overwrites=(), change_count=0, message="")
    ) == ("     1  2023-11-14T22:13:21.000000000Z  engramfs  0 changes")
