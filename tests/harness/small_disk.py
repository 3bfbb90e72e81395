"""A real disk that is full soon: a tmpfs that is mounted nowhere, reached by its descriptor alone."""

import ctypes
import os

_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432  # the same numbers on every architecture
_SET_STRING, _CREATE = 1, 6
_CLOEXEC = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


class SmallDisk:
    """`path` is its root while it is open."""

    def __init__(self, size: int) -> None:
        context = _call(_FSOPEN, b"tmpfs", _CLOEXEC)
        try:
            _call(_FSCONFIG, context, _SET_STRING, b"size", str(size).encode(), 0)
            _call(_FSCONFIG, context, _CREATE, None, None, 0)
            self._descriptor = _call(_FSMOUNT, context, _CLOEXEC, 0)
        finally:
            os.close(context)
        self.path = f"/proc/self/fd/{self._descriptor}"

    @property
    def free(self) -> int:
        """Bytes."""
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def fill(self, leave: int) -> None:
        """Take everything but `leave` bytes."""
        with open(f"{self.path}/ballast", "wb") as file:
            file.write(bytes(max(0, self.free - leave)))

    def clear(self) -> None:
        os.unlink(f"{self.path}/ballast")

    def close(self) -> None:
        os.close(self._descriptor)
