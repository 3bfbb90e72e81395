"""The worker may open no more files: EMFILE to whoever needs one, and nothing acknowledged is lost."""

import contextlib
import os
import resource

import pytest

from ..harness.daemon import Daemon

CONTENT = b"written while there was room"


def test_no_descriptors_are_left(daemon: Daemon) -> None:
    place = daemon.up()
    inside, worker = daemon.inside, daemon.worker
    place.write("before", CONTENT)
    limits = resource.prlimit(worker, resource.RLIMIT_NOFILE)
    used = len(os.listdir(f"/proc/{worker}/fd"))
    resource.prlimit(worker, resource.RLIMIT_NOFILE, (used + 5, limits[1]))
    written, refused = [], []
    for number in range(20):
        file = inside.call("os.open", place.path(f"file{number}"), os.O_CREAT | os.O_WRONLY)
        with contextlib.suppress(OSError):
            inside.call("os.write", file, CONTENT)
            written.append((number, file))
            continue
        with pytest.raises(OSError, match="Too many open files"):
            inside.call("os.write", file, CONTENT)
        refused.append((number, file))
    assert written
    assert refused
    assert place.read("before") == CONTENT
    for number, file in written:
        inside.call("os.close", file)
        assert place.read(f"file{number}") == CONTENT
    resource.prlimit(worker, resource.RLIMIT_NOFILE, limits)
    for _, file in refused:
        assert inside.call("os.write", file, CONTENT) == len(CONTENT)
        inside.call("os.close", file)
    daemon.barrier()
    assert daemon.worker == worker
    names = [f"file{number}" for number in range(20)]
    assert inside.call("digests", place.state).keys() == {name.encode() for name in ["before", *names]}
    assert {place.read(name) for name in names} == {CONTENT}


def test_not_even_one_is_left(daemon: Daemon) -> None:
    """What needs none goes on: names, reads, closing, sealing. The rest says so, and loses nothing."""
    place = daemon.up()
    call, worker = daemon.inside.call, daemon.worker
    place.write("before", CONTENT)
    file = call("os.open", place.path("open"), os.O_CREAT | os.O_RDWR)
    call("os.write", file, CONTENT)
    place.write("removed", b"")
    removed = call("os.open", place.path("removed"), os.O_RDWR)
    call("os.write", removed, CONTENT)
    limits = resource.prlimit(worker, resource.RLIMIT_NOFILE)
    taken = sorted(map(int, os.listdir(f"/proc/{worker}/fd")))
    free = next(number for number in range(len(taken) + 1) if number not in taken)
    resource.prlimit(worker, resource.RLIMIT_NOFILE, (free, limits[1]))
    call("os.fsync", file)
    call("os.unlink", place.path("removed"))
    call("os.mkdir", place.path("directory"))
    assert call("os.pread", removed, 100, 0) == CONTENT
    with pytest.raises(OSError, match="Too many open files"):
        place.write("new", CONTENT)
    call("os.close", file)
    assert place.read("open") == place.read("before") == CONTENT
    resource.prlimit(worker, resource.RLIMIT_NOFILE, limits)
    call("os.close", removed)
    place.write("new", CONTENT)
    daemon.barrier()
    assert daemon.worker == worker
    assert place.names() == ["before", "directory", "new", "open"]
    assert place.read("new") == CONTENT
