"""`kill -9` of the worker is invisible to sandboxes: open files go on, calls in flight are answered."""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..harness.daemon import Daemon, Place, eventually

WORKLOAD = Path(__file__).parent.parent / "harness" / "workload.py"
LONGEST = 5.0  # seconds that one call may wait for the next worker, on a machine that is busy


def under_workload(daemon: Daemon, place: Place, disturb: Callable[[], None]) -> dict[str, Any]:
    """Disturb the daemon while sandboxes work; what they report."""
    output = daemon.directory / "report"
    command = [sys.executable, str(WORKLOAD), place.state]
    process = daemon.inside.call("start", command, None, {}, str(output))
    eventually(lambda: len(place.names()) >= 12)
    disturb()
    os.kill(process, signal.SIGTERM)
    assert daemon.inside.call("ended", process, 60, patience=90) == 0, output.read_text()
    daemon.barrier()
    daemon.check_soundness()
    assert daemon.ok("diff", place.store, place.state) == "", "the log has what the mount shows"
    assert "skipped" not in daemon.said()
    report: dict[str, Any] = json.loads(output.read_text())
    return report


def kill_often(daemon: Daemon, place: Place, times: int) -> float:
    """Kill the worker again and again; the longest wait of a call made right after, in seconds."""
    longest = 0.0
    for number in range(times):
        time.sleep(random.choice([0.0, random.uniform(0.3, 1.0)]))
        daemon.kill_worker()
        began = time.monotonic()
        assert not daemon.inside.call("os.path.exists", place.path(f"missing {number}"))
        longest = max(longest, time.monotonic() - began)
    return longest


def test_a_mixed_workload_does_not_notice_that_workers_are_killed(daemon: Daemon) -> None:
    place = daemon.up(actor="alice")
    waits: list[float] = []
    report = under_workload(daemon, place, lambda: waits.append(kill_often(daemon, place, 8)))
    assert report["failures"] == []
    assert min(report["counts"].values()) > 0
    assert waits[0] < LONGEST
    assert daemon.client.call("status")["worker"]["restarts"] == 8


def test_workers_that_are_killed_before_they_serve_are_replaced_as_often_as_it_takes(daemon: Daemon) -> None:
    place = daemon.up()
    place.write("a", b"content")
    started = "started worker "
    log = Path(daemon.run_directory, "daemon.log")
    before = log.read_text().count(started)
    for number in range(8):
        os.kill(int(log.read_text().rpartition(started)[2].split()[0]), signal.SIGKILL)
        eventually(lambda: log.read_text().count(started) > before + number)  # noqa: B023
    assert place.read("a") == b"content"
    daemon.ok("restart")
    daemon.kill_worker()
    assert place.read("a") == b"content"


@pytest.mark.soak
def test_two_hundred_kills(daemon: Daemon) -> None:
    place = daemon.up(actor="alice")
    waits: list[float] = []
    report = under_workload(daemon, place, lambda: waits.append(kill_often(daemon, place, 200)))
    print(f"longest wait {waits[0]:.2f} s, {sum(report['counts'].values())} steps")
    assert report["failures"] == []
    assert waits[0] < LONGEST


def test_an_upgrade_interrupts_no_clone(daemon: Daemon, tmp_path: Path) -> None:
    place = daemon.up()
    source = tmp_path / "source"
    daemon.inside.shell(
        f"git init -q {source}; cd {source}; for i in $(seq 200); do head -c 20000 /dev/urandom >$i; done;"
        "git add .; git -c user.name=a -c user.email=a commit -qm all"
    )
    output = str(tmp_path / "said")
    command = ["git", "clone", "-q", str(source), place.path("clone")]
    clone = daemon.inside.call("start", command, None, {}, output)
    before = daemon.worker
    for _ in range(5):
        daemon.ok("restart")
    assert daemon.inside.call("ended", clone, 60, patience=90) == 0, Path(output).read_text()
    assert daemon.worker != before
    copy = place.path("clone")
    daemon.inside.shell(f"git -C {copy} fsck --strict && diff -r -x .git {source} {copy}")


@pytest.mark.soak
def test_ten_restarts_during_clones(daemon: Daemon, tmp_path: Path) -> None:
    place = daemon.up()
    source, stop = tmp_path / "source", tmp_path / "stop"
    daemon.inside.shell(
        f"git init -q {source}; cd {source}; for i in $(seq 1000); do head -c 5000 /dev/urandom >$i; done;"
        "git add .; git -c user.name=a -c user.email=a commit -qm all"
    )
    output = tmp_path / "said"
    script = (
        f"until [ -e {stop} ]; do git clone -q {source} clone && git -C clone fsck --strict || exit 1;"
        f"diff -r -x .git {source} clone || exit 2; rm -r clone || exit 3; echo cloned; done"
    )
    clones = daemon.inside.call("start", ["bash", "-c", f"cd {place.state}; {script}"], None, {}, str(output))
    restarts = 0
    while restarts < 10 or output.read_text().count("cloned") < 2:
        daemon.ok("restart")
        restarts += 1
        time.sleep(random.uniform(0, 0.5))
    stop.touch()
    assert daemon.inside.call("ended", clones, 120, patience=150) == 0, output.read_text()
    print(f"{restarts} restarts, {output.read_text().count('cloned')} clones")
    daemon.check_soundness()


def test_an_open_file_goes_on_where_it_was(daemon: Daemon) -> None:
    place = daemon.up()
    file = daemon.inside.call("os.open", place.path("a"), os.O_CREAT | os.O_RDWR)
    daemon.inside.call("os.write", file, b"before ")
    daemon.kill_worker()
    daemon.inside.call("os.write", file, b"after")
    assert daemon.inside.call("os.pread", file, 20, 0) == b"before after"
    daemon.inside.call("os.close", file)
    assert place.read("a") == b"before after"
    daemon.barrier()
    assert place.changes() == [["created a"]]


def test_a_file_that_was_removed_while_open_is_still_there_for_who_has_it(daemon: Daemon) -> None:
    place = daemon.up()
    place.write("a", b"content")
    daemon.barrier()
    file = daemon.inside.call("os.open", place.path("a"), os.O_RDONLY)
    daemon.inside.call("os.unlink", place.path("a"))
    daemon.barrier()
    daemon.kill_worker()
    assert daemon.inside.call("os.pread", file, 20, 0) == b"content"
    daemon.inside.call("os.close", file)
    assert place.names() == []


def test_what_was_said_of_a_removed_file_that_is_open_holds_too(daemon: Daemon) -> None:
    place = daemon.up()
    place.write("a", b"content")
    file = daemon.inside.call("os.open", place.path("a"), os.O_RDWR)
    daemon.inside.call("os.unlink", place.path("a"))
    daemon.barrier()
    daemon.inside.call("os.fchmod", file, 0o640)
    daemon.kill_worker()
    assert daemon.inside.call("os.fstat", file)[0] & 0o777 == 0o640
    daemon.inside.call("os.close", file)
    assert "skipped" not in daemon.said()


def test_a_worker_that_hangs_is_replaced(daemon: Daemon) -> None:
    place = daemon.up()
    place.write("a", b"before")
    hanging = daemon.worker
    os.kill(hanging, signal.SIGSTOP)
    place.write("a", b"after")
    assert daemon.worker != hanging
    assert place.read("a") == b"after"


def test_what_others_see_is_not_stale_after_a_takeover(daemon: Daemon) -> None:
    place = daemon.up(actor="alice")
    other = daemon.up(agent="default", actor="bob")
    place.write("a", b"one")
    assert other.read("a") == b"one"
    assert not daemon.inside.call("os.path.exists", other.path("b"))
    daemon.kill_worker()
    place.write("a", b"two")
    place.write("b", b"new")
    eventually(lambda: other.read("a") == b"two")
    eventually(lambda: other.names() == ["a", "b"])
