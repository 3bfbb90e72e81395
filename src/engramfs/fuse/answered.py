"""How far the journal's operations have been answered, where the next worker can read it.

A call on a name is journaled, applied and answered without another in between, so when a worker dies at
most one has no answer: the last one (see `engramfs.vfs.repeated`). What is here is in shared memory,
which outlives the process and costs nanoseconds: a journal position, and the thread id of the caller of
the last call on a name.
"""

import mmap
import os


class Answered:
    """Two numbers in `path`. `mark` is called before each wait for the next request."""

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(descriptor, 16)
        self._memory = mmap.mmap(descriptor, 16)
        os.close(descriptor)

    @property
    def position(self) -> int:
        return int.from_bytes(self._memory[:8], "little")

    @property
    def caller(self) -> int:
        return int.from_bytes(self._memory[8:], "little")

    def mark(self, position: int) -> None:
        """Everything up to `position` has been answered."""
        self._memory[:8] = position.to_bytes(8, "little")

    def calling(self, caller: int) -> None:
        """A call on a name begins."""
        self._memory[8:] = caller.to_bytes(8, "little")

    def close(self) -> None:
        self._memory.close()
