"""`kill -9` of the keeper: the worker goes on, and the next `up` gives it another keeper."""

import os
import signal
from pathlib import Path

import pytest

from engramfs.daemon.run_directory import keeper_of

from ..harness.daemon import ROOTS, Daemon, eventually


def kill_keeper(daemon: Daemon) -> int:
    keeper = keeper_of(daemon.run_directory)
    assert keeper is not None
    os.kill(keeper, signal.SIGKILL)
    eventually(lambda: keeper_of(daemon.run_directory) is None)
    return keeper


def test_sandboxes_do_not_notice_and_up_adopts_the_worker(daemon: Daemon) -> None:
    place = daemon.up()
    file = daemon.inside.call("os.open", place.path("a"), os.O_CREAT | os.O_RDWR)
    daemon.inside.call("os.write", file, b"one ")
    worker = daemon.worker
    kill_keeper(daemon)
    daemon.inside.call("os.write", file, b"two ")
    again = daemon.up(root=place.root)
    assert (daemon.worker, again.session) == (worker, place.session)
    daemon.kill_worker()
    daemon.inside.call("os.write", file, b"three")
    daemon.inside.call("os.close", file)
    assert place.read("a") == b"one two three"
    assert daemon.worker != worker, "the new keeper keeps it alive as its own"


def test_down_ends_a_worker_without_a_keeper_in_order(daemon: Daemon) -> None:
    place = daemon.up()
    kill_keeper(daemon)
    place.write("a", b"content")
    daemon.ok("down")
    assert daemon.command("status").code == 6
    assert [version["number"] for version in daemon.log(place.store)] == [1]


STOPPED_ON_THE_WAY = """
"$@" & until read keeper < {run}/keeper.lock && [ -n "$keeper" ] && [ "$keeper" != {killed} ]; do :; done
kill -STOP $keeper; sleep 1; kill -CONT $keeper; wait $!
"""


def test_down_waits_until_the_next_keeper_has_the_worker(daemon: Daemon) -> None:
    """A worker that is stopped before that looks like one that crashed, and another would be started."""
    place = daemon.up()
    place.write("a", b"content")
    script = STOPPED_ON_THE_WAY.format(run=daemon.run_directory, killed=kill_keeper(daemon))
    stopped = daemon.command("down", through=["bash", "-c", script, "bash"])
    assert (stopped.code, stopped.err) == (0, "")
    assert daemon.command("status").code == 6


def test_up_after_both_were_killed_waits_until_the_sessions_are_attached(daemon: Daemon) -> None:
    place = daemon.up(actor="alice")
    for number in range(3):
        worker = daemon.worker
        kill_keeper(daemon)
        os.kill(worker, signal.SIGKILL)
        daemon.up(actor="alice", root=place.root)
        place.write("a", b"%d" % number)
        assert place.read("a") == b"%d" % number


def test_a_second_daemon_of_one_state_is_refused_as_busy(daemon: Daemon, tmp_path: Path) -> None:
    daemon.up()
    other = daemon.command("daemon", "--run", str(tmp_path / "other"), timeout=40)
    assert other.code == 4
    assert "in use by the engramfs daemon" in other.err


KILLED_ON_THE_WAY = """
"$@" & until grep -q "started worker" {run}/daemon.log; do sleep 0.01; done
kill -{signal} $(cat {run}/keeper.lock); wait $!
"""


@pytest.mark.parametrize(("name", "how"), [("KILL", "killed by SIGKILL"), ("TERM", "stopped")])
def test_a_start_that_was_killed_says_so_and_no_routine_line(daemon: Daemon, name: str, how: str) -> None:
    script = KILLED_ON_THE_WAY.format(run=daemon.run_directory, signal=name)
    daemon.inside.call("os.mkdir", f"{ROOTS}/0")
    os.mkdir(daemon.run_directory, 0o700)
    log = Path(daemon.run_directory, "daemon.log")
    log.touch()
    started = daemon.command("up", "--root", f"{ROOTS}/0", through=["bash", "-c", script, "bash"])
    assert (started.code, started.err) == (
        1,
        f"engramfs: the daemon was {how} while it started; engramfs up tries again, and see {log}\n",
    )
    daemon.up()
