"""The keeper keeps a worker alive: it comes back after SIGKILL, with its mount and every session's mounts.

The worker here serves an ordinary directory (directory_worker.py): a real FUSE worker, a small one.
"""

import errno
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engramfs.daemon.run_directory import why_nobody_serves
from engramfs.mount import syscalls
from engramfs.mount.mountinfo import read_mounts

WORKER = Path(__file__).parent / "directory_worker.py"
KEEPER = Path(__file__).parent / "keeper_without_takeover.py"


class Daemon:
    """A keeper in a process of its own, over one state and run directory, with what it said so far."""

    def __init__(self, directory: Path) -> None:
        self.run = directory / "run"
        self.served = directory / "served"
        self.served.mkdir()
        self.said = directory / "said"
        self.keepers: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str, wait: bool = True) -> subprocess.Popen[bytes]:
        worker = command or (sys.executable, str(WORKER), str(self.served))
        ready = self.text().count("is ready")
        with open(self.said, "ab") as said:
            arguments = [sys.executable, "-P", str(KEEPER), str(self.run), *worker]
            keeper = subprocess.Popen(arguments, stderr=said, stdin=subprocess.DEVNULL)
        self.keepers.append(keeper)
        if wait:
            eventually(lambda: self.text().count("is ready") > ready)
        return keeper

    def text(self) -> str:
        return self.said.read_text() if self.said.exists() else ""

    def ask(self, what: bytes = b"pid") -> int:
        """The pid of the worker, as it says itself on the control socket."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(self.run / "control"))
            connection.sendall(what)
            return int(connection.recv(20))

    def kill_worker(self) -> None:
        """SIGKILL, and wait until another one is ready."""
        ready = self.text().count("is ready")
        os.kill(self.ask(), signal.SIGKILL)
        eventually(lambda: self.text().count("is ready") > ready)

    def end(self) -> None:
        for keeper in self.keepers:
            if keeper.poll() is None:
                keeper.terminate()
                keeper.wait(20)


@pytest.fixture
def daemon(private_namespace: None, tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path)
    yield daemon
    daemon.end()
    left = [mount for mount in read_mounts() if mount.is_ours and mount.point.startswith(str(tmp_path))]
    for mount in reversed(left):
        syscalls.umount2(mount.point, syscalls.MNT_DETACH)
    assert left == []


def eventually(condition: Callable[[], bool], limit: float = 15.0) -> None:
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.02)


def mounts_under(directory: Path) -> list[str]:
    return sorted(m.point for m in read_mounts() if m.is_ours and m.point.startswith(str(directory)))


def write_session(daemon: Daemon, root: Path) -> None:
    """A session that a worker will find, attached at `root`, which is made too."""
    root.mkdir(exist_ok=True)
    sessions = daemon.run / "sessions"
    sessions.mkdir(parents=True, exist_ok=True)
    for directory in ("parents/memory/state", "state"):
        (daemon.served / directory).mkdir(parents=True, exist_ok=True)
    session = {
        "id": "s1",
        "agent": "digest",
        "actor": "ann",
        "tenant": None,
        "attachments": [],
        "places": [{"root": str(root), "namespace": os.stat("/proc/self/ns/mnt").st_ino}],
        "mounts": [
            {"source": "parents/memory", "target": "/mnt/memory", "read_only": True},
            {"source": "state", "target": "/mnt/memory/state", "read_only": False},
        ],
    }
    (sessions / "s1.json").write_text(json.dumps(session))


def test_the_hub_is_served_and_private(daemon: Daemon) -> None:
    (daemon.served / "file").write_text("content")
    daemon.start()
    assert (daemon.run / "fs/file").read_text() == "content"
    assert stat.S_IMODE(os.stat(daemon.run).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(daemon.run / "control").st_mode) == 0o600
    assert (daemon.run / "sessions").is_dir()


def test_sigterm_stops_in_order_and_leaves_nothing(daemon: Daemon) -> None:
    keeper = daemon.start()
    worker = daemon.ask()
    keeper.send_signal(signal.SIGTERM)
    keeper.send_signal(signal.SIGTERM)
    assert keeper.wait(15) == 0
    assert mounts_under(daemon.run) == []
    assert not (daemon.run / "control").exists()
    assert not os.path.exists(f"/proc/{worker}")


def test_a_worker_that_ends_in_order_stops_the_keeper(daemon: Daemon) -> None:
    keeper = daemon.start()
    daemon.ask(b"stop")
    assert keeper.wait(15) == 0
    assert mounts_under(daemon.run) == []


def test_a_killed_worker_comes_back_on_the_same_place_and_socket(daemon: Daemon) -> None:
    (daemon.served / "file").write_text("content")
    daemon.start()
    first = daemon.ask()
    daemon.kill_worker()
    assert daemon.ask() != first
    assert (daemon.run / "fs/file").read_text() == "content"
    assert mounts_under(daemon.run) == [str(daemon.run / "fs")], "mounts do not pile up"
    assert "killed by SIGKILL" in daemon.text()


def test_a_request_made_while_no_worker_runs_is_answered_by_the_next(daemon: Daemon) -> None:
    daemon.start()
    os.kill(daemon.ask(), signal.SIGKILL)
    assert daemon.ask() > 0


def test_sessions_are_attached_again_after_a_crash(daemon: Daemon, tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_session(daemon, root)
    daemon.start()
    eventually(lambda: "sessions are attached" in daemon.text())
    for number in range(3):
        daemon.kill_worker()
        eventually(lambda: "sessions are attached" in daemon.text().split("SIGKILL")[-1])
        (root / "mnt/memory/state" / str(number)).write_text("written")
        assert (daemon.served / "state" / str(number)).read_text() == "written"
        assert len(mounts_under(root)) == 2, "stale mounts are replaced, not covered"


def test_what_is_attached_is_never_bare_while_the_worker_is_away(daemon: Daemon, tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_session(daemon, root)
    daemon.start()
    eventually(lambda: "sessions are attached" in daemon.text())
    place = root / "mnt/memory/state/line"
    allowed = {errno.ENOTCONN, errno.ECONNABORTED, errno.EROFS}
    seen: set[int] = set()
    os.kill(daemon.ask(), signal.SIGKILL)
    written = False
    end = time.monotonic() + 15
    while not written and time.monotonic() < end:
        try:
            place.write_text("x")
            written = "sessions are attached" in daemon.text().split("SIGKILL")[-1]
        except OSError as error:
            seen.add(error.errno or 0)
    assert written
    assert seen <= allowed, f"{[os.strerror(number) for number in seen]}"
    assert (daemon.served / "state/line").read_text() == "x"
    assert [path.name for path in root.rglob("*") if path.is_file()] == ["line"]


def test_stopping_takes_the_sessions_mounts_off_too(daemon: Daemon, tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_session(daemon, root)
    keeper = daemon.start()
    eventually(lambda: "sessions are attached" in daemon.text())
    keeper.terminate()
    assert keeper.wait(15) == 0
    assert mounts_under(root) == []


def test_stopping_before_the_sessions_are_attached_again_leaves_nothing(
    daemon: Daemon, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    write_session(daemon, root)
    keeper = daemon.start()
    eventually(lambda: "sessions are attached" in daemon.text())
    (daemon.run / "sessions/s1.json").unlink()
    daemon.kill_worker()
    assert len(mounts_under(root)) == 2, "still there, and dead"
    keeper.terminate()
    assert keeper.wait(15) == 0
    assert mounts_under(root) == []


def test_a_session_file_that_cannot_be_read_is_named_and_the_others_are_attached(
    daemon: Daemon, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    write_session(daemon, root)
    (daemon.run / "sessions/broken.json").write_text('{"id": ')
    daemon.start()
    eventually(lambda: "attaching sessions failed" in daemon.text())
    assert "broken.json" in daemon.text()
    assert len(mounts_under(root)) == 2


def test_a_second_daemon_is_refused_naming_the_first(daemon: Daemon) -> None:
    first = daemon.start()
    second = daemon.start(wait=False)
    assert second.wait(10) == 4
    assert f"a daemon runs already in {daemon.run} (pid {first.pid})" in daemon.text()
    assert daemon.ask() > 0


def test_a_killed_daemon_leaves_a_stale_mount_that_the_next_replaces(daemon: Daemon) -> None:
    keeper = daemon.start()
    worker = daemon.ask()
    keeper.kill()
    keeper.wait(10)
    eventually(lambda: not os.path.exists(f"/proc/{worker}"))
    assert mounts_under(daemon.run) == [str(daemon.run / "fs")]
    daemon.start()
    assert "removed the stale mount" in daemon.text()
    assert mounts_under(daemon.run) == [str(daemon.run / "fs")]
    assert os.listdir(daemon.run / "fs") == []


def test_a_daemon_started_right_after_a_kill_waits_for_the_old_worker(daemon: Daemon) -> None:
    keeper = daemon.start()
    keeper.kill()
    keeper.wait(10)
    daemon.start()
    assert os.listdir(daemon.run / "fs") == []


CRASHES = (
    "import os, sys; from engramfs.daemon.handover import notify\n"
    "{first}; print('no room for the log', file=sys.stderr, flush=True); os.abort()"
)


def test_a_worker_that_never_was_ready_and_keeps_crashing_is_given_up_with_its_last_line(
    daemon: Daemon,
) -> None:
    started = time.monotonic()
    keeper = daemon.start(sys.executable, "-c", CRASHES.format(first="pass"), wait=False)
    assert keeper.wait(30) == 1
    assert time.monotonic() - started < 10
    last = daemon.text().splitlines()[-1]
    assert "gave up: 5 crashes" in last
    assert "SIGABRT" in last
    assert last.endswith("no room for the log")
    assert daemon.text().count("started worker") == 5
    assert mounts_under(daemon.run) == []


def test_where_a_worker_has_served_once_another_one_is_tried_for_ever(daemon: Daemon) -> None:
    keeper = daemon.start(sys.executable, "-c", CRASHES.format(first="notify('READY=1')"), wait=False)
    eventually(lambda: daemon.text().count("started worker") >= 6)
    assert why_nobody_serves(str(daemon.run)).partition("; another")[0].endswith("no room for the log")
    assert keeper.poll() is None
    keeper.terminate()
    assert keeper.wait(15) == 0
    assert mounts_under(daemon.run) == []


def test_a_keeper_that_was_stopped_blames_no_worker_for_it(daemon: Daemon) -> None:
    keeper = daemon.start()
    worker = daemon.ask()
    time.sleep(1.5)
    keeper.send_signal(signal.SIGSTOP)
    time.sleep(7)
    keeper.send_signal(signal.SIGCONT)
    time.sleep(2)
    assert daemon.ask() == worker


def test_a_worker_that_cannot_start_is_not_tried_again(daemon: Daemon) -> None:
    script = "import sys; print('unknown key batch.quite', file=sys.stderr); sys.exit(2)"
    keeper = daemon.start(sys.executable, "-c", script, wait=False)
    assert keeper.wait(10) == 2
    assert daemon.text().count("started worker") == 1
    assert daemon.text().splitlines()[-1].endswith("unknown key batch.quite")


def test_a_command_that_does_not_exist_is_said(daemon: Daemon) -> None:
    assert daemon.start("/no/such/worker", wait=False).wait(10) == 127
    assert "cannot start /no/such/worker" in daemon.text()


def test_a_worker_that_ignores_sigterm_is_killed_at_the_deadline(daemon: Daemon) -> None:
    script = (
        "import signal, time; from engramfs.daemon.handover import notify\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); notify('READY=1'); time.sleep(600)"
    )
    keeper = daemon.start(sys.executable, "-c", script)
    started = time.monotonic()
    keeper.terminate()
    assert keeper.wait(30) == 0
    assert 9 < time.monotonic() - started < 15


def test_a_worker_that_lives_and_does_not_serve_is_replaced(daemon: Daemon) -> None:
    (daemon.served / "file").write_text("content")
    daemon.start()
    deaf = daemon.ask(b"deaf")
    started = time.monotonic()
    eventually(lambda: daemon.text().count("is ready") == 2)
    assert 4 < time.monotonic() - started < 12
    assert (daemon.run / "fs/file").read_text() == "content"
    assert f"worker {deaf} ended (killed by SIGKILL): gave no answer at its mount in time" in daemon.text()


def test_whoever_asks_at_the_mount_may_be_killed_too(daemon: Daemon) -> None:
    keeper = daemon.start()
    worker = daemon.ask()
    for _ in range(2):
        eventually(lambda: len(children(keeper.pid)) == 2)
        (asking,) = children(keeper.pid) - {worker}
        os.kill(asking, signal.SIGKILL)
        eventually(lambda: not {asking} & children(keeper.pid))  # noqa: B023
    assert daemon.ask() == worker


def children(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def test_a_worker_that_crashes_while_it_stops_is_not_replaced(daemon: Daemon) -> None:
    script = (
        "import os; from engramfs.daemon.handover import notify\n"
        "notify('READY=1'); notify('STOPPING=1', 'EXIT_STATUS=0'); os.abort()"
    )
    keeper = daemon.start(sys.executable, "-c", script, wait=False)
    assert keeper.wait(10) == 0
    assert daemon.text().count("started worker") == 1
    assert "while it stopped; what it had not sealed is in the journal" in daemon.text()
    assert mounts_under(daemon.run) == []


def test_what_a_worker_said_before_its_end_counts_when_both_are_noticed_at_once(daemon: Daemon) -> None:
    script = (
        "import os, signal; from engramfs.daemon.handover import notify\n"
        "keeper, worker = os.getppid(), os.getpid()\n"
        "os.kill(keeper, signal.SIGSTOP)\n"
        "notify('READY=1'); notify('STOPPING=1', 'EXIT_STATUS=0')\n"
        "if os.fork(): os.abort()\n"
        "while os.getppid() == worker: os.sched_yield()\n"
        "os.kill(keeper, signal.SIGCONT)"
    )
    keeper = daemon.start(sys.executable, "-c", script, wait=False)
    assert keeper.wait(10) == 0
    assert daemon.text().count("started worker") == 1


def test_ctrl_c_reaches_only_the_keeper_which_stops_in_order(daemon: Daemon) -> None:
    keeper = daemon.start()
    assert os.getsid(daemon.ask()) != os.getsid(keeper.pid)
    keeper.send_signal(signal.SIGINT)
    assert keeper.wait(15) == 0
    assert "SIGINT" not in daemon.text()


def test_a_run_directory_deeper_than_a_socket_address_works(private_namespace: None, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    daemon = Daemon(deep)
    daemon.start()
    assert os.listdir(daemon.run / "fs") == []
    daemon.end()
    assert mounts_under(deep) == []


def test_the_keeper_stays_small_and_imports_nothing_heavy(daemon: Daemon) -> None:
    keeper = daemon.start()
    daemon.kill_worker()
    status = Path(f"/proc/{keeper.pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    assert resident < 24 * 1024, f"{resident} KiB"
    loaded = subprocess.run(
        [sys.executable, "-c", "import engramfs.daemon.keeper, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    ).stdout.split()
    assert not {"trio", "lmdb", "pyfuse3", "msgspec", "structlog", "click", "rich"} & set(loaded)


def test_crashes_and_restarts_leak_no_descriptors(daemon: Daemon) -> None:
    keeper = daemon.start()
    daemon.kill_worker()
    before = len(os.listdir(f"/proc/{keeper.pid}/fd"))
    daemon.kill_worker()
    daemon.kill_worker()
    assert len(os.listdir(f"/proc/{keeper.pid}/fd")) == before


def test_a_message_from_another_process_is_not_heard(daemon: Daemon) -> None:
    daemon.start()
    address = Path(f"/proc/{daemon.ask()}/environ").read_bytes().split(b"NOTIFY_SOCKET=")[1].split(b"\0")[0]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"STATUS=forged", b"\0" + address[1:])
    daemon.kill_worker()
    assert "forged" not in daemon.text()


def test_a_missing_privilege_is_said_in_one_line_within_a_second(
    private_namespace: None, tmp_path: Path
) -> None:
    command = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--", sys.executable, "-m"]
    places = ["--state", str(tmp_path / "state"), "--run", str(tmp_path / "run")]
    started = time.monotonic()
    done = subprocess.run(
        [*command, "engramfs.daemon.keeper", *places], capture_output=True, text=True, timeout=20, check=False
    )
    assert time.monotonic() - started < 1
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(
        f"engramfs: cannot mount {tmp_path}/run/fs: Operation not permitted; run as root"
    )
    assert not (tmp_path / "run/control").exists()


def test_a_daemon_started_from_inside_its_own_dead_mount_comes_up(daemon: Daemon) -> None:
    (daemon.served / "inside").mkdir()
    keeper = daemon.start()
    os.chdir(daemon.run / "fs/inside")
    try:
        worker = daemon.ask()
        keeper.kill()
        keeper.wait(10)
        eventually(lambda: not os.path.exists(f"/proc/{worker}"))
        daemon.start()
        assert os.listdir(daemon.run / "fs") == ["inside"]
    finally:
        os.chdir("/")
