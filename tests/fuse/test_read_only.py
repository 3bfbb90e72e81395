"""A read-only attachment refuses every write, whatever the system call and whoever asks."""

import errno
import os

import pytest

from ..harness.daemon import Place
from ..harness.inside import Inside

NOBODY = 65534


@pytest.fixture
def written(place: Place) -> Place:
    """A session whose read-only store has a file and a directory, put there by an import."""
    source = place.daemon.directory / place.agent
    source.mkdir()
    (source / "file").write_text("content\n")
    (source / "file").chmod(0o777)
    (source / "directory").mkdir()
    place.daemon.ok("import", f"memory/{place.agent}/preferences", str(source))
    return place


@pytest.mark.parametrize("user", [None, NOBODY])
def test_the_message_is_the_one_that_people_know(written: Place, user: int | None) -> None:
    finished = written.inside.run("sh", "-c", f"echo x > {written.preferences}/a", user=user)
    assert finished.code != 0
    assert "Read-only file system" in finished.err


@pytest.mark.parametrize("remounted", [False, True])
def test_every_system_call_that_writes_is_refused(written: Place, remounted: bool) -> None:
    """A remount changes nothing: the check lies in the filesystem."""
    if remounted:
        written.inside.shell(f"mount -i -o remount,rw,bind {written.preferences}")
    file, new = f"{written.preferences}/file", f"{written.preferences}/new"
    attempts: list[tuple[object, ...]] = [
        *(("os.open", file, flags) for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC)),
        ("os.open", new, os.O_CREAT | os.O_WRONLY),
        ("os.truncate", file, 0),
        ("os.mkdir", new),
        ("os.rmdir", f"{written.preferences}/directory"),
        ("os.unlink", file),
        ("os.rename", file, new),
        ("os.symlink", "target", new),
        ("os.link", file, new),
        ("os.mkfifo", new),
        ("os.mknod", new),
        ("os.chmod", file, 0o600),
        ("os.chown", file, 0, 0),
        ("os.utime", file),
        ("os.setxattr", file, "user.a", b""),
        ("os.removexattr", file, "user.a"),
    ]
    for attempt in attempts:
        with pytest.raises(OSError, match=f"Errno {errno.EROFS}"):
            written.inside.call(str(attempt[0]), *attempt[1:])
    assert written.inside.call("os.access", file, os.W_OK) is False
    assert written.inside.call("names", written.preferences) == ["directory", "file"]
    assert len(written.daemon.log(f"memory/{written.agent}/preferences")) == 1


def test_reading_locking_and_executing_go_on(written: Place) -> None:
    file = f"{written.preferences}/file"
    descriptor = written.inside.call("os.open", file, os.O_RDONLY)
    written.inside.call("fcntl.flock", descriptor, 2 | 4)
    assert written.inside.call("os.pread", descriptor, 100, 0) == b"content\n"
    written.inside.call("os.close", descriptor)
    assert written.inside.call("os.access", file, os.R_OK | os.X_OK) is True


def test_the_parents_are_read_only_too(written: Place) -> None:
    for parent in ("mnt/memory", "mnt/context", "memories"):
        with pytest.raises(OSError, match=f"Errno {errno.EROFS}"):
            written.inside.call("write", f"{written.root}/{parent}/stray", b"")


def test_old_versions_are_read_only_in_a_writable_store(place: Place) -> None:
    place.write("file", b"one")
    place.daemon.barrier()
    for path in (".versions/1/file", ".versions/1/new", ".versions/new", ".versions/log"):
        with pytest.raises(OSError, match=f"Errno {errno.EROFS}"):
            place.write(path, b"two")
    for call in ("os.mkdir", "os.rmdir", "os.unlink"):
        with pytest.raises(OSError, match=r"Errno (1|17|20|21)\b"):
            place.inside.call(call, place.path(".versions"))


def test_another_uid_of_the_sandbox_is_the_same_principal(place: Place) -> None:
    place.write("file", b"one\n")
    place.inside.call("os.chmod", place.path("file"), 0o600)
    script = f"cd {place.state}; cat file; echo two >> file; mkdir d; echo x > d/x; mv d/x y; stat -c %u file"
    assert place.inside.shell(script, user=NOBODY) == "one\n0\n"
    assert place.read("file") == b"one\ntwo\n"


def test_outside_nobody_else_reaches_the_hub(place: Place) -> None:
    beside = Inside(beside=place.inside.pid)
    try:
        refused = beside.run("ls", f"{place.daemon.run_directory}/fs", user=NOBODY)
        assert refused.code != 0
        assert "Permission denied" in refused.err
    finally:
        beside.close()
