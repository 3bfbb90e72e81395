"""Asks from outside, as any client does, whether somebody serves a mount.

Whoever touches a mount that nobody serves waits for ever, and perhaps cannot even be killed. So a child
asks: `statvfs`, the one call that the kernel never answers from its caches. It is a copy of the keeper, made
by fork, that holds nothing; it stays, so a question costs no more than the few calls that it takes.
"""

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable
from typing import NoReturn

from engramfs.daemon.events import Events
from engramfs.mount.liveness import wait_child
from engramfs.mount.syscalls import die_with_parent

EVERY = 1.0  # seconds between two questions
_PATIENCE = 1.0  # seconds for the child to end


class Probe:
    """One question at a time at the mount `point`; `answered` is called for each that was answered.

    Forks: the caller may have no other threads.
    """

    def __init__(self, point: str, events: Events, answered: Callable[[], object]) -> None:
        self._point = point
        self._events = events
        self._answered = answered
        self._child = 0
        self._ours: socket.socket | None = None
        self._waiting = False
        self.due = 0.0  # when the next question is, in monotonic seconds

    def ask_later(self) -> None:
        """A worker has begun to serve."""
        self.due = time.monotonic() + EVERY

    def ask_if_due(self) -> bool:
        """Touch the mount, unless that is still going on; whether it is time for an answer."""
        if time.monotonic() < self.due:
            return False
        self.ask_later()
        if not self._waiting:
            self._waiting = True
            with contextlib.suppress(OSError):  # somebody killed the child: it is made again
                self._started().send(b"?")
        return True

    def _started(self) -> socket.socket:
        if self._ours is None:
            self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            keeper = os.getpid()
            self._child = os.fork()
            if self._child == 0:
                _answer(self._point, theirs, keeper)
            theirs.close()
            self._events.watch(self._ours, self._on_answer)
        return self._ours

    def _on_answer(self) -> None:
        """A mount that answers with an error is one that answers."""
        data = b""
        with contextlib.suppress(ConnectionError):
            data = self._ours.recv(1) if self._ours is not None else b""
        if not data:
            self.close()  # somebody has killed the child; the next question is asked by another
        self._waiting = False
        self._answered()

    def close(self) -> None:
        """End the child. One that still waits for a mount is left to the kernel."""
        if self._ours is not None:
            self._events.forget(self._ours)
            self._ours.close()
            self._ours = None
            os.kill(self._child, signal.SIGKILL)  # not waited for yet, so the number is still its own
            wait_child(self._child, _PATIENCE)


def _answer(point: str, questions: socket.socket, parent: int) -> NoReturn:
    """The child: holds nothing but its socket, so that no connection and no client waits for its end."""
    try:
        die_with_parent(signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # a terminal sends them to the keeper as well
        os.dup2(questions.fileno(), 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        while os.getppid() == parent and os.read(3, 1):
            with contextlib.suppress(OSError):
                os.statvfs(point)
            os.write(3, b"!")
    finally:
        os._exit(0)
