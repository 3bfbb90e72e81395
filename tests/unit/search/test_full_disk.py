"""While the disk is full, what was indexed before is found; the rest is once there is space again."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engramfs.errors import Full
from engramfs.history.repository import Repository
from engramfs.mount import syscalls
from engramfs.search import opened

from .conftest import WORDS, Book, Query, paths, put


@pytest.fixture
def small_disk(private_namespace: None, tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB, mounted: the library of the index follows no path through a descriptor."""
    disk = tmp_path / "disk"
    disk.mkdir()
    syscalls.mount("none", str(disk), "tmpfs", 0, "size=2m")
    yield disk
    syscalls.umount2(str(disk))


def fill(disk: Path) -> Path:
    found = os.statvfs(disk)
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(found.f_bavail * found.f_frsize))
    return ballast


def test_a_full_disk_takes_nothing_away(small_disk: Path, book: Book, repository: Repository) -> None:
    search = opened(str(small_disk), repository.engine, WORDS)
    put(book, {"a": b"oolong"})
    assert paths(search.find(Query("oolong"))) == ["a"]
    ballast = fill(small_disk)
    put(book, {"b": b"oolong"})
    assert paths(search.find(Query("oolong"))) == ["a"]
    assert search.notice is not None
    assert "no space left" in search.notice
    with pytest.raises(Full, match="free some"):
        search.catch_up(1)
    ballast.unlink()
    assert set(paths(search.find(Query("oolong")))) == {"a", "b"}
    assert not search.notice
    search.close()
