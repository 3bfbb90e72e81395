"""One worker as its keeper sees it: a child process, its end, and what it says on stderr.

Nothing here blocks: the keeper waits for the two descriptors, `exited` and `stderr`, to be readable.
"""

import os
import signal
from collections.abc import Callable, Mapping, Sequence

from engramfs.daemon import handover
from engramfs.daemon.keeper_log import copy_to_stderr

_CHUNK = 65536


class WorkerProcess:
    """A started worker. `status` is None until `reap` was called; then as `subprocess` gives it."""

    def __init__(
        self, command: Sequence[str], descriptors: Mapping[str, int], environment: Mapping[str, str]
    ) -> None:
        self.stderr, theirs = os.pipe()
        os.set_blocking(self.stderr, False)
        self.pid = handover.start(command, descriptors, environment, theirs)
        os.close(theirs)
        self._begin(os.pidfd_open(self.pid))

    def _begin(self, exited: int) -> None:
        self.exited = exited
        self.status: int | None = None
        self.told_status: int | None = None  # what it said that it would end with
        self.last_line = ""
        self._partial = b""

    @classmethod
    def adopt(cls, pid: int, exited: int, take_in: Callable[[int], None]) -> "WorkerProcess":
        """The worker of a keeper that died; `take_in` gives it the descriptor for its stderr."""
        worker = cls.__new__(cls)
        worker.pid = pid
        worker.stderr, theirs = os.pipe()
        os.set_blocking(worker.stderr, False)
        worker._begin(exited)
        try:
            take_in(theirs)
        finally:
            os.close(theirs)
        return worker

    def signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.status is None:
            signal.pidfd_send_signal(self.exited, number)

    def forward(self) -> bytes | None:
        """Copy what waits on its stderr to ours and remember the last line.

        Returns what was copied: empty at the end, None when nothing waits.
        """
        try:
            data = os.read(self.stderr, _CHUNK)
        except BlockingIOError:
            return None
        copy_to_stderr(data)
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in [*lines, b"" if data else self._partial]:
            if line.strip():
                self.last_line = line.decode(errors="replace").strip()
        return data

    def reap(self) -> None:
        """Take the exit status of the ended process, and the rest of what it said."""
        try:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:  # it was somebody else's child
            self.status = -signal.SIGKILL if self.told_status is None else self.told_status
        while self.forward():
            continue

    def describe_end(self) -> str:
        """Why it ended, for people: the signal or the exit code, and its last line."""
        assert self.status is not None
        how = f"exit code {self.status}"
        if self.status < 0:
            how = f"killed by {signal.Signals(-self.status).name}"
        return f"worker {self.pid} ended ({how}){': ' + self.last_line if self.last_line else ''}"

    def close(self) -> None:
        os.close(self.stderr)
        os.close(self.exited)
