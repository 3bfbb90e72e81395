"""Asks from outside, as any client does, whether somebody serves a mount.

Whoever touches a mount that nobody serves waits for ever, and perhaps cannot even be killed. So a child
asks: `statvfs`, the one call that the kernel never answers from its caches. It is a copy of the keeper,
made by fork before there is anything to hold, and costs no more than the two calls that a question takes.
"""

import contextlib
import os
import signal
import socket
from typing import NoReturn

from engramfs.mount.liveness import wait_child
from engramfs.mount.syscalls import die_with_parent

_PATIENCE = 1.0  # seconds for the child to end


class Probe:
    """One question at a time. Readable (`fileno`) when the answer is there.

    Forks: the caller may have no other threads.
    """

    def __init__(self, point: str) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)
        self.waiting = False  # for an answer
        ours = os.getpid()
        self._child = os.fork()
        if self._child == 0:
            _answer(point, theirs, ours)
        theirs.close()

    def fileno(self) -> int:
        return self._ours.fileno()

    def ask(self) -> None:
        """Touch the mount, unless that is still going on."""
        if not self.waiting:
            self.waiting = True
            with contextlib.suppress(OSError):  # somebody killed the child: no answer will come
                self._ours.send(b"?")

    def take_answer(self) -> bool:
        """Call when readable; False when the child is gone. A mount that answers with an error answers."""
        with contextlib.suppress(ConnectionError):
            self.waiting = self._ours.recv(1) == b""
        return not self.waiting

    def close(self) -> None:
        """End the child. One that still waits for a mount is left to the kernel."""
        self._ours.close()
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
