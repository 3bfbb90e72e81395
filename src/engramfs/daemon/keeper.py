"""The keeper: the small process that holds the mount and the control socket, and keeps a worker alive.

    python -m engramfs.daemon.keeper --state DIR --run DIR [--config FILE]

It mounts the hub, listens on the control socket, and starts a worker with both descriptors. A worker
that exits with 0 was stopped in order, and the keeper stops too. One that dies otherwise, or exits with
`RESTART`, is replaced, and its successor takes the connection over: calls in flight wait for it. That is
never given up once a worker has served: one that cannot start now may be able to when the disk has room.

Where that cannot be (a kernel before 6.9, a worker that never served, a connection on which worker after
worker dies), the connection is ended, the hub mounted afresh, and once the new worker is ready the
sessions are attached again where they were. Meanwhile they answer ENOTCONN: they are never bare.

Another worker waits beside the one that serves, imported and ready, so that a crash costs little time. A
restart that was asked for starts a new one, which may be of a newer version.

A worker that hangs is killed and replaced: one that gives no sign of life, and one whose mount does not
answer, which the keeper has a child ask once a second.

Concurrency. One thread, which waits for descriptors and never for a mount: it touches nothing below the
hub, so a worker that hangs cannot hang it. It imports only the standard library, to stay small.

Under systemd it may be given the control socket (the descriptor `control`), and says what its worker
says: see `service_manager`.
"""

import argparse
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from engramfs.daemon import adoption, control_socket, predecessor
from engramfs.daemon.crashes import LIMIT, Crashes
from engramfs.daemon.events import Events
from engramfs.daemon.handover import LOST, RESTART, close_inherited
from engramfs.daemon.held_connection import HeldConnection
from engramfs.daemon.keeper_log import log
from engramfs.daemon.notifications import Notifications
from engramfs.daemon.predecessor import Left
from engramfs.daemon.probe import Probe
from engramfs.daemon.run_directory import RunDirectory
from engramfs.daemon.service_manager import ServiceManager
from engramfs.daemon.spare import Spare
from engramfs.daemon.worker_process import WorkerProcess
from engramfs.errors import Busy, EngramError
from engramfs.mount.connection import Connection
from engramfs.mount.hub import can_resend

START_LIMIT = 90.0  # seconds until READY=1: a long journal may have to be replayed
HANG_LIMIT = 5.0  # seconds between two signs of life of a worker, and for an answer at its mount
KILL_LIMIT = 8.0  # seconds from SIGKILL to the worker's end: a slow disk may hold it
STOP_LIMIT = 10.0  # seconds from SIGTERM to the worker's end
STOPPED = 1.0  # seconds that a moment is missed by when this process did not run meanwhile
MOST_LAST_WORDS = 512  # messages read after a worker's end: anybody may send some, and for ever
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

# What a worker may owe.
READY, SIGN_OF_LIFE, ANSWER = "readiness", "sign of life", "answer at its mount"


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
    take_over = says_whether_taken_over() if take_over is None else take_over
    manager = ServiceManager(os.environ)
    close_inherited()
    directory = RunDirectory(run)
    os.chdir("/")  # whoever started us may stand inside a mount of ours
    try:
        command = worker or worker_command(state, run, config)
        left = predecessor.find(directory, manager, take_over=take_over)
        with _listening(directory.path, manager.control, left) as control:
            keeper = Keeper(
                directory,
                control,
                command,
                lambda: Connection.open(directory.hub),
                directory.hub,
                manager,
                left,
                take_over=take_over,
                keeps_spare=worker is None,
            )
            return keeper.keep()
    finally:
        directory.close()


def says_whether_taken_over() -> bool:
    """Whether this kernel lets a worker take over from one that died. One that does not is said to be so."""
    if can_resend():
        return True
    log("this kernel is older than 6.9: when a worker crashes, what is open is closed (ENOTCONN)")
    return False


def worker_command(state: str, run: str, config: str | None) -> list[str]:
    """What starts `engramfs.daemon.worker` for these places."""
    places = ["--state", os.path.abspath(state), "--run", os.path.abspath(run)]
    if config is not None:
        places += ["--config", os.path.abspath(config)]
    return [sys.executable, "-m", "engramfs.daemon.worker", *places]


def _listening(run: str, passed: int | None, left: Left) -> contextlib.AbstractContextManager[socket.socket]:
    if left.worker is None or passed is not None:
        return control_socket.listening(run, passed)
    return control_socket.inherited(run, left.worker.control)


class Keeper:
    """One connection and one worker at a time.

    `connect` makes the connection, mounted at `point`; `left` is what an earlier keeper had. With
    `keeps_spare` the command understands the descriptor `turn`, and another worker waits. `in_foreground`
    is for a person's terminal: only what goes wrong is said, what fails to start is not tried again, and an
    unmount from outside is the end.
    """

    def __init__(
        self,
        directory: RunDirectory,
        control: socket.socket,
        command: Sequence[str],
        connect: Callable[[], Connection],
        point: str,
        manager: ServiceManager,
        left: Left,
        *,
        take_over: bool,
        keeps_spare: bool = True,
        in_foreground: bool = False,
    ) -> None:
        self._directory = directory
        self._control = control
        self._command = command
        self._point = point
        self._manager = manager
        self._orphan = left.worker
        self._in_foreground = in_foreground
        self._events = Events()
        self._held = HeldConnection(
            connect, directory, manager, self._events, left.connection, take_over=take_over
        )
        self._notifications = Notifications()
        self._crashes = Crashes()
        self._worker: WorkerProcess | None = None
        self._probe = Probe(point, self._events, self._on_answer)
        self._spare = Spare(command, self._environment(), self._events) if keeps_spare else None
        self._last_crash = ""
        self._restarts = 0
        self._was_ready = False  # some worker
        self._stopping = False

    def keep(self) -> int:
        """Run until the worker is stopped, or cannot be kept running; the exit code."""
        with self._events.signals(STOP_SIGNALS, self._stop):
            self._events.watch(self._notifications, self._on_message)
            code = 1
            try:
                code = self._keep_workers()
            finally:
                self._end_spare()
                self._held.let_go(for_good=code == 0)
                self._probe.close()
                self._notifications.close()
        if code == 0:
            self._say("stopped")
        return code

    # From the first worker to the last

    def _keep_workers(self) -> int:
        while not self._stopping:
            worker = self._serve_once()
            self._crashes.served(worker.served_for)
            if self._is_end(worker):
                return 0
            end = worker.describe_end()
            if self._stopping or worker.told_status == 0:
                log(f"{end}, while it stopped; what it had not sealed is in the journal")
                return 0
            log(end)
            if self._would_fail_again(worker):
                return worker.exit_code
            delay = self._crashed(worker, end) if worker.status != RESTART else 0.0
            if self._crashes.is_hopeless and (self._in_foreground or not self._was_ready):
                log(f"gave up: {LIMIT} crashes in a row; the last: {end}")
                return worker.exit_code if worker.status == Busy.exit_code else 1
            if worker.status == RESTART:
                self._end_spare()  # it may be of an older version than what is to come
            if worker.status == LOST or not self._can_be_taken_over():
                self._held.end()
            self._pause(delay)
            self._restarts += 1
        return 0

    def _is_end(self, worker: WorkerProcess) -> bool:
        """Whether a worker ended as it was to, and no other one comes."""
        if worker.status == LOST:
            return self._in_foreground
        return worker.status == 0 or (worker.status == RESTART and self._stopping)

    def _would_fail_again(self, worker: WorkerProcess) -> bool:
        """Of a first start that ended by itself. Another worker that was still going will be gone soon."""
        ended_by_itself = worker.exit_code > 0 and worker.status != RESTART
        is_busy = worker.status == Busy.exit_code and not self._in_foreground
        return not self._was_ready and ended_by_itself and not is_busy

    def _crashed(self, worker: WorkerProcess, end: str) -> float:
        """Seconds to wait before the next worker."""
        self._last_crash = f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {end}"
        self._manager.tell(f"STATUS={end}; starting another")
        delay = self._crashes.delay(from_outside=worker.was_killed_from_outside)
        self._directory.say_why_nobody_serves(f"{self._last_crash}; another one starts within {delay:g} s")
        return delay

    def _can_be_taken_over(self) -> bool:
        return self._held.can_be_handed_on and not self._crashes.connection_is_suspect

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopping and time.monotonic() < until:
            self._events.wait(until)

    # One worker

    def _serve_once(self) -> WorkerProcess:
        """Run one worker to its end; the connection outlives it."""
        self._held.current()
        worker = self._worker = self._adopted() or self._started()
        self._events.watch(worker.stderr, lambda: self._on_stderr(worker))
        self._events.watch(worker.exited, worker.reap)
        try:
            while worker.status is None:
                self._wait(worker)
                if (what := worker.overdue()) is not None:
                    self._end_late(worker, what)
                self._look_after(worker)
            self._hear_last_words()
        finally:
            worker.signal(signal.SIGKILL)
            self._events.forget(worker.stderr, worker.exited)
            worker.close()
            self._worker = None
        return worker

    def _started(self) -> WorkerProcess:
        now = {"ENGRAMFS_RESTARTS": str(self._restarts), "ENGRAMFS_LAST_CRASH": self._last_crash}
        descriptors = {**self._held.passed(), "control": self._control.fileno()}
        worker = self._spare.take(descriptors, now) if self._spare is not None else None
        if worker is None:
            worker = WorkerProcess(self._command, descriptors, {**self._environment(), **now})
        worker.expect(READY, START_LIMIT)
        self._say(f"started worker {worker.pid} on {self._point}")
        return worker

    def _environment(self) -> dict[str, str]:
        """What every worker finds in its environment."""
        hang_limit = min(self._manager.watchdog or HANG_LIMIT, HANG_LIMIT)
        return {
            **os.environ,
            "WATCHDOG_USEC": str(int(hang_limit * 1e6)),
            "NOTIFY_SOCKET": self._notifications.address,
        }

    def _end_spare(self) -> None:
        if self._spare is not None:
            self._spare.end()

    def _adopted(self) -> WorkerProcess | None:
        """The worker of a keeper that died, the first time; it goes on, and from now on it is ours."""
        orphan, self._orphan = self._orphan, None
        if orphan is None:
            return None
        run, address = self._directory.path, self._notifications.address
        worker = WorkerProcess.adopt(
            orphan.pid, orphan.process, lambda stderr: adoption.take_in(run, address, stderr)
        )
        log(f"worker {worker.pid} of a keeper that died goes on")
        self._on_ready(worker)
        return worker

    def _wait(self, worker: WorkerProcess) -> None:
        """For the next event or moment. A keeper that was itself stopped blames no worker for it."""
        moment = self._next_moment(worker)
        self._events.wait(moment)
        late = time.monotonic() - moment if moment is not None else 0.0
        if late > STOPPED:
            worker.postpone(late + HANG_LIMIT)

    def _next_moment(self, worker: WorkerProcess) -> float | None:
        """When there is something to do even if nothing happens, in monotonic seconds."""
        moments = [worker.deadline]
        if worker.is_serving:
            moments += [self._probe.due, self._spare.due if self._spare is not None else None]
        return min((moment for moment in moments if moment is not None), default=None)

    def _end_late(self, worker: WorkerProcess, what: str) -> None:
        """Kill a worker that is late; the connection too when that alone does not end it."""
        if worker.was_killed:
            self._held.abort()  # a worker that waits for its own mount can only be freed by that
            worker.has_shown(what)
            return
        log(f"worker {worker.pid} gave no {what} in time; it is killed")
        worker.kill(f"gave no {what} in time")
        worker.expect_end(KILL_LIMIT)

    def _look_after(self, worker: WorkerProcess) -> None:
        """What is done every now and then while a worker serves."""
        if not worker.is_serving:
            return
        if self._probe.ask_if_due() and not worker.owes(ANSWER):
            worker.expect(ANSWER, HANG_LIMIT)
        if self._spare is not None:
            self._spare.start_if_due()

    def _on_answer(self) -> None:
        if self._worker is not None:
            self._worker.has_shown(ANSWER)

    # What happens meanwhile

    def _stop(self) -> None:
        if self._stopping:
            return
        self._stopping = True
        self._say("stopping")
        self._manager.tell("STOPPING=1")
        if self._worker is not None:
            self._worker.signal(signal.SIGTERM)
            self._worker.expect_end(STOP_LIMIT)

    def _on_stderr(self, worker: WorkerProcess) -> None:
        if worker.forward() == b"":
            self._events.forget(worker.stderr)

    def _on_message(self) -> bool:
        """Take in the next message of the worker; whether there was one."""
        worker = self._worker
        message = self._notifications.receive(worker.pid if worker else -1)
        if message is None:
            return False
        if worker is not None:
            self._take_in(worker, message.lines)
        for descriptor in message.descriptors:
            os.close(descriptor)
        return True

    def _take_in(self, worker: WorkerProcess, lines: Mapping[str, str]) -> None:
        self._manager.forward(lines)
        if "STATUS" in lines:
            self._say(f"worker: {lines['STATUS']}")
        if lines.get("FDSTORE") == "1":
            self._held.store()  # what came along is a copy of what we hold
        if lines.get("READY") == "1" and not self._stopping:
            self._on_ready(worker)
        if lines.get("WATCHDOG") == "1" and worker.is_serving:
            worker.expect(SIGN_OF_LIFE, HANG_LIMIT)
        if lines.get("STOPPING") == "1" and not self._stopping:
            worker.told_status = int(lines.get("EXIT_STATUS", 0))
            worker.expect_end(STOP_LIMIT)

    def _hear_last_words(self) -> None:
        """What a worker said may be read after its end was noticed, and tells a stop from a crash."""
        for _ in range(MOST_LAST_WORDS):
            if not self._on_message():
                return

    def _on_ready(self, worker: WorkerProcess) -> None:
        self._say("the worker is ready")
        self._was_ready = True
        worker.ready_since = time.monotonic()
        worker.has_shown(READY)
        self._probe.ask_later()
        if self._spare is not None:
            self._spare.start_later()
        self._directory.say_why_nobody_serves("")
        self._held.is_served()

    def _say(self, message: str) -> None:
        """Say what is routine."""
        if not self._in_foreground:
            log(message)


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
