"""One writer for a state directory: the worker, or a command that writes while no worker runs."""

import fcntl
import os

from engramfs.errors import Busy


class StoreLock:
    """An exclusive lock on `<state>/lock`, held until `close` or the end of the process.

    The file says who holds it. Raises `Busy`, naming the holder.
    """

    def __init__(self, state: str, purpose: str) -> None:
        self.path = os.path.join(state, "lock")
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 200, 0).decode(errors="replace").strip() or "another process"
            os.close(self._descriptor)
            raise Busy(f"{state} is in use by {holder}; stop it first (engramfs down)") from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{purpose} (pid {os.getpid()})\n".encode(), 0)

    def close(self) -> None:
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
