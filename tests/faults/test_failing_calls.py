"""A write or an fsync of the worker fails, or it is killed right there: nothing that was promised is lost.

The worker begins with a journal that is to be replayed, and a program writes while it serves. Each of the
program's calls succeeds or gives an errno, what it reads is never a content that nobody wrote, and after
the fault the service works as before.
"""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from engramfs.errors import StorageError

from ..harness.daemon import Daemon, eventually
from .injection import hits, start
from .machine import WRITER, kill, problems_in
from .promises import Event, read_report

STEPS = 120
MOST_WRITTEN = 5  # times so many steps: calls are counted by thread, and which thread makes one is chance
KEPT = {"closed", "moved", "synced"}


class Prepared(NamedTuple):
    """A state directory as a daemon left it that was killed, and what a writer was promised of it."""

    state: Path
    events: list[Event]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("mounting needs root and /dev/fuse")
    directory = tmp_path_factory.mktemp("prepared")
    daemon = Daemon(directory)
    with contextlib.closing(daemon):
        daemon.configure('[batch]\nquiet = "60s"\nmax_age = "60s"\n')
        write(daemon, "earlier", 30)
        kill(daemon)
    events = read_report(directory / "report-earlier")
    return Prepared(directory / "state", events)


def write(daemon: Daemon, name: str, steps: int) -> None:
    try:
        place = daemon.up()
    except AssertionError:  # the worker met its fault before it answered
        place = daemon.up()
    report = daemon.directory / f"report-{name}"
    writer = daemon.inside.run(
        sys.executable, str(WRITER), place.path(name), str(report), str(steps), timeout=60
    )
    assert writer == (0, "", "")


def survive(daemon: Daemon, prepared: Prepared, calls: str, fault: str, number: int, path: str = "") -> None:
    subprocess.run(["cp", "-a", str(prepared.state), daemon.state], check=True, timeout=20)
    written: list[str] = []
    if start(daemon, calls, fault, number, path):
        while not written or (not hits(daemon) and len(written) < MOST_WRITTEN):
            written.append(f"written-{len(written)}")
            write(daemon, written[-1], STEPS)
        place = daemon.places[-1]
        with contextlib.suppress(OSError):  # a thread may meet its fault only now
            place.write("afterwards", b"")
        place.write("afterwards", b"as before")
        eventually(lambda: is_sealed(daemon))
        assert place.read("afterwards") == b"as before"
        daemon.ok("down")
    else:
        assert fault.startswith("error"), "a killed worker is to be replaced"
        assert daemon.said().startswith("engramfs: "), "it says why it does not start"
    assert hits(daemon), "the fault was not met: write more"
    reported = {name: read_report(daemon.directory / f"report-{name}") for name in written}
    reported["earlier"] = prepared.events
    assert problems_in(daemon.state, reported, KEPT) == []


def is_sealed(daemon: Daemon) -> bool:
    """A barrier says so when the fault was met by the very seal that it waits for."""
    try:
        daemon.barrier()
    except StorageError:
        return False
    return True


def first(count: int, *quick: int) -> pytest.MarkDecorator:
    """The first calls, of which those that are `quick` stand for all where time counts."""
    marks = {number: () if number in quick else (pytest.mark.soak,) for number in range(1, count + 1)}
    return pytest.mark.parametrize("number", [pytest.param(each, marks=mark) for each, mark in marks.items()])


@first(200, 2, 21, 150)
def test_a_write_or_a_sync_fails(daemon: Daemon, prepared: Prepared, number: int) -> None:
    survive(daemon, prepared, "pwrite64,fdatasync,fsync,ftruncate", "error=EIO", number)


@first(30, 3, 12)
def test_a_write_of_many_pages_of_the_log_fails(daemon: Daemon, prepared: Prepared, number: int) -> None:
    survive(daemon, prepared, "writev", "error=EIO", number, f"{daemon.state}/log/data.mdb")


@first(200, 3, 8, 30, 77, 180)
def test_a_kill_at_a_call(daemon: Daemon, prepared: Prepared, number: int) -> None:
    survive(daemon, prepared, "write,writev,pwrite64,fdatasync,fsync,ftruncate", "signal=SIGKILL", number)
