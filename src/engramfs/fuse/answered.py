"""How far the journal's operations have been answered, where the next worker can read it.

An operation is applied, journaled and answered without another in between, so when a worker dies at most
one journaled operation has no answer: the last one. Only then may a repeated request be taken for it. The
position is in shared memory, which outlives the process and costs nanoseconds.
"""

import mmap
import os


class Answered:
    """A position in `path`; `mark` is called before each wait for the next request."""

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(descriptor, 8)
        self._memory = mmap.mmap(descriptor, 8)
        os.close(descriptor)

    @property
    def position(self) -> int:
        return int.from_bytes(self._memory, "little")

    def mark(self, position: int) -> None:
        self._memory[:] = position.to_bytes(8, "little")

    def close(self) -> None:
        self._memory.close()
