"""A process somewhere on the machine hangs while it executes a program: no look into /proc waits for it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engramfs.errors import Unavailable
from engramfs.mount.holders import held_within

from ..harness.daemon import Daemon, eventually

# The kernel closes the file while it holds the lock that a look at the namespaces of the process needs.
EXECUTE = """
import os, sys, time
os.open(sys.argv[1], os.O_RDONLY)
open(sys.argv[2], "w").close()
while not os.path.exists(sys.argv[3]):
    time.sleep(0.01)
os.execv("/bin/true", ["true"])
"""


@contextlib.contextmanager
def hanging_process(directory: Path) -> Iterator[int]:
    """Its pid. It waits for a worker, of another daemon, that is stopped."""
    directory.mkdir()
    ready, go = directory / "ready", directory / "go"
    other = Daemon(directory)
    with contextlib.closing(other):
        place = other.up()
        place.write("file", b"")
        command = [sys.executable, "-c", EXECUTE, place.path("file"), str(ready), str(go)]
        pid = other.inside.call("start", command, None, {}, str(directory / "said"))
        eventually(ready.exists)
        served_by = [int(Path(other.run_directory, "keeper.lock").read_text()), other.worker]
        for each in served_by:
            os.kill(each, signal.SIGSTOP)
        try:
            go.touch()
            eventually(lambda: _hangs(pid))
            yield pid
        finally:
            for each in served_by:
                os.kill(each, signal.SIGCONT)
        assert other.inside.call("ended", pid, 10) == 0
        other.down()


def _hangs(pid: int) -> bool:
    look = ["timeout", "-s", "KILL", "0.3", "readlink", f"/proc/{pid}/ns/mnt"]
    return subprocess.run(look, stdout=subprocess.DEVNULL, timeout=10).returncode != 0


def test_status_is_shown_and_no_session_taken_for_gone(daemon: Daemon, tmp_path: Path) -> None:
    daemon.up()
    with hanging_process(tmp_path / "other"):
        for _ in range(3):
            status = daemon.client.call("status", timeout=10)
            assert [session["state"] for session in status["sessions"]] == ["attached"]
        started = time.monotonic()
        daemon.ok("down")
        assert time.monotonic() - started < 10


def test_a_session_is_taken_off_where_it_is_known_to_be(daemon: Daemon, tmp_path: Path) -> None:
    place = daemon.up()
    with hanging_process(tmp_path / "other"):
        daemon.ok("detach", place.session)
        assert [point for point in daemon.mounts() if point.startswith(place.root)] == []


def test_a_look_for_who_holds_a_session_ends_and_says_why(daemon: Daemon, tmp_path: Path) -> None:
    daemon.up()
    with hanging_process(tmp_path / "other"), pytest.raises(Unavailable, match="some process hangs"):
        held_within(0.5, (0, 1))
