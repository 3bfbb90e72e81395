"""The keeper under a service manager: what it takes from systemd and what it tells it.

The service manager here is a datagram socket and a process started as systemd starts one (see
sd_listen_fds(3), sd_notify(3)); the worker is the real FUSE worker of the keeper's tests.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engramfs.daemon import handover
from engramfs.daemon.client import ControlClient
from engramfs.mount import syscalls
from engramfs.mount.mountinfo import read_mounts

WORKER = Path(__file__).parent / "directory_worker.py"
KEEPER = Path(__file__).parent / "keeper_without_takeover.py"


class Systemd:
    """Starts a keeper as a unit of Type=notify, and hears what it says."""

    def __init__(self, directory: Path) -> None:
        self.run = directory / "run"
        self.served = directory / "served"
        self.served.mkdir()
        self.notify_socket = str(directory / "notify")
        self.said = directory / "said"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._listener.bind(self.notify_socket)
        self.heard: list[str] = []
        self.keeper = 0

    def start(
        self,
        *command: str,
        control: socket.socket | None = None,
        watchdog: float | None = None,
        watchdog_pid: int | None = None,
    ) -> None:
        worker = command or (sys.executable, str(WORKER), str(self.served))
        environment = {**os.environ, "NOTIFY_SOCKET": self.notify_socket}
        if watchdog is not None:
            environment["WATCHDOG_USEC"] = str(int(watchdog * 1e6))
        if watchdog_pid is not None:
            environment["WATCHDOG_PID"] = str(watchdog_pid)
        descriptors = {"control": control.fileno()} if control else {}
        said = os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        arguments = [sys.executable, "-P", str(KEEPER), str(self.run), *worker]
        self.keeper = handover.start(arguments, descriptors, environment, said)
        os.close(said)

    def listen(self) -> socket.socket:
        """The control socket, made as by engramfs.socket."""
        self.run.mkdir(mode=0o700)
        control = socket.socket(socket.AF_UNIX)
        control.bind(str(self.run / "control"))
        control.listen(8)
        return control

    def hear(self, limit: float = 15.0) -> str:
        """The next message, or an empty one after `limit` seconds."""
        if not select.select([self._listener], [], [], limit)[0]:
            return ""
        self.heard.append(self._listener.recv(8192).decode())
        return self.heard[-1]

    def hear_until(self, line: str, limit: float = 15.0) -> None:
        end = time.monotonic() + limit
        while line not in self.hear(limit).splitlines():
            assert time.monotonic() < end, f"never said {line}, but: {self.heard}"

    def worker(self) -> int:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(self.run / "control"))
            connection.sendall(b"pid")
            return int(connection.recv(20))

    def stop(self) -> int:
        """SIGTERM to the main process; its exit code."""
        os.kill(self.keeper, signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        handle = os.pidfd_open(self.keeper)
        assert select.select([handle], [], [], 20)[0], "the keeper has not ended"
        os.close(handle)
        keeper, self.keeper = self.keeper, 0
        return os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1])

    def close(self) -> None:
        if self.keeper:
            self.stop()
        self._listener.close()


@pytest.fixture
def systemd(private_namespace: None, tmp_path: Path) -> Iterator[Systemd]:
    systemd = Systemd(tmp_path)
    yield systemd
    systemd.close()
    left = [mount for mount in read_mounts() if mount.is_ours and mount.point.startswith(str(tmp_path))]
    for mount in reversed(left):
        syscalls.umount2(mount.point, syscalls.MNT_DETACH)
    assert left == []


def test_ready_is_said_only_once_the_worker_serves(systemd: Systemd) -> None:
    (systemd.served / "file").write_text("content")
    systemd.start()
    assert [systemd.hear(), systemd.hear()] == [f"STATUS=serving as {systemd.worker()}", "READY=1"]
    assert (systemd.run / "fs/file").read_text() == "content"


def test_ready_is_said_only_once_the_sessions_are_attached(systemd: Systemd, tmp_path: Path) -> None:
    for directory in (systemd.run / "sessions", tmp_path / "root", systemd.served / "state"):
        directory.mkdir(parents=True)
    mounts = [{"source": "state", "target": "/mnt/memory/state", "read_only": False}]
    place = {"root": str(tmp_path / "root"), "namespace": os.stat("/proc/self/ns/mnt").st_ino}
    session = {"id": "s1", "places": [place], "mounts": mounts}
    (systemd.run / "sessions/s1.json").write_text(json.dumps(session))
    systemd.start()
    systemd.hear_until("READY=1")
    assert os.path.ismount(tmp_path / "root/mnt/memory/state")
    assert systemd.heard.count("READY=1") == 1


def test_a_worker_that_makes_room_for_another_does_not_stop_the_service(
    systemd: Systemd, tmp_path: Path
) -> None:
    places = ["--state", str(tmp_path / "state"), "--run", str(systemd.run)]
    systemd.start(sys.executable, "-m", "engramfs.daemon.worker", *places)
    systemd.hear_until("READY=1")
    ControlClient(str(systemd.run)).call("restart")
    systemd.hear_until("READY=1")
    assert not [message for message in systemd.heard if "STOPPING=1" in message]


def test_a_worker_that_never_serves_is_never_said_to_be_ready(systemd: Systemd) -> None:
    systemd.start(sys.executable, "-c", "import sys; sys.exit(2)")
    assert systemd.wait() == 2
    assert systemd.hear(0) == ""


def test_stopping_is_said_before_the_worker_ends(systemd: Systemd) -> None:
    systemd.start()
    systemd.hear_until("READY=1")
    assert systemd.stop() == 0
    assert systemd.hear(0) == "STOPPING=1"


def test_the_end_of_a_worker_is_said_and_the_next_is_ready_again(systemd: Systemd) -> None:
    systemd.start()
    systemd.hear_until("READY=1")
    worker = systemd.worker()
    os.kill(worker, signal.SIGKILL)
    systemd.hear_until(f"STATUS=worker {worker} ended (killed by SIGKILL); starting another")
    systemd.hear_until("READY=1")
    assert systemd.worker() != worker


def test_keep_alives_are_sent_while_the_worker_answers_and_not_when_it_hangs(systemd: Systemd) -> None:
    systemd.start(watchdog=0.4)
    systemd.hear_until("READY=1")
    for _ in range(3):
        assert systemd.hear(2) == "WATCHDOG=1"
    worker = systemd.worker()
    os.kill(worker, signal.SIGSTOP)
    while systemd.hear(0.1):
        continue  # sent before it stopped
    assert systemd.hear(1.2) == "", "the keeper is well, but it is not the keeper that serves"
    os.kill(worker, signal.SIGCONT)
    assert systemd.hear(5) == "WATCHDOG=1"


def test_no_keep_alives_are_sent_when_none_are_asked_for(systemd: Systemd) -> None:
    systemd.start(watchdog=0.4, watchdog_pid=1)
    systemd.hear_until("READY=1")
    assert systemd.hear(1) == ""


def test_the_worker_sees_nothing_of_the_service_manager(systemd: Systemd) -> None:
    control = systemd.listen()
    systemd.start(control=control, watchdog=60)
    systemd.hear_until("READY=1")
    worker = systemd.worker()
    text = Path(f"/proc/{worker}/environ").read_text()
    environment = dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
    assert environment["NOTIFY_SOCKET"] != systemd.notify_socket, "it tells its keeper"
    assert environment["LISTEN_PID"] == str(worker)
    assert environment["LISTEN_FDNAMES"] == "fuse:control"
    assert environment["WATCHDOG_USEC"] == "5000000", "the keeper itself wants signs of life, and sooner"
    assert "WATCHDOG_PID" not in environment
    control.close()


def test_a_passed_control_socket_is_served_and_stays_when_the_daemon_ends(systemd: Systemd) -> None:
    control = systemd.listen()
    inode = os.stat(systemd.run / "control").st_ino
    with socket.socket(socket.AF_UNIX) as early:
        early.settimeout(20)
        early.connect(str(systemd.run / "control"))
        early.sendall(b"pid")
        systemd.start(control=control)
        assert int(early.recv(20)) > 0, "who asked before the daemon ran is answered"
    assert os.stat(systemd.run / "control").st_ino == inode
    assert systemd.stop() == 0
    assert os.stat(systemd.run / "control").st_ino == inode
    systemd.start(control=control)
    assert systemd.worker() > 0
    control.close()


def test_a_control_socket_that_clients_would_not_find_is_refused(systemd: Systemd, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as elsewhere:
        elsewhere.bind(str(tmp_path / "elsewhere"))
        elsewhere.listen(8)
        systemd.start(control=elsewhere)
        assert systemd.wait() == 1
    assert "clients look for" in systemd.said.read_text()
    assert systemd.said.read_text().count("\n") == 1


def test_a_service_manager_that_is_gone_does_not_end_the_keeper(systemd: Systemd) -> None:
    os.unlink(systemd.notify_socket)
    systemd.start(watchdog=0.2)
    end = time.monotonic() + 15
    while not (systemd.said.exists() and "cannot be told" in systemd.said.read_text()):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert systemd.worker() > 0


def test_the_real_worker_sends_keep_alives(systemd: Systemd, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "engramfs.daemon.worker"]
    systemd.start(*command, "--state", str(tmp_path / "state"), "--run", str(systemd.run), watchdog=0.4)
    systemd.hear_until("READY=1")
    assert "STATUS=serving 0 stores" in systemd.heard
    assert systemd.hear(5) == "WATCHDOG=1"
    assert systemd.hear(5) == "WATCHDOG=1"


def test_engramfs_daemon_is_what_the_unit_starts(systemd: Systemd, tmp_path: Path) -> None:
    """`ExecStart=engramfs daemon` makes the keeper the main process, which may take the descriptors."""
    control = systemd.listen()
    environment = {**os.environ, "NOTIFY_SOCKET": systemd.notify_socket, "WATCHDOG_USEC": "60000000"}
    places = ["--state", str(tmp_path / "state"), "--run", str(systemd.run)]
    with open(systemd.said, "wb") as said:
        command = [sys.executable, "-m", "engramfs", *places, "daemon"]
        descriptors = {"control": control.fileno()}
        systemd.keeper = handover.start(command, descriptors, environment, said.fileno())
    systemd.hear_until("READY=1")
    status = subprocess.run(
        [sys.executable, "-m", "engramfs", *places, "status"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert str(systemd.run / "fs") in status.stdout
    assert systemd.stop() == 0
    control.close()
