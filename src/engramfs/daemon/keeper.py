"""The keeper: the small process that holds the mount and the control socket, and keeps a worker alive.

    python -m engramfs.daemon.keeper --state DIR --run DIR [--config FILE]

It mounts the hub, listens on the control socket, and starts a worker with both descriptors. A worker
that exits with 0 was stopped in order, and the keeper stops too. One that dies otherwise, or exits with
`RESTART`, is replaced, and its successor takes the connection over: calls in flight wait for it.

Where that cannot be (a kernel before 6.9, a worker that never served, a connection on which worker after
worker dies), the connection is ended, the hub mounted afresh, and once the new worker is ready the
sessions are attached again where they were. Meanwhile they answer ENOTCONN: they are never bare.

Concurrency. One thread, which waits for descriptors and never for a mount: it touches nothing below the
hub, so a worker that hangs cannot hang it. It imports only the standard library, to stay small.

Under systemd it may be given the control socket (the descriptor `control`), and says what its worker
says: see `service_manager`.
"""

import argparse
import contextlib
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Sequence

from engramfs.daemon import adoption, control_socket
from engramfs.daemon.adoption import Orphan
from engramfs.daemon.crashes import LIMIT, Crashes
from engramfs.daemon.handover import FUSE, FUSE_SERVED, LOST, RESTART, Notifications, close_inherited
from engramfs.daemon.keeper_log import log
from engramfs.daemon.run_directory import RunDirectory
from engramfs.daemon.service_manager import ServiceManager
from engramfs.daemon.worker_process import WorkerProcess
from engramfs.errors import Busy, EngramError
from engramfs.mount.hub import Connection, can_resend, clear_dead, clear_stale
from engramfs.mount.mountinfo import read_mounts, top_mount

START_LIMIT = 90.0  # seconds until READY=1: a long journal may have to be replayed
HANG_LIMIT = 5.0  # seconds between two signs of life of a worker that gave one
KILL_LIMIT = 2.0  # seconds from SIGKILL to the worker's end
STOP_LIMIT = 10.0  # seconds from SIGTERM to the worker's end
ORPHAN_LIMIT = 5.0  # seconds that the worker of a killed keeper is given to end
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run(
    state: str,
    run: str,
    config: str | None = None,
    worker: Sequence[str] | None = None,
    *,
    take_over: bool | None = None,
) -> int:
    """Keep a worker running in the foreground until it is stopped; returns the exit code.

    `worker` is the command to keep, by default `engramfs.daemon.worker` for the same places. With
    `take_over` a worker goes on with the connection of the one before; by default, where the kernel can
    repeat requests. Raises `Busy` when a daemon runs there already, `Unavailable` when nothing can be
    mounted.
    """
    if take_over is None:
        take_over = can_resend()
        if not take_over:
            log("this kernel is older than 6.9: when a worker crashes, what is open is closed (ENOTCONN)")
    places = ["--state", os.path.abspath(state), "--run", os.path.abspath(run)]
    if config is not None:
        places += ["--config", os.path.abspath(config)]
    manager = ServiceManager(os.environ)
    close_inherited()
    directory = RunDirectory(run)
    os.chdir("/")  # whoever started us may stand inside a mount of ours
    try:
        command = worker or [sys.executable, "-m", "engramfs.daemon.worker", *places]
        orphan = _find_orphan(directory, manager)
        if orphan is None and clear_stale(directory.hub, patience=ORPHAN_LIMIT):
            log(f"removed the stale mount of a dead daemon at {directory.hub}")
        with _listening(directory.path, manager.control, orphan) as control:
            return Keeper(directory, control, command, manager, orphan, take_over=take_over).keep()
    finally:
        directory.close()


def _find_orphan(directory: RunDirectory, manager: ServiceManager) -> Orphan | None:
    """A worker without a keeper. Under a service manager there is none: it ends both together."""
    if manager.control is not None or top_mount(read_mounts(), directory.hub) is None:
        return None
    return adoption.find(directory.path)


def _listening(
    run: str, passed: int | None, orphan: Orphan | None
) -> contextlib.AbstractContextManager[socket.socket]:
    if orphan is None or passed is not None:
        return control_socket.listening(run, passed)
    return control_socket.inherited(run, orphan.control)


class Keeper:
    """One connection and one worker at a time."""

    def __init__(
        self,
        directory: RunDirectory,
        control: socket.socket,
        command: Sequence[str],
        manager: ServiceManager,
        orphan: Orphan | None = None,
        *,
        take_over: bool,
    ) -> None:
        self._directory = directory
        self._control = control
        self._command = command
        self._manager = manager
        self._take_over = take_over
        self._orphan = orphan
        self._notifications = Notifications()
        self._selector = selectors.DefaultSelector()
        self._crashes = Crashes()
        self._connection: Connection | None = None
        self._ready_since: float | None = None  # monotonic seconds
        self._last_crash = ""
        self._restarts = 0
        self._ended: set[int] = set()  # connections of which a mount may be left
        self._was_ready = False
        self._stopping = False
        self._was_killed = self._is_watched = False  # of the present worker
        self._worker: WorkerProcess | None = None
        self._deadline: float | None = None
        self._reattaching: tuple[int, int] | None = None  # pid, pidfd

    def keep(self) -> int:
        """Run until the worker is stopped, or cannot be kept running; the exit code."""
        signals, wake = socket.socketpair()
        with signals, wake, self._selector:
            _route_signals(signals, wake)
            self._selector.register(signals, selectors.EVENT_READ, lambda: self._on_signal(signals))
            self._selector.register(self._notifications, selectors.EVENT_READ, self._on_message)
            try:
                return self._keep()
            finally:
                signal.set_wakeup_fd(-1)
                self._notifications.close()

    def _keep(self) -> int:
        while not self._stopping:
            worker = self._serve_once()
            if worker.status == 0 or self._stopping:
                break
            end = worker.describe_end()
            log(end)
            if not self._was_ready and worker.status in _START_FAILED:
                return worker.status
            if worker.status != RESTART:
                self._last_crash = end
                delay = self._crashes.delay(self._served_for())
                if delay is None:
                    log(f"gave up: {LIMIT} crashes in a row; the last: {end}")
                    return worker.status if worker.status == Busy.exit_code else 1
                self._manager.tell(f"STATUS={end}; starting another")
                self._pause(delay)
            self._restarts += 1
        clear_dead(self._ended)
        log("stopped")
        return 0

    def _served_for(self) -> float:
        return time.monotonic() - self._ready_since if self._ready_since is not None else 0.0

    def _serve_once(self) -> WorkerProcess:
        """Run one worker to its end; the connection outlives it, if another can take it over."""
        connection = self._connection or self._connect()
        self._connection, self._ready_since = connection, None
        orderly = keep = False
        try:
            worker = self._adopt(self._orphan) if self._orphan else self._start(connection)
            self._run_to_end(worker, connection)
            orderly = worker.status == 0 or self._stopping
            lost = worker.status == LOST
            keep = not orderly and not lost and self._can_be_taken_over(connection)
            return worker
        finally:
            if not keep:
                self._end_reattaching(connection)
                connection.close(everywhere=orderly)
                self._ended.add(connection.minor)
                self._connection = None

    def _connect(self) -> Connection:
        if self._orphan is None:
            return Connection.open(self._directory.hub)
        return Connection.adopt(self._orphan.fuse, self._directory.hub)

    def _adopt(self, orphan: Orphan) -> WorkerProcess:
        """The worker of a keeper that died goes on; from now on it is ours."""
        self._orphan = None
        address = self._notifications.address
        worker = WorkerProcess.adopt(
            orphan.pid, orphan.process, lambda stderr: adoption.take_in(self._directory.path, address, stderr)
        )
        log(f"worker {worker.pid} of a keeper that died goes on")
        self._was_ready, self._ready_since = True, time.monotonic()
        self._manager.tell("READY=1")
        return worker

    def _can_be_taken_over(self, connection: Connection) -> bool:
        return connection.served and self._take_over and not self._crashes.connection_is_suspect

    def _start(self, connection: Connection) -> WorkerProcess:
        environment = {
            **os.environ,
            "WATCHDOG_USEC": str(int(min(self._manager.watchdog or HANG_LIMIT, HANG_LIMIT) * 1e6)),
            "NOTIFY_SOCKET": self._notifications.address,
            "ENGRAMFS_RESTARTS": str(self._restarts),
            "ENGRAMFS_LAST_CRASH": self._last_crash,
        }
        if not connection.served:
            self._directory.set_attaching(self._directory.has_sessions())
        name = FUSE_SERVED if connection.served else FUSE
        descriptors = {name: connection.descriptor, "control": self._control.fileno()}
        worker = WorkerProcess(self._command, descriptors, environment)
        log(f"started worker {worker.pid} on {connection.point}")
        return worker

    def _run_to_end(self, worker: WorkerProcess, connection: Connection) -> None:
        self._worker, self._was_killed, self._is_watched = worker, False, False
        self._deadline = time.monotonic() + START_LIMIT
        self._selector.register(worker.stderr, selectors.EVENT_READ, lambda: self._on_stderr(worker))
        self._selector.register(worker.exited, selectors.EVENT_READ, worker.reap)
        try:
            while worker.status is None:
                self._wait(self._deadline)
                if self._deadline is not None and time.monotonic() >= self._deadline:
                    self._end_late(worker, connection)
        finally:
            worker.signal(signal.SIGKILL)
            for descriptor in (worker.stderr, worker.exited):
                with contextlib.suppress(KeyError):
                    self._selector.unregister(descriptor)
            worker.close()
            self._worker = None

    def _end_late(self, worker: WorkerProcess, connection: Connection) -> None:
        """Kill a worker that is late; the connection too when that alone does not end it."""
        if self._was_killed:
            connection.abort()  # a worker that waits for its own mount can only be freed by that
            self._deadline = None
            return
        log(f"worker {worker.pid} is late; it is killed")
        worker.signal(signal.SIGKILL)
        self._was_killed, self._deadline = True, time.monotonic() + KILL_LIMIT

    def _wait(self, until: float | None) -> None:
        """Handle what has happened by the moment `until`, or wait for the next event."""
        limit = None if until is None else max(0.0, until - time.monotonic())
        for key, _ in self._selector.select(limit):
            key.data()

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopping and time.monotonic() < until:
            self._wait(until)

    def _on_signal(self, signals: socket.socket) -> None:
        signals.recv(64)
        if self._stopping:
            return
        self._stopping = True
        log("stopping")
        self._manager.tell("STOPPING=1")
        if self._worker is not None:
            self._worker.signal(signal.SIGTERM)
            self._deadline = time.monotonic() + STOP_LIMIT

    def _on_stderr(self, worker: WorkerProcess) -> None:
        if worker.forward() == b"":
            self._selector.unregister(worker.stderr)

    def _on_message(self) -> None:
        message = self._notifications.receive(self._worker.pid if self._worker else -1)
        if "STATUS" in message:
            log(f"worker: {message['STATUS']}")
        self._manager.forward(message)
        if message.get("READY") == "1" and not self._stopping:
            log("the worker is ready")
            self._was_ready = True
            self._deadline = None
            self._ready_since = time.monotonic()
            if self._connection is not None and not self._connection.served:
                self._connection.served = True
                if self._directory.has_sessions():
                    self._reattach()
                else:
                    self._directory.set_attaching(False)
            if self._reattaching is None:
                self._manager.tell("READY=1")
        self._is_watched = self._is_watched or message.get("WATCHDOG") == "1"
        if self._is_watched and self._ready_since is not None and not self._stopping:
            self._deadline = time.monotonic() + HANG_LIMIT
        if "EXIT_STATUS" in message and self._worker is not None:
            self._worker.told_status = int(message["EXIT_STATUS"])
        if message.get("STOPPING") == "1":
            self._deadline = time.monotonic() + STOP_LIMIT

    def _reattach(self) -> None:
        """Attach the sessions in a child, which may have to wait for the worker and end with its mount."""
        arguments = [sys.executable, "-m", "engramfs.mount.reattach", self._directory.path]
        child = os.posix_spawn(sys.executable, arguments, dict(os.environ))
        self._reattaching = child, os.pidfd_open(child)
        self._selector.register(self._reattaching[1], selectors.EVENT_READ, self._reap_reattaching)

    def _reap_reattaching(self) -> None:
        if self._reattaching is None:
            return
        (child, exited), self._reattaching = self._reattaching, None
        self._selector.unregister(exited)
        os.close(exited)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        log("the sessions are attached" if status == 0 else f"attaching sessions failed ({status})")
        self._directory.set_attaching(False)
        if status >= 0:
            self._manager.tell("READY=1")

    def _end_reattaching(self, connection: Connection) -> None:
        """Before the hub goes: a child that still attaches would attach what is dead."""
        if self._reattaching is not None:
            os.kill(self._reattaching[0], signal.SIGKILL)
            connection.abort()  # or it might wait for its mount, and could not be killed
            self._reap_reattaching()


# A first start that ends by itself would end the same way again, unless another worker was still going.
_START_FAILED = frozenset(range(1, 128)) - {Busy.exit_code, RESTART}


def _route_signals(signals: socket.socket, wake: socket.socket) -> None:
    for end in (signals, wake):
        end.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: None)


def main() -> int:
    parser = argparse.ArgumentParser(prog="engramfs daemon", description="Keep an engramfs worker running.")
    parser.add_argument("--state", required=True)
    parser.add_argument("--run", required=True)
    parser.add_argument("--config")
    places = parser.parse_args()
    try:
        return run(places.state, places.run, places.config)
    except EngramError as error:
        os.write(2, f"engramfs: {error}\n".encode(errors="replace"))
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
