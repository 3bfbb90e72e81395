"""Names, over a real mount."""

import errno
import time
from collections.abc import Callable
from functools import partial

import pytest

from ..harness.daemon import Place
from ..harness.inside import Inside


def test_names_are_any_bytes_up_to_255(place: Place) -> None:
    names = [bytes([byte]) for byte in range(1, 256) if byte not in b"/.~"]
    names += [b"n" * 255, b"\xff" * 255, b"...", b"a\nb", "ü€\U0001f600".encode(), b"-rf *"]
    top = place.state.encode()
    for name in names:
        place.inside.call("write", top + b"/" + name, name)
    assert place.inside.call("names", top) == sorted(names)
    for name in names:
        assert place.inside.call("read", top + b"/" + name) == name
    with pytest.raises(OSError, match=f"Errno {errno.ENAMETOOLONG}"):
        place.inside.call("write", top + b"/" + b"n" * 256, b"")
    place.daemon.barrier()
    assert place.inside.call("names", top + b"/.versions/latest") == sorted(names)


def test_statvfs_says_how_long_names_may_be(place: Place) -> None:
    assert place.inside.call("os.statvfs", place.state).f_namemax == 255


def test_renaming_with_flags(place: Place) -> None:
    place.write("a", b"a")
    place.write("b", b"b")
    exchange = "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); "
    exchange += "os._exit(ctypes.get_errno() if libc.renameat2(-100, b'%s', -100, b'%s', %d) else 0)"

    def rename(source: str, target: str, flags: int) -> int:
        script = exchange % (place.path(source), place.path(target), flags)
        return place.inside.run("python3", "-c", script).code

    assert rename("a", "b", 1) == errno.EEXIST
    assert rename("a", "c", 1) == 0
    assert rename("c", "b", 2) == 0
    assert (place.read("b"), place.read("c")) == (b"a", b"b")
    assert rename("c", "missing", 2) == errno.ENOENT
    assert rename("c", "d", 4) == errno.EINVAL


def test_a_name_that_another_session_makes_appears_though_it_was_looked_for(place: Place) -> None:
    other = place.daemon.up(agent=place.agent, actor="other")
    for number in range(20):
        name = f"name{number}"
        for _ in range(2):
            assert not _is_there(other, name)
        place.write(name, b"there")
        _soon(partial(_is_there, other, name))
        assert other.read(name) == b"there"
        place.inside.call("os.unlink", place.path(name))
        _soon(partial(_is_missing, other, name))
    place.daemon.end(other)


def _is_missing(place: Place, name: str) -> bool:
    return not _is_there(place, name)


def _is_there(place: Place, name: str) -> bool:
    return bool(place.inside.call("os.path.lexists", place.path(name)))


def test_a_name_that_a_version_brings_back_appears(place: Place) -> None:
    place.write("file", b"one")
    place.daemon.barrier()
    place.inside.call("os.unlink", place.path("file"))
    with pytest.raises(FileNotFoundError):
        place.read("file")
    place.daemon.ok("restore", f"{place.store}@1", "file")
    _soon(lambda: place.read("file") == b"one")


def _soon(condition: Callable[[], bool]) -> None:
    """The kernel is told from a thread of its own, some hundred microseconds after the answer."""
    end = time.monotonic() + 2
    while True:
        try:
            if condition():
                return
        except FileNotFoundError:
            pass
        assert time.monotonic() < end
        time.sleep(0.001)


def test_locks_and_notifications_work_between_programs(place: Place) -> None:
    place.write("file", b"")
    beside = Inside(beside=place.inside.pid)
    try:
        mine = place.inside.call("os.open", place.path("file"), 2)
        theirs = beside.call("os.open", place.path("file"), 2)
        place.inside.call("fcntl.flock", mine, 2 | 4)
        with pytest.raises(BlockingIOError):
            beside.call("fcntl.flock", theirs, 2 | 4)
        place.inside.call("fcntl.flock", mine, 8)
        beside.call("fcntl.lockf", theirs, 2 | 4)
        with pytest.raises(BlockingIOError):
            place.inside.call("fcntl.lockf", mine, 2 | 4)
        place.inside.call("os.close", mine)
    finally:
        beside.close()
