"""Reading and writing over a real mount: flags, shared mappings, holes, and what other sessions see."""

import errno
import os
import time
from collections.abc import Callable
from functools import partial

import pytest

from ..harness.daemon import Daemon, Place


def test_append_and_truncate_flags(place: Place) -> None:
    place.write("file", b"one\n")
    place.write("file", b"two\n", "ab")
    assert place.read("file") == b"one\ntwo\n"
    place.write("file", b"3\n")
    assert place.read("file") == b"3\n"
    descriptor = place.inside.call("os.open", place.path("file"), os.O_RDONLY)
    place.inside.call("os.close", place.inside.call("os.open", place.path("file"), os.O_WRONLY | os.O_TRUNC))
    assert place.inside.call("os.fstat", descriptor).st_size == 0
    assert place.inside.call("os.read", descriptor, 10) == b""
    place.inside.call("os.close", descriptor)


def test_an_append_goes_to_the_end_wherever_the_descriptor_is(place: Place) -> None:
    place.write("file", b"one\n")
    descriptor = place.inside.call("os.open", place.path("file"), os.O_WRONLY | os.O_APPEND)
    place.write("file", b"two\n", "ab")
    place.inside.call("os.lseek", descriptor, 0, 0)
    place.inside.call("os.write", descriptor, b"three\n")
    place.inside.call("os.close", descriptor)
    assert place.read("file") == b"one\ntwo\nthree\n"


def test_two_sessions_that_append_at_once_keep_every_line(place: Place) -> None:
    other = place.daemon.up(agent=place.agent, actor="other")
    place.write("log", b"")
    loop = "for n in $(seq 200); do echo {who} $n >> {path}; done"
    mine = _start(place, loop.format(who="mine", path=place.path("log")))
    theirs = _start(place, loop.format(who="theirs", path=other.path("log")))
    assert [place.inside.call("ended", each, 60, patience=70) for each in (mine, theirs)] == [0, 0]
    lines = place.read("log").decode().splitlines()
    assert len(lines) == 400
    for who in ("mine", "theirs"):
        assert [line for line in lines if line.startswith(who)] == [f"{who} {n}" for n in range(1, 201)]
    place.daemon.end(other)


def _start(place: Place, script: str) -> int:
    output = str(place.daemon.directory / "output")
    pid: int = place.inside.call("start", ["bash", "-ec", script], None, {}, output)
    return pid


def test_a_shared_mapping_that_is_written_after_the_close_is_recorded(place: Place) -> None:
    script = f"""
import mmap, os, time
descriptor = os.open({place.path("file")!r}, os.O_RDWR | os.O_CREAT)
os.ftruncate(descriptor, 8192)
memory = mmap.mmap(descriptor, 8192)
os.close(descriptor)
time.sleep(0.2)
memory[:5] = b"first"
memory.flush()
memory[4096:4100] = b"last"
memory.close()
"""
    assert place.inside.run("python3", "-c", script).code == 0
    expected = b"first".ljust(4096, b"\0") + b"last".ljust(4096, b"\0")
    assert place.read("file") == expected
    _eventually(lambda: _sealed(place, "file") == expected)


def _sealed(place: Place, name: str) -> bytes:
    place.daemon.barrier()
    return place.read(f".versions/latest/{name}")


def test_a_mapping_shows_what_write_wrote(place: Place) -> None:
    place.write("file", b"a" * 4096)
    script = f"""
import mmap, os
descriptor = os.open({place.path("file")!r}, os.O_RDWR)
memory = mmap.mmap(descriptor, 4096)
assert memory[0:1] == b"a"
os.pwrite(descriptor, b"b", 0)
assert memory[0:1] == b"b"
memory[1:2] = b"c"
assert os.pread(descriptor, 2, 0) == b"bc"
"""
    assert place.inside.run("python3", "-c", script) == (0, "", "")
    assert place.read("file") == b"bc" + b"a" * 4094


def test_holes_are_honest(place: Place) -> None:
    descriptor = place.inside.call("os.open", place.path("file"), os.O_RDWR | os.O_CREAT)
    place.inside.call("os.pwrite", descriptor, b"end", 20_000_000)
    shown = place.inside.call("os.fstat", descriptor)
    assert shown.st_size == 20_000_003
    assert shown.st_blocks * 512 < 1_000_000
    place.inside.call("os.ftruncate", descriptor, 10_000_000)
    place.inside.call("os.close", descriptor)
    assert place.read("file") == bytes(10_000_000)


def test_files_up_to_the_limit_and_not_beyond(place: Place) -> None:
    place.daemon.ok("store", "set", place.store, "--max-file-size", "3MiB", "--quota", "5MiB")
    content = os.urandom(3 << 20)
    place.write("file", content)
    assert place.read("file") == content
    with pytest.raises(OSError, match=f"Errno {errno.EFBIG}"):
        place.write("file", b"x", "ab")
    with pytest.raises(OSError, match=f"Errno {errno.EFBIG}"):
        place.inside.call("os.truncate", place.path("file"), (3 << 20) + 1)
    with pytest.raises(OSError, match=f"Errno {errno.EDQUOT}"):
        place.write("other", os.urandom((2 << 20) + 1))
    assert place.read("file") == content
    place.inside.call("os.unlink", place.path("other"))
    place.write("other", os.urandom(2 << 20))


def test_statvfs_shows_the_quota_where_there_is_one_session(daemon: Daemon) -> None:
    place = daemon.up()
    daemon.ok("store", "set", place.store, "--quota", "64MiB")
    place.write("file", bytes(16 << 20))
    found = place.inside.call("os.statvfs", place.state)
    assert found.f_blocks * found.f_frsize == 64 << 20
    assert found.f_bavail * found.f_frsize == 48 << 20


@pytest.mark.parametrize("size", [5, 300_000])
def test_another_session_sees_content_after_the_close(place: Place, size: int) -> None:
    other = place.daemon.up(agent=place.agent, actor="other")
    place.write("file", b"a" * size)
    _eventually(lambda: "file" in other.names())
    descriptor = place.inside.call("os.open", place.path("file"), os.O_WRONLY)
    for fill in (b"b", b"c"):
        before = other.read("file")
        place.inside.call("os.pwrite", descriptor, fill * size, 0)
        assert other.read("file") == before
        assert place.read("file") == fill * size
        place.inside.call("os.close", place.inside.call("os.dup", descriptor))
        _eventually(partial(_holds, other, "file", fill * size))
    place.inside.call("os.close", descriptor)
    place.daemon.end(other)


def test_a_descriptor_of_another_session_sees_it_too(place: Place) -> None:
    other = place.daemon.up(agent=place.agent, actor="other")
    place.write("file", b"one")
    _eventually(lambda: "file" in other.names())
    descriptor = place.inside.call("os.open", other.path("file"), os.O_RDONLY)
    assert place.inside.call("os.pread", descriptor, 10, 0) == b"one"
    place.write("file", b"other")
    _eventually(lambda: place.inside.call("os.pread", descriptor, 10, 0) == b"other")
    place.inside.call("os.close", descriptor)
    place.daemon.end(other)


def test_an_unlinked_file_can_be_used_until_it_is_closed(place: Place) -> None:
    place.write("file", b"content")
    place.daemon.barrier()
    descriptor = place.inside.call("os.open", place.path("file"), os.O_RDWR)
    place.inside.call("os.unlink", place.path("file"))
    place.daemon.barrier()
    place.inside.call("os.pwrite", descriptor, b"C", 0)
    place.inside.call("os.fchmod", descriptor, 0o600)
    assert place.inside.call("os.pread", descriptor, 10, 0) == b"Content"
    assert place.inside.call("os.fstat", descriptor).st_nlink == 0
    place.inside.call("os.close", descriptor)
    place.daemon.barrier()
    assert place.changes() == [["created file"], ["deleted file"]]


def test_writing_the_same_bytes_or_touching_makes_no_version(place: Place) -> None:
    script = "echo hi > f; sleep 0.15; echo hi > f; touch f; mv f g; mv g f; : > new; rm new"
    place.inside.shell(script, cwd=place.state)
    place.daemon.barrier()
    assert place.changes() == [["created f"]]


def test_extended_attributes(place: Place) -> None:
    place.write("file", b"content")
    path = place.path("file")
    place.inside.call("os.setxattr", path, "user.a", b"\0\xff")
    assert place.inside.call("os.listxattr", path) == ["user.a"]
    assert place.inside.call("os.getxattr", path, "user.engramfs.store") == place.store.encode()
    place.inside.call("os.removexattr", path, "user.a")
    for name, expected in (("user.a", errno.ENODATA), ("user.engramfs.x", errno.ENODATA)):
        with pytest.raises(OSError, match=f"Errno {expected}"):
            place.inside.call("os.getxattr", path, name)
    with pytest.raises(OSError, match=f"Errno {errno.EOPNOTSUPP}"):
        place.inside.call("os.setxattr", path, "trusted.a", b"")
    assert place.inside.shell(f"cp -a {path} {path}.copy; ls {place.state}").split() == ["file", "file.copy"]


def test_what_is_not_supported_says_so(place: Place) -> None:
    place.write("file", b"")
    refused = place.inside.run("fallocate", "-l", "10", place.path("file"))
    assert refused.err == "fallocate: fallocate failed: Operation not supported\n"
    for call, *arguments in (
        ("os.mkfifo", "fifo"),
        ("os.mknod", "device", 0o20600, 0x103),
        ("os.chown", "file", 1000, 1000),
    ):
        with pytest.raises(PermissionError):
            place.inside.call(str(call), place.path(str(arguments[0])), *arguments[1:])
    with pytest.raises(OSError, match=f"Errno {errno.EXDEV}"):
        place.inside.call("os.rename", place.path("file"), f"{place.user}/file")
    with pytest.raises(OSError, match=f"Errno {errno.EXDEV}"):
        place.inside.call("os.link", place.path("file"), f"{place.user}/file")


def _holds(place: Place, name: str, content: bytes) -> bool:
    return place.read(name) == content


def _eventually(condition: Callable[[], bool], limit: float = 3.0) -> None:
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)
