"""A worker that is started before it is needed: when the one that serves dies, this one takes over at once.

It has imported everything, which is most of what a start takes, and waits. It holds nothing until its turn
comes: neither the connection nor the store lock. Standard library only.
"""

import signal
import socket
import time
from collections.abc import Mapping, Sequence

from engramfs.daemon.events import Events
from engramfs.daemon.handover import TURN, give_turn
from engramfs.daemon.worker_process import WorkerProcess

AFTER = 0.5  # seconds of serving before one is started: the first load is over, and short lives pay nothing
AGAIN = 60.0  # seconds after one has ended by itself: it may not be able to start


class Spare:
    """At most one waits; `command` is that of a worker, with the environment that every worker gets."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], events: Events) -> None:
        self._command = command
        self._environment = environment
        self._events = events
        self._waiting: WorkerProcess | None = None
        self._turn: socket.socket | None = None
        self._next = 0.0  # monotonic seconds

    def start_later(self) -> None:
        """A worker has begun to serve, so another one is to wait soon."""
        self._next = time.monotonic() + AFTER

    @property
    def due(self) -> float | None:
        """When one is to be started, in monotonic seconds; None while one waits."""
        return self._next if self._waiting is None else None

    def start_if_due(self) -> None:
        if self._waiting is not None or time.monotonic() < self._next:
            return
        self._turn, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            waiting = WorkerProcess(self._command, {TURN: theirs.fileno()}, self._environment)
        self._waiting = waiting
        self._events.watch(waiting.stderr, lambda: self._on_stderr(waiting))
        self._events.watch(waiting.exited, self._on_end)

    def _on_stderr(self, waiting: WorkerProcess) -> None:
        if waiting.forward() == b"":
            self._events.forget(waiting.stderr)

    def _on_end(self) -> None:
        self.end()
        self._next = time.monotonic() + AGAIN

    def take(self, descriptors: Mapping[str, int], environment: Mapping[str, str]) -> WorkerProcess | None:
        """The one that waits, which is told to serve with these. None when there is none, or it has ended."""
        if self._waiting is None or self._turn is None:
            return None
        try:
            give_turn(self._turn, descriptors, environment)
        except OSError:
            self.end()
            return None
        return self._release(self._waiting)

    def end(self) -> None:
        """It is not needed, or not any more what is needed."""
        if self._waiting is not None:
            ended = self._release(self._waiting)
            ended.signal(signal.SIGKILL)
            ended.reap()
            ended.close()

    def _release(self, waiting: WorkerProcess) -> WorkerProcess:
        self._events.forget(waiting.stderr, waiting.exited)
        self._waiting = None
        if self._turn is not None:
            self._turn.close()
            self._turn = None
        return waiting
