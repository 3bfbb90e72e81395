"""Whether anybody answers behind a mount, asked by a helper process with a time limit.

A process that touches a mount whose worker hangs may not even be killed. So a small child asks: it
calls `statvfs`, the one call that the kernel never answers from its caches, and exits with the errno.
A child that does not come back is killed and not waited for.
"""

import errno
import os
import select
import signal
import sys
from enum import Enum

_ASK = """
import os, sys
try:
    os.statvfs(sys.argv[1])
except OSError as error:
    sys.exit(error.errno)
"""


class Liveness(Enum):
    """What became of the process that serves a mount."""

    ANSWERS = "answers"
    DEAD = "dead"
    HANGS = "hangs"


def liveness(point: str, limit: float = 2.0) -> Liveness:
    """Ask the mount at `point`; wait at most `limit` seconds. Anything but ENOTCONN is an answer."""
    arguments = [sys.executable, "-I", "-S", "-c", _ASK, point]
    child = os.posix_spawn(sys.executable, arguments, dict(os.environ))
    return _judged(wait_child(child, limit))


def liveness_of(descriptor: int, limit: float = 2.0) -> Liveness:
    """The same for an open (O_PATH) descriptor, wherever it is mounted. Forks: for one-threaded callers."""
    child = os.fork()
    if child == 0:
        number = errno.EIO
        try:
            os.fstatvfs(descriptor)
            number = 0
        except OSError as error:
            number = error.errno or number
        finally:
            os._exit(number)
    return _judged(wait_child(child, limit))


def _judged(status: int | None) -> Liveness:
    if status is None:
        return Liveness.HANGS
    return Liveness.DEAD if status in (errno.ENOTCONN, errno.ECONNABORTED) else Liveness.ANSWERS


def wait_child(child: int, limit: float) -> int | None:
    """The exit status of `child`, or None after `limit` seconds; then it is killed and left behind."""
    handle = os.pidfd_open(child)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if poll.poll(limit * 1000):
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.kill(child, signal.SIGKILL)
        return None
    finally:
        os.close(handle)
