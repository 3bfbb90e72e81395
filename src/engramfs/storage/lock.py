"""One writer for a state directory: the worker, or a command that writes while no worker runs."""

import contextlib
import errno
import fcntl
import os
import random
import time

from engramfs.errors import Busy, Unavailable

_PAUSE = 0.005  # seconds between two tries; those who wait should not try all at once


class StoreLock:
    """An exclusive lock on `<state>/lock`, held until `close` or the end of the process.

    The file says who holds it. It is waited for, for at most `patience` seconds. Raises `Busy`, naming the
    holder, and `Unavailable`.
    """

    def __init__(self, state: str, purpose: str, patience: float = 0.0) -> None:
        self.path = os.path.join(state, "lock")
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            do = "remount it writable" if error.errno == errno.EROFS else f"is {state} yours?"
            raise Unavailable(f"cannot open {self.path}: {error.strerror}; {do}") from error
        if not _taken(self._descriptor, patience):
            holder = _said_by(self._descriptor)
            os.close(self._descriptor)
            waited = f", which did not let go within {patience:g} s" if patience else ""
            raise Busy(f"{state} is in use by {holder}{waited}; stop it first")
        with contextlib.suppress(OSError):  # a full disk; the lock is held all the same, without a name
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{purpose} (pid {os.getpid()})\n".encode(), 0)

    def close(self) -> None:
        """Let go. Once is enough; more does no harm."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):  # a disk that fails: then the name stays, of nobody
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1


def _taken(descriptor: int, patience: float) -> bool:
    """Whether the lock is ours. The kernel has no wait that ends, so it is asked again and again."""
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE * random.uniform(0.5, 1.5))
        else:
            return True


def holder_of(state: str) -> str | None:
    """Who holds the lock of the state directory `state`, in words, or None. Shares the lock for a moment."""
    try:
        descriptor = os.open(os.path.join(state, "lock"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _said_by(descriptor)
    finally:
        os.close(descriptor)
    return None


def _said_by(descriptor: int) -> str:
    return os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "another process"
