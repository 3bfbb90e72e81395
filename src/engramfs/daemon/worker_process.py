"""One worker as its keeper sees it: a child process, its end, what it says on stderr, and what it owes.

Nothing here blocks: the keeper waits for the two descriptors, `exited` and `stderr`, to be readable, and
no longer than until `deadline`.
"""

import os
import signal
import time
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
        self.ready_since: float | None = None  # monotonic seconds
        self.was_killed = False  # by us
        self._last_line = ""
        self._partial = b""
        self._is_ending = False
        self._owed: dict[str, float] = {}  # what it has to show → until when, in monotonic seconds

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

    # What it owes

    def expect(self, what: str, within: float) -> None:
        """It has to show `what` within so many seconds from now."""
        self._owed[what] = time.monotonic() + within

    def expect_end(self, within: float) -> None:
        """It has to end, and to show nothing else any more."""
        self._owed = {}
        self._is_ending = True
        self.expect("end", within)

    def postpone(self, seconds: float) -> None:
        """Let it have so much longer for all that it owes."""
        self._owed = {what: until + seconds for what, until in self._owed.items()}

    def has_shown(self, what: str) -> None:
        self._owed.pop(what, None)

    def owes(self, what: str) -> bool:
        return what in self._owed

    @property
    def deadline(self) -> float | None:
        """When the first of what it owes is due, in monotonic seconds."""
        return min(self._owed.values(), default=None)

    def overdue(self) -> str | None:
        """What it owes and has not shown in time."""
        now = time.monotonic()
        return next((what for what, until in self._owed.items() if until <= now), None)

    # What became of it

    @property
    def is_serving(self) -> bool:
        """Whether it was ready, and is not to end."""
        return self.ready_since is not None and not self._is_ending

    @property
    def was_killed_from_outside(self) -> bool:
        return self.status == -signal.SIGKILL and not self.was_killed

    @property
    def exit_code(self) -> int:
        """The exit code of the ended process; negative for the number of the signal that ended it."""
        assert self.status is not None
        return self.status

    @property
    def served_for(self) -> float:
        """Seconds since it was ready; 0 when it never was."""
        return 0.0 if self.ready_since is None else time.monotonic() - self.ready_since

    # The process

    def kill(self, why: str) -> None:
        """SIGKILL; `why` is remembered as its last word."""
        self.signal(signal.SIGKILL)
        self.was_killed, self._last_line = True, why

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
            if line.strip() and not self.was_killed:
                self._last_line = line.decode(errors="replace").strip()
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
        """Why it ended, for people: the signal or the exit code, and its last line.

        Who was killed from outside said nothing of it.
        """
        assert self.status is not None
        if self.was_killed_from_outside:
            return f"worker {self.pid} ended (killed by SIGKILL)"
        how = f"exit code {self.status}"
        if self.status < 0:
            how = f"killed by {signal.Signals(-self.status).name}"
        return f"worker {self.pid} ended ({how}){': ' + self._last_line if self._last_line else ''}"

    def close(self) -> None:
        os.close(self.stderr)
        os.close(self.exited)
