"""What a version is about, said through the mount and beside it."""

import os

import pytest

from ..harness.daemon import Daemon, Place

MESSAGE = "user.engramfs.message"


def messages(place: Place) -> list[str]:
    return [version["message"] for version in place.log()]


def test_the_attribute_of_the_root_is_the_message_of_the_next_version(place: Place) -> None:
    place.inside.call("os.setxattr", place.path(), MESSAGE, b"learned about ports")
    assert place.inside.call("os.getxattr", place.path(), MESSAGE) == b"learned about ports"
    assert MESSAGE not in place.inside.call("os.listxattr", place.path())
    place.write("a", b"1")
    place.daemon.barrier()
    place.write("a", b"2")
    assert messages(place) == ["learned about ports", ""]
    with pytest.raises(OSError, match="Errno 61"):
        place.inside.call("os.getxattr", place.path(), MESSAGE)
    for value in (b"x" * 5000, b"\xff"):
        with pytest.raises(OSError, match="Errno 22"):
            place.inside.call("os.setxattr", place.path(), MESSAGE, value)
    with pytest.raises(OSError, match="Errno 1]"):
        place.inside.call("os.setxattr", place.path("a"), MESSAGE, b"on a file")
    assert "learned about ports" in place.daemon.ok("log", place.store)


def test_a_read_only_mount_takes_no_message(place: Place) -> None:
    with pytest.raises(OSError, match="Errno 30"):
        place.inside.call("os.setxattr", place.preferences, MESSAGE, b"no")


def test_a_person_notes_what_the_next_version_is_about(place: Place) -> None:
    assert place.daemon.json("note", place.store) == {"store": place.store, "message": ""}
    place.daemon.ok("note", place.store, "wrong")
    place.daemon.ok("note", place.store, "")
    assert "before the move" in place.daemon.ok("note", place.store, "before the move")
    assert place.daemon.json("note", place.store)["message"] == "before the move"
    place.write("a", b"1")
    assert messages(place) == ["before the move"]
    long = place.daemon.command("note", place.store, "x" * 5000)
    assert long.code == 2
    assert "4096 bytes" in long.err


def test_a_message_outlives_the_worker(daemon: Daemon) -> None:
    place = daemon.up()
    place.inside.call("os.setxattr", place.path(), MESSAGE, b"kept")
    daemon.kill_worker()
    assert place.inside.call("os.getxattr", place.path(), MESSAGE) == b"kept"
    daemon.kill_worker()
    place.write("a", b"1")
    daemon.kill_worker()
    daemon.barrier()
    assert messages(place) == ["kept"]
    assert os.path.getsize(os.path.join(daemon.state, "journal")) < 100, "nothing waits any more"
