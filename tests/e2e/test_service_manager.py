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
from engramfs.mount.hub import abort, mount_new
from engramfs.mount.mountinfo import read_mounts

from ..harness.inside import Inside

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
        self.stored: list[int] = []  # its descriptor store: the connection, if it has it
        self.keeper = 0
        self._control: socket.socket | None = None

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
        arguments = [sys.executable, "-P", str(KEEPER), str(self.run), *worker]
        self._start(arguments, descriptors, environment)

    def run_as_main(self, command: list[str], control: socket.socket, fuse: int | None = None) -> None:
        """Start `command` as the main process, with what is stored, or with `fuse` for the first time."""
        descriptors = {"control": control.fileno()}
        if self.stored:
            descriptors[handover.FUSE_SERVED] = self.stored[0]
        elif fuse is not None:
            descriptors[handover.FUSE] = fuse
        self._start(command, descriptors, {**os.environ, "NOTIFY_SOCKET": self.notify_socket})

    def _start(self, command: list[str], descriptors: dict[str, int], environment: dict[str, str]) -> None:
        said = os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.keeper = handover.start(command, descriptors, environment, said)
        os.close(said)

    def listen(self) -> socket.socket:
        """The control socket, made as by engramfs.socket."""
        self.run.mkdir(mode=0o700)
        control = socket.socket(socket.AF_UNIX)
        control.bind(str(self.run / "control"))
        control.listen(8)
        self._control = control
        return control

    def hear(self, limit: float = 15.0) -> str:
        """The next message, or an empty one after `limit` seconds."""
        if not select.select([self._listener], [], [], limit)[0]:
            return ""
        data, descriptors, _, _ = socket.recv_fds(self._listener, 8192, 4)
        self.heard.append(data.decode())
        self._keep(data.decode().splitlines(), descriptors)
        return self.heard[-1]

    def _keep(self, lines: list[str], descriptors: list[int]) -> None:
        """Keep one connection, and close others: they are copies of the same."""
        if "FDSTORE=1" in lines:
            assert "FDNAME=fuse-served" in lines
            assert "FDPOLL=0" in lines, "it would be woken by every request"
            self.stored += descriptors
        if "FDSTOREREMOVE=1" in lines:
            self.stored, descriptors = [], self.stored
        for descriptor in descriptors if "FDSTOREREMOVE=1" in lines else self.stored[1:]:
            os.close(descriptor)
        self.stored = self.stored[:1]

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

    def kill(self, *workers: int) -> None:
        """SIGKILL to the main process and to these."""
        for pid in (self.keeper, *workers):
            os.kill(pid, signal.SIGKILL)
        self.wait()

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
        if self._control is not None:
            self._control.close()
        for descriptor in self.stored:
            os.close(descriptor)


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


def the_real_one(systemd: Systemd, tmp_path: Path) -> list[str]:
    """What starts the keeper, or with its module replaced the worker, of engramfs itself."""
    places = ["--state", str(tmp_path / "state"), "--run", str(systemd.run)]
    return [sys.executable, "-P", "-m", "engramfs.daemon.keeper", *places]


@pytest.fixture
def client_process(systemd: Systemd) -> Iterator[Inside]:
    """What touches the mount: whoever has something open there while nobody serves may wait for ever."""
    inside = Inside(beside=os.getpid())
    yield inside
    inside.close()


def test_a_keeper_that_is_started_again_goes_on_with_the_stored_connection(
    systemd: Systemd, client_process: Inside, tmp_path: Path
) -> None:
    command, control = the_real_one(systemd, tmp_path), systemd.listen()
    systemd.run_as_main(command, control)
    systemd.hear_until("READY=1")
    client = ControlClient(str(systemd.run), timeout=10)
    client.call("store.create", name="memory/one")
    stores = client_process.call("os.open", str(systemd.run / "fs/stores"), os.O_RDONLY)
    for _ in range(2):
        systemd.kill(client.call("ping")["pid"])
        systemd.run_as_main(command, control)
        systemd.hear_until("READY=1")
        assert client_process.call("os.listdir", stores) == ["memory"]
    client_process.call("os.close", stores)
    assert "going on with the connection of the keeper before" in systemd.said.read_text()
    assert systemd.stop() == 0
    while systemd.hear(0.2):
        continue
    assert systemd.stored == [], "after a stop there is nothing to go on with"


def test_a_stored_connection_that_has_ended_is_dropped_and_the_mount_made_again(
    systemd: Systemd, client_process: Inside, tmp_path: Path
) -> None:
    command, control = the_real_one(systemd, tmp_path), systemd.listen()
    systemd.run_as_main(command, control)
    systemd.hear_until("READY=1")
    worker = ControlClient(str(systemd.run), timeout=10).call("ping")["pid"]
    os.kill(systemd.keeper, signal.SIGSTOP)
    assert abort(str(systemd.run / "fs"))
    systemd.kill()
    wait_for_end(worker)
    systemd.run_as_main(command, control)
    systemd.hear_until("READY=1")
    assert client_process.call("os.listdir", str(systemd.run / "fs")) == []
    assert "cannot go on with the connection" in systemd.said.read_text()


def test_the_worker_needs_no_keeper_but_a_service_manager(
    systemd: Systemd, client_process: Inside, tmp_path: Path
) -> None:
    """Whoever speaks the protocol keeps it: descriptors in, a copy of the connection out, another start."""
    control = systemd.listen()
    for name in ("fs", "sessions"):
        (systemd.run / name).mkdir()
    command = [part.replace("daemon.keeper", "daemon.worker") for part in the_real_one(systemd, tmp_path)]
    descriptor = mount_new(str(systemd.run / "fs"))
    systemd.run_as_main(command, control, fuse=descriptor)
    systemd.hear_until("READY=1")
    os.close(descriptor)
    session = ControlClient(str(systemd.run), timeout=10).call("session.open", agent="default")
    state = next(each["source"] for each in session["attachments"] if each["path"] == "/mnt/memory/state")
    path = str(systemd.run / "fs" / state / "file")
    file = client_process.call("os.open", path, os.O_CREAT | os.O_RDWR)
    client_process.call("os.write", file, b"one ")
    systemd.kill()
    systemd.run_as_main(command, control)
    systemd.hear_until("READY=1")
    client_process.call("os.write", file, b"two ")
    os.kill(systemd.keeper, signal.SIGTERM)
    os.kill(systemd.keeper, signal.SIGTERM)
    assert systemd.wait() == 0, "a second SIGTERM is harmless"
    systemd.hear_until("STOPPING=1")
    systemd.run_as_main(command, control)
    systemd.hear_until("READY=1")
    client_process.call("os.write", file, b"three")
    client_process.call("os.close", file)
    assert client_process.call("read", path) == b"one two three"
    assert systemd.stop() == 0
    mounted = [each.point for each in read_mounts() if each.is_ours and str(tmp_path) in each.point]
    assert mounted == [str(systemd.run / "fs")], "it did not unmount"
    syscalls.umount2(mounted[0], syscalls.MNT_DETACH)


def wait_for_end(pid: int) -> None:
    end = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < end
        time.sleep(0.01)
