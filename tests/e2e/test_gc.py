"""`engramfs gc` beside a daemon that serves: what was removed is nowhere on the disk, all else is there."""

import errno
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engramfs.history.collection.marking import deltas
from engramfs.history.repository import Repository
from engramfs.history.verify import verify

from ..harness.daemon import Daemon, Place, eventually
from ..harness.inside import Inside

SECRET = b"the password is hunter2-" + os.urandom(8).hex().encode()


def holds_secret(state: str) -> list[str]:
    """The files of a state directory in which the secret is, byte for byte."""
    return [
        os.path.relpath(os.path.join(above, name), state)
        for above, _, names in os.walk(state)
        for name in names
        if SECRET in Path(above, name).read_bytes()
    ]


def write_and_remove(place: Place) -> None:
    """The secret in small files and in a large one, between others; then clean versions of all of them."""
    for number in range(40):
        place.write(f"note{number}", b"%d %b" % (number, SECRET))
        if number % 10 == 0:
            place.daemon.barrier()
    place.write("large", b"".join(os.urandom(5000) + SECRET for _ in range(40)))
    place.daemon.barrier()
    for number in range(40):
        place.write(f"note{number}", b"clean")
    place.inside.call("os.unlink", place.path("large"))
    place.daemon.barrier()


def redact_everything(place: Place) -> None:
    newest = place.log()[-1]["number"]
    for version in place.log():
        for change in version["changes"]:
            if version["number"] <= newest and change["path"].startswith(("note", "large")):
                place.daemon.command(
                    "redact", place.store, str(version["number"]), change["path"], "--reason", "a secret"
                )


def test_a_redacted_secret_is_in_no_file_after_gc(daemon: Daemon) -> None:
    place = daemon.up()
    write_and_remove(place)
    assert holds_secret(daemon.state) != []
    assert daemon.json("gc")["contents"] == 0
    assert holds_secret(daemon.state) != []
    redact_everything(place)
    freed = daemon.json("gc")
    assert freed["contents"] >= 41
    assert freed["notes"] == []
    assert holds_secret(daemon.state) == []
    place.write("note1", b"and it goes on")
    daemon.barrier()
    assert holds_secret(daemon.state) == []
    assert place.read("note1") == b"and it goes on"


def test_a_deleted_store_is_in_no_file_after_gc(daemon: Daemon) -> None:
    place = daemon.up()
    write_and_remove(place)
    daemon.end(place)
    daemon.ok("store", "delete", place.store, "--yes")
    disk = daemon.json("gc")
    assert disk["disk_after"] < disk["disk_before"]
    assert holds_secret(daemon.state) == []


def test_gc_needs_no_daemon(daemon: Daemon) -> None:
    place = daemon.up()
    write_and_remove(place)
    daemon.down()
    daemon.ok("store", "delete", place.store, "--yes")
    assert "contents" in daemon.ok("gc")
    assert holds_secret(daemon.state) == []


def test_what_gc_does_not_touch_is_said(daemon: Daemon) -> None:
    daemon.up()
    Path(daemon.state, "journal.torn").write_bytes(SECRET)
    [note] = daemon.json("gc")["notes"]
    assert note.startswith(f"{daemon.state}/journal.torn is the end of a journal that a crash cut short")


class Agents:
    """Threads that write through the mount all the time, and know what they have written."""

    def __init__(self, place: Place, count: int = 2) -> None:
        self.slowest = 0.0
        self.written: dict[str, bytes] = {}
        self._place = place
        self._stop = threading.Event()
        self._failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(count)]

    def __enter__(self) -> "Agents":
        for thread in self._threads:
            thread.start()
        return self

    def _run(self, number: int) -> None:
        inside = Inside(beside=self._place.inside.pid)
        chance = random.Random(number)
        log = b"begin\n"
        try:
            while not self._stop.is_set():
                log += b"%d at %f\n" % (number, time.time())
                for name, content in (
                    (f"log{number}", log),
                    (f"same{number}-{chance.randrange(3)}", chance.choice([b"x" * 400, b"y" * 400, SECRET])),
                    (f"large{number}", chance.choice([b"a", b"b"]) * chance.choice([80_000, 2_000_000])),
                ):
                    began = time.monotonic()
                    inside.call("write", self._place.path(name), content, "wb")
                    self.slowest = max(self.slowest, time.monotonic() - began)
                    self.written[name] = content
        except BaseException as error:
            self._failures.append(error)
        finally:
            inside.close()

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self._failures, self._failures
        for name, content in self.written.items():
            assert self._place.read(name) == content


def test_agents_write_while_it_runs_again_and_again(daemon: Daemon) -> None:
    place = daemon.up()
    with Agents(place):
        for _ in range(4):
            daemon.ok("gc")
    daemon.barrier()
    daemon.check_soundness()


@pytest.fixture
def collecting(daemon: Daemon) -> Iterator["Collecting"]:
    collecting = Collecting(daemon)
    yield collecting
    collecting.kill()


class Collecting:
    """`engramfs gc` processes that a test may kill."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "engramfs", "gc"],
            env={**os.environ, **self._daemon.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        return self._process

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@pytest.mark.parametrize("rounds", [4, pytest.param(60, marks=pytest.mark.soak)])
def test_either_may_be_killed_at_any_moment(daemon: Daemon, collecting: Collecting, rounds: int) -> None:
    place, chance = daemon.up(), random.Random(rounds)
    with Agents(place):
        for number in range(rounds):
            process = collecting.begin()
            time.sleep(chance.uniform(0.2, 0.9))
            if number % 2:
                daemon.kill_worker()
                _, said = process.communicate(timeout=60)
                assert process.returncode in (0, 1, 4, 6), said
                assert len(said.splitlines()) <= 1
                daemon.worker  # noqa: B018 (there is another one)
            collecting.kill()
            with Repository.open(daemon.state) as repository:
                report = verify(repository)
            assert report.sound, report.findings
    daemon.barrier()
    daemon.ok("gc")
    daemon.check_soundness()


def test_retention_keeps_what_a_session_is_pinned_to(daemon: Daemon) -> None:
    place = daemon.up()
    for number in range(1, 11):
        place.write("log", b"%d" % number)
        place.daemon.barrier()
    pinned = daemon.json("session", "open", "--attach", f"{place.store}@3=/mnt/memory/pinned:read_only")
    daemon.inside.call("os.makedirs", "/mnt/pinned")
    daemon.ok("attach", pinned["id"], "--root", "/mnt/pinned")
    assert place.read(".versions/5/log") == b"5"
    assert daemon.json("store", "set", place.store, "--keep-versions", "2")["keep_versions"] == 2
    daemon.ok("gc")
    assert daemon.json("store", "show", place.store)["oldest"] == 9
    assert daemon.inside.call("read", "/mnt/pinned/mnt/memory/pinned/log") == b"3"
    assert place.read(".versions/9/log") == b"9"
    with pytest.raises(OSError, match=r".") as gone:
        place.read(".versions/5/log")
    assert gone.value.errno in (errno.ENOENT, errno.ESTALE)
    for arguments in (["show", f"{place.store}@5"], ["restore", f"{place.store}@5"]):
        finished = daemon.command(*arguments)
        assert (finished.code, "removed by retention" in finished.err) == (3, True)
    assert [version["number"] for version in place.log()] == [3, 9, 10]
    daemon.inside.shell(
        "umount -R -l /mnt/pinned/*/* 2>/dev/null || true; umount -R -l /mnt/pinned/* || true"
    )
    daemon.ok("session", "close", pinned["id"])
    daemon.ok("gc")
    assert [version["number"] for version in place.log()] == [9, 10]


def test_the_daemon_collects_by_itself(daemon: Daemon) -> None:
    daemon.configure('[gc]\nevery = "1s"\n')
    place = daemon.up()
    base = os.urandom(3000)
    for number in range(3):
        place.write("log", base + b"%d" % number)
        place.daemon.barrier()
    with Repository.open(daemon.state) as repository:
        eventually(lambda: len(deltas(repository.engine)) == 2, 30)
    assert daemon.said() == ""
