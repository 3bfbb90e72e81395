"""SIGKILL of the worker: nothing that was closed is lost, and sandboxes go on."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from engramfs.daemon.run_directory import keeper_of

from ..harness.daemon import ROOTS, Daemon, eventually
from ..harness.inside import Inside

# Saves file after file, and says of each, once its close() has returned, that it is there.
SAVING = """
import os
directory = os.environ["DIRECTORY"]
for number in range(1_000_000):
    if os.path.exists(os.environ["STOP"]):
        break
    with open(f"{directory}/{number % 50}", "wb", buffering=0) as file:
        file.write(b"%d" % number * (30_000 if number % 10 == 0 else 1))
    print(number, flush=True)
"""


def test_every_file_that_was_closed_is_there_after_each_of_several_kills(daemon: Daemon) -> None:
    place = daemon.up(actor="ann")
    stop = daemon.directory / "stop"
    saving = Inside(beside=place.inside.pid)
    result: list[str] = []

    def save() -> None:
        finished = saving.run(
            "python3", "-c", SAVING, timeout=90, environment={"DIRECTORY": place.state, "STOP": str(stop)}
        )
        assert finished.code == 0, finished
        result.append(finished.out)

    thread = threading.Thread(target=save)
    thread.start()
    try:
        for _ in range(4):
            time.sleep(0.5)
            before = daemon.kill_worker()
            assert daemon.worker != before
    finally:
        stop.touch()
        thread.join()
        saving.close()
    acknowledged = [int(line) for line in result[0].split()]
    assert len(acknowledged) > 100
    last = {number % 50: number for number in acknowledged}
    for name, number in last.items():
        assert place.read(str(name)) == b"%d" % number * (30_000 if number % 10 == 0 else 1)
    status = daemon.json("status")
    assert status["worker"]["restarts"] == 4


def test_another_worker_waits_and_takes_over(daemon: Daemon) -> None:
    place = daemon.up(actor="ann")
    keeper = keeper_of(daemon.run_directory)
    waiting: set[int] = set()

    def another_waits() -> bool:
        waiting.clear()
        waiting.update(workers_of(keeper or 0) - {daemon.worker})
        return len(waiting) == 1

    eventually(another_waits)
    time.sleep(0.5)
    place.write("before", b"content")
    daemon.kill_worker()
    place.write("after", b"content")
    assert daemon.worker in waiting
    assert daemon.json("status")["worker"]["restarts"] == 1
    before = daemon.worker
    eventually(another_waits)
    daemon.ok("restart")
    assert daemon.worker not in waiting | {before}, (
        "a restart is an upgrade: it begins from the program's file"
    )


def test_a_mount_that_ends_with_its_worker_is_made_again(daemon: Daemon) -> None:
    """No worker says that it is gone: each is killed as soon as it serves, and the connection had ended."""
    place = daemon.up(actor="ann")
    place.write("a", b"content")
    keeper = keeper_of(daemon.run_directory)
    assert keeper is not None
    os.kill(keeper, signal.SIGSTOP)
    worker = daemon.worker
    os.kill(worker, signal.SIGSTOP)
    assert daemon.inside.call("engramfs.mount.hub.abort", f"{daemon.run_directory}/fs")
    os.kill(worker, signal.SIGKILL)
    os.kill(keeper, signal.SIGCONT)
    log = daemon.directory / "run/daemon.log"
    eventually(lambda: "the sessions are attached" in log.read_text())
    assert place.read("a") == b"content"
    assert daemon.json("status")["worker"]["restarts"] == 1


def workers_of(keeper: int) -> set[int]:
    """The processes of the worker's program that the keeper has started."""
    children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    return {
        int(pid) for pid in children if b"engramfs.daemon.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    }


def test_before_linux_6_9_it_is_said_at_once_and_the_mount_is_made_again_after_a_crash(
    daemon: Daemon,
) -> None:
    """A program under this personality sees a kernel of the 2.6 series."""
    root = f"{ROOTS}/root"
    daemon.inside.call("os.mkdir", root)
    finished = daemon.command("up", "--root", root, through=["setarch", "--uname-2.6"])
    assert finished.code == 0, finished
    log = daemon.directory / "run/daemon.log"
    assert "this kernel is older than 6.9: when a worker crashes, what is open is closed" in log.read_text()
    state = f"{root}/mnt/memory/state"
    daemon.inside.call("write", f"{state}/a", b"content")
    file = daemon.inside.call("os.open", f"{state}/a", os.O_RDONLY)
    daemon.kill_worker()
    eventually(lambda: "the sessions are attached" in log.read_text())
    for call in (("os.pread", file, 10, 0), ("os.close", file)):
        with pytest.raises(OSError, match=r"not connected|abort"):
            daemon.inside.call(*call)
    assert daemon.inside.call("read", f"{state}/a") == b"content"


def test_open_files_go_on_and_what_is_unsealed_is_sealed(daemon: Daemon) -> None:
    daemon.configure('[batch]\nquiet = "1h"\nmax_age = "1h"\n')
    place = daemon.up(actor="ann")
    place.write("closed", b"closed")
    place.write("backup~", b"transient")
    new = place.inside.call("os.open", place.path("new"), 0o102)
    place.inside.call("os.write", new, b"half")
    place.write("unlinked", b"unlinked")
    unlinked = place.inside.call("os.open", place.path("unlinked"), 2)
    place.inside.call("os.unlink", place.path("unlinked"))
    before = daemon.kill_worker()
    assert daemon.worker != before
    assert place.read("closed") == b"closed"
    assert place.read("backup~") == b"transient"
    assert place.inside.call("os.pread", unlinked, 20, 0) == b"unlinked"
    place.inside.call("os.write", new, b" and half")
    place.inside.call("os.close", new)
    place.inside.call("os.close", unlinked)
    daemon.barrier()
    assert place.read(".versions/latest/new") == b"half and half"
    assert place.names(".versions/latest") == ["closed", "new"]
    assert place.names() == ["backup~", "closed", "new"]


def test_a_read_only_session_reads_on(daemon: Daemon) -> None:
    place = daemon.up(actor="ann")
    source = daemon.directory / "source"
    source.mkdir()
    (source / "file").write_bytes(b"content" * 100_000)
    daemon.ok("import", "memory/default/preferences", str(source))
    descriptor = place.inside.call("os.open", f"{place.preferences}/file", 0)
    daemon.kill_worker()
    assert place.inside.call("os.pread", descriptor, 7, 0) == b"content"
    place.inside.call("os.close", descriptor)
    assert len(place.inside.call("read", f"{place.preferences}/file")) == 700_000
