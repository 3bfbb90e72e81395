"""What an open file had written is truly gone, or only seems so: while no worker ran, its spool was lost."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from engramfs.daemon.run_directory import keeper_of

from ..harness.daemon import Daemon, Place, eventually

FAILS = "Input/output error"


def kill_worker(daemon: Daemon, meanwhile: Callable[[], None]) -> None:
    """Kill the worker, and do something before the next one is started."""
    keeper = int(Path(daemon.run_directory, "keeper.lock").read_text())
    worker = daemon.worker
    os.kill(keeper, signal.SIGSTOP)
    try:
        os.kill(worker, signal.SIGKILL)
        eventually(lambda: Path(f"/proc/{worker}/stat").read_text().split(") ")[1][0] == "Z")
        meanwhile()
    finally:
        os.kill(keeper, signal.SIGCONT)
    assert daemon.worker != worker


def lose_spools(daemon: Daemon) -> None:
    for name in os.listdir(f"{daemon.state}/spool"):
        os.unlink(f"{daemon.state}/spool/{name}")


@pytest.fixture
def place(daemon: Daemon) -> Place:
    place = daemon.up()
    place.write("file", b"recorded")
    daemon.barrier()
    return place


def assert_fails(call: Callable[..., object], name: str, *arguments: object) -> None:
    with pytest.raises(OSError, match=FAILS):
        call(name, *arguments)


def test_every_call_that_could_be_silent_fails(daemon: Daemon, place: Place) -> None:
    call = daemon.inside.call
    file = call("os.open", place.path("file"), os.O_RDWR)
    call("os.write", file, b"lost")
    kill_worker(daemon, lambda: lose_spools(daemon))
    for name, *arguments in (("os.write", file, b"more"), ("os.fsync", file), ("os.ftruncate", file, 0)):
        assert_fails(call, name, *arguments)
    assert_fails(call, "os.close", file)
    assert place.read("file") == b"recorded"
    assert "lost" in str(daemon.client.call("status")["failures"])
    place.write("file", b"from now on as before")
    daemon.barrier()
    assert place.read("file") == b"from now on as before"
    assert place.changes() == [["created file"], ["modified file"]]


def test_every_descriptor_that_was_open_fails_and_those_that_are_opened_later_do_not(
    daemon: Daemon, place: Place
) -> None:
    call = daemon.inside.call
    first, second = (call("os.open", place.path("file"), os.O_RDWR) for _ in range(2))
    duplicate = call("os.dup", second)
    call("os.write", first, b"lost")
    kill_worker(daemon, lambda: lose_spools(daemon))
    assert_fails(call, "os.close", first)
    later = call("os.open", place.path("file"), os.O_RDWR)
    call("os.write", later, b"written later")
    assert_fails(call, "os.close", duplicate)
    kill_worker(daemon, lambda: None)  # another worker knows it as well
    assert_fails(call, "os.write", second, b"more")
    assert_fails(call, "os.fsync", second)
    assert call("os.pread", later, 100, 0) == b"written later"
    assert_fails(call, "os.close", second)
    daemon.barrier()
    assert place.read(".versions/latest/file") == b"recorded", "nothing was closed that counts"
    call("os.close", later)
    daemon.barrier()
    assert place.read("file") == b"written later"
    assert place.changes() == [["created file"], ["modified file"]]


def test_a_file_that_is_lost_again_and_again_is_refused_in_the_end_and_never_silent(
    daemon: Daemon, place: Place
) -> None:
    call = daemon.inside.call
    files = []
    for _ in range(3):
        files.append(call("os.open", place.path("file"), os.O_WRONLY))
        call("os.write", files[-1], b"lost")
        kill_worker(daemon, lambda: lose_spools(daemon))
    assert_fails(call, "os.open", place.path("file"), os.O_WRONLY)
    for file in files:
        assert_fails(call, "os.close", file)
    place.write("new", b"in its place")
    call("os.rename", place.path("new"), place.path("file"))
    assert place.read("file") == b"in its place"


def test_a_new_file_of_which_everything_is_lost(daemon: Daemon, place: Place) -> None:
    call = daemon.inside.call
    file = call("os.open", place.path("new"), os.O_CREAT | os.O_WRONLY)
    call("os.write", file, b"lost")
    kill_worker(daemon, lambda: lose_spools(daemon))
    with pytest.raises(OSError, match=FAILS):
        call("os.close", file)
    daemon.barrier()
    assert place.changes() == [["created file"]]


def test_what_was_recorded_before_is_no_loss(daemon: Daemon, place: Place) -> None:
    call = daemon.inside.call
    file = call("os.open", place.path("file"), os.O_RDWR | os.O_TRUNC)
    call("os.write", file, b"synced")
    call("os.fsync", file)
    kill_worker(daemon, lambda: lose_spools(daemon))
    call("os.write", file, b" and more")
    call("os.close", file)
    assert place.read("file") == b"synced and more"


def test_a_new_file_to_which_nothing_was_written_is_recorded_at_its_close(
    daemon: Daemon, place: Place
) -> None:
    call = daemon.inside.call
    file = call("os.open", place.path("new"), os.O_CREAT | os.O_WRONLY)
    daemon.kill_worker()
    call("os.close", file)
    daemon.barrier()
    assert place.changes() == [["created file"], ["created new"]]


def test_killed_between_two_writes_and_nothing_lost(daemon: Daemon, place: Place) -> None:
    call = daemon.inside.call
    file = call("os.open", place.path("file"), os.O_WRONLY | os.O_TRUNC)
    for part in (b"one ", b"two ", b"three"):
        call("os.write", file, part)
        kill_worker(daemon, lambda: None)
    call("os.close", file)
    assert place.read("file") == b"one two three"


def test_once_everything_was_killed_it_is_named(daemon: Daemon, place: Place) -> None:
    """Nobody is left who could be told at a close."""
    call = daemon.inside.call
    for name in ("file", "new"):
        file = call("os.open", place.path(name), os.O_CREAT | os.O_WRONLY)
        call("os.write", file, b"lost, all of it")
    keeper, worker = int(Path(daemon.run_directory, "keeper.lock").read_text()), daemon.worker
    for process in (keeper, worker):
        os.kill(process, signal.SIGKILL)
    eventually(lambda: keeper_of(daemon.run_directory) is None)
    place = daemon.up(root=place.root)
    said = f"dropped what session {place.session} had written to file, new and not closed"
    assert said in [each["what"] for each in daemon.client.call("status")["failures"]]
    assert said in place.read(".versions/status").decode()
    assert "dropped what was written and not closed" in daemon.said()
    assert "file, new" not in daemon.said()
    assert (place.read("file"), place.changes()) == (b"recorded", [["created file"]])
