"""The inodes with unrecorded bytes are known to the next worker, however many there are."""

import contextlib
from pathlib import Path

from engramfs.vfs.unrecorded import Unrecorded


def left(path: Path) -> set[int]:
    with contextlib.closing(Unrecorded(str(path))) as unrecorded:
        return set(unrecorded)


def test_what_was_added_and_not_discarded_is_left(tmp_path: Path) -> None:
    path = tmp_path / "unrecorded"
    unrecorded = Unrecorded(str(path))
    for inode in range(1, 3000):
        unrecorded.add(inode << 40 | 7)
    for inode in range(1, 3000, 2):
        unrecorded.discard(inode << 40 | 7)
    unrecorded.add(2 << 40 | 7)
    unrecorded.discard(5)
    assert left(path) == {inode << 40 | 7 for inode in range(2, 3000, 2)}
    unrecorded.close()


def test_losses_are_counted_and_outlive_what_is_written_after_them(tmp_path: Path) -> None:
    path, inode = tmp_path / "unrecorded", 7 << 40 | 5
    for losses in (1, 2, 3, 3):
        with contextlib.closing(Unrecorded(str(path))) as unrecorded:
            unrecorded.add(inode)
            unrecorded.lose(inode)
            assert (list(unrecorded), unrecorded.losses(inode)) == ([], losses)
    with contextlib.closing(Unrecorded(str(path))) as unrecorded:
        unrecorded.add(inode)
        assert (list(unrecorded), unrecorded.losses(inode)) == ([inode], 3)
        unrecorded.discard(inode)
        assert (list(unrecorded), unrecorded.losses(inode)) == ([], 3)
        unrecorded.end(7)
    with contextlib.closing(Unrecorded(str(path))) as unrecorded:
        assert unrecorded.losses(inode) == 0


def test_places_are_used_again(tmp_path: Path) -> None:
    path = tmp_path / "unrecorded"
    with contextlib.closing(Unrecorded(str(path))) as unrecorded:
        size = path.stat().st_size
        for inode in range(1, 100_000):
            unrecorded.add(inode)
            unrecorded.discard(inode)
    assert path.stat().st_size == size
    assert left(path) == set()


def test_without_a_path_it_works_alike() -> None:
    unrecorded = Unrecorded()
    for inode in range(1, 2000):
        unrecorded.add(inode)
    assert set(unrecorded) == set(range(1, 2000))
    unrecorded.close()
