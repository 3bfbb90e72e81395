"""When two entries are the same, to a person and to the log."""

import stat

import msgspec
import pytest

from engramfs.model.entry import EMPTY_DIGEST, Entry, Kind

replace = msgspec.structs.replace
FILE = Entry(5, Kind.FILE, 0o640, 3, 10, 11, b"\x01" * 32, xattrs=((b"user.k", b"v"),), origin=5)
DIRECTORY = Entry(6, Kind.DIRECTORY, 0o755, 0, 10, 11, origin=6)


def test_times_are_no_difference() -> None:
    later = replace(FILE, mtime=99, ctime=99, atime=99)
    assert FILE.looks_like(later)
    assert FILE.same_but_for_times(later)


@pytest.mark.parametrize(
    "change",
    [
        {"mode": 0o600},
        {"digest": EMPTY_DIGEST},
        {"size": 4},
        {"kind": Kind.SYMLINK},
        {"target": b"x"},
        {"xattrs": ()},
    ],
)
def test_what_a_person_would_see_is_a_difference(change: dict[str, object]) -> None:
    assert not FILE.looks_like(replace(FILE, **change))
    assert not FILE.same_but_for_times(replace(FILE, **change))


@pytest.mark.parametrize("change", [{"node": 9}, {"origin": 9}, {"links": 2}])
def test_the_log_knows_of_more_than_a_person_sees(change: dict[str, object]) -> None:
    assert FILE.looks_like(replace(FILE, **change))
    assert not FILE.same_but_for_times(replace(FILE, **change))


def test_another_directory_of_that_name_is_another() -> None:
    assert not DIRECTORY.looks_like(replace(DIRECTORY, node=9))


def test_nothing_is_like_nothing() -> None:
    assert not FILE.looks_like(None)
    assert not FILE.same_but_for_times(None)


@pytest.mark.parametrize(
    ("kind", "bits"),
    [(Kind.FILE, stat.S_IFREG), (Kind.DIRECTORY, stat.S_IFDIR), (Kind.SYMLINK, stat.S_IFLNK)],
)
def test_the_mode_of_stat_holds_the_kind(kind: Kind, bits: int) -> None:
    assert replace(FILE, kind=kind).st_mode == bits | 0o640
