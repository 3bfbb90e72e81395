"""The disk is full while a daemon serves: ENOSPC to whoever writes, nothing acknowledged is lost, and all is
well again once there is space. What the vfs does in each case: tests/vfs/test_full_disk.py.
"""

import os
import signal
import sys
from pathlib import Path

import pytest

from engramfs.errors import Full
from engramfs.history.repository import Repository
from engramfs.storage.lmdb_engine import LmdbEngine
from engramfs.storage.protocol import Table, Writer

from ..harness.daemon import Daemon, Place, eventually
from ..harness.small_disk import SmallDisk
from .disk import MIB, Disk
from .machine import WRITER, problems_in
from .promises import Event, read_report

NO_SPACE = "No space left on device"
KEPT = {"closed", "moved", "synced"}


class Filling:
    """A daemon on a disk of 24 MiB, and a program that goes on whatever fails."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.disk = Disk(daemon.inside, f"{daemon.directory}/image", daemon.state, size=24 * MIB)
        self.place = daemon.up()
        self._report = daemon.directory / "report"
        command = [sys.executable, str(WRITER), self.place.path("written"), str(self._report), "400"]
        self._writer = daemon.inside.call("start", command, None, {}, str(daemon.directory / "said"))
        eventually(lambda: len(self.events()) > 50)

    def events(self) -> list[Event]:
        return read_report(self._report)

    def failures(self) -> set[str | None]:
        return {path for event, path, _ in self.events() if event == "failed"}

    def fill(self, leave: int) -> None:
        free = os.statvfs(self.disk.seen_from_outside)
        size = free.f_bavail * free.f_frsize - leave
        self.daemon.inside.run("fallocate", "-l", str(size), f"{self.daemon.state}/ballast")
        if not leave:  # the last blocks that only root may take
            self.daemon.inside.run("sh", "-c", f"cat /dev/zero >>{self.daemon.state}/ballast")

    def clear(self) -> None:
        os.unlink(f"{self.disk.seen_from_outside}/ballast")

    def end(self) -> None:
        """Everything that was acknowledged is there, and the service is as before."""
        assert self.daemon.inside.call("ended", self._writer, 60, patience=90) == 0
        self.place.write("afterwards", b"as before")
        eventually(lambda: "created afterwards" in self.place.changes()[-1])
        self.daemon.ok("down")
        assert problems_in(self.disk.seen_from_outside, {"written": self.events()}, KEPT) == []
        self.disk.unmount()


@pytest.mark.parametrize("leave", [0, 300 << 10], ids=["for the journal", "for a version"])
def test_there_is_no_room(daemon: Daemon, leave: int) -> None:
    filling = Filling(daemon)
    filling.fill(leave)
    eventually(lambda: filling.failures() != set())
    filling.clear()
    filling.end()
    assert filling.failures() == {NO_SPACE}


def test_a_worker_that_is_killed_on_a_full_disk_is_replaced(daemon: Daemon) -> None:
    filling = Filling(daemon)
    filling.fill(0)
    eventually(lambda: filling.failures() != set())
    killed = daemon.kill_worker()
    assert daemon.worker != killed
    assert filling.place.names() == ["AGENTS.md", "written"] or filling.place.names() == ["written"]
    filling.clear()
    filling.end()
    assert filling.failures() == {NO_SPACE}


def test_the_map_has_to_grow_on_a_full_disk(small_disk: SmallDisk) -> None:
    content = os.urandom(2 * MIB)

    def put(writer: Writer) -> None:
        writer.put(Table.META, b"large", content)

    repository = Repository(
        f"{small_disk.path}/log", LmdbEngine(f"{small_disk.path}/log", map_size=MIB), None
    )
    try:
        repository.transact(lambda writer: writer.put(Table.META, b"small", b"kept"))
        small_disk.fill(leave=MIB)
        for _ in range(2):
            with pytest.raises(Full):
                repository.transact(put)
        with repository.engine.reading() as reader:
            assert (reader.get(Table.META, b"small"), reader.get(Table.META, b"large")) == (b"kept", None)
        small_disk.clear()
        repository.transact(put)
        with repository.engine.reading() as reader:
            assert reader.get(Table.META, b"large") == content
    finally:
        repository.close()


def fill_with_files(daemon: Daemon) -> tuple[Place, str, bytes]:
    """A session on a disk of 16 MiB, and the file whose close found no room."""
    daemon.inside.shell(f"mkdir {daemon.state}; mount -t tmpfs -o size=16m state {daemon.state}")
    place = daemon.up()
    for number in range(60):
        name, content = f"f{number}", os.urandom(400_000)
        try:
            place.write(name, content)
        except OSError:
            break
    assert place.read(name) == content
    return place, name, content


def test_a_close_that_found_no_room_enters_the_log_once_there_is_some(daemon: Daemon) -> None:
    place, name, content = fill_with_files(daemon)
    failures = daemon.client.call("status")["failures"]
    assert [place.store] == [each["store"] for each in failures if f"{name} was closed" in each["what"]]
    assert f"{name} was closed and is not recorded yet" in place.read(".versions/status").decode()
    daemon.kill_worker()
    assert place.read(name) == content
    shown = place.read(".versions/status").decode()
    assert f"{name} was closed and is not recorded yet" in shown
    assert str(daemon.state) not in shown, "nor does the next worker tell agents where it is on the host"
    daemon.inside.shell(f"mount -o remount,size=64m {daemon.state}")
    eventually(lambda: f"created {name}" in place.changes()[-1])
    eventually(lambda: daemon.client.call("status")["journal"]["records"] == 0)
    assert place.read(name) == content
    assert daemon.json("diff", place.store, place.state) == []
    daemon.ok("down")


def make_directories(place: Place) -> None:
    for number in range(200):
        place.inside.call("os.mkdir", place.path(f"{'d' * 200}{number}"))


def test_on_a_full_disk_files_can_be_removed(daemon: Daemon) -> None:
    place, name, _ = fill_with_files(daemon)
    daemon.inside.run("sh", "-c", f"cat /dev/zero >{daemon.state}/ballast")
    with pytest.raises(OSError, match=NO_SPACE):
        make_directories(place)  # until the journal has filled its last block
    daemon.inside.call("os.unlink", place.path(name))
    for each in place.names():
        daemon.inside.call("os.rmdir" if each.startswith("d") else "os.unlink", place.path(each))
    daemon.inside.shell(f"rm {daemon.state}/ballast; mount -o remount,size=64m {daemon.state}")
    daemon.barrier()
    assert place.names() == []
    assert daemon.json("diff", place.store, place.state) == []
    daemon.ok("down")


def test_what_finds_no_room_until_the_end_is_named_as_lost(daemon: Daemon) -> None:
    _, name, _ = fill_with_files(daemon)
    daemon.ok("down")
    said = f"had written to {name} and closed: there was no room to record it"
    assert said in Path(daemon.run_directory, "failures").read_text()


def test_what_has_no_room_when_the_keeper_is_told_to_stop_is_named(daemon: Daemon) -> None:
    _, name, _ = fill_with_files(daemon)
    os.kill(int(Path(daemon.run_directory, "keeper.lock").read_text()), signal.SIGTERM)
    eventually(lambda: "closed and not recorded yet" in daemon.said())
    assert f"{name} was closed and is not recorded yet" in Path(daemon.run_directory, "failures").read_text()
    daemon.ok("down")
