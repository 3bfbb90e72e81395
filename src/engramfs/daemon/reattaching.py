"""The child that attaches the sessions again after a hub was mounted afresh (`engramfs.mount.reattach`).

It touches the mounted filesystem, so it may have to wait for the worker, and end with its mount. The keeper
waits for the descriptor `exited` meanwhile.
"""

import os
import signal
import sys


class Reattaching:
    """A started child. `reap` it once `exited` is readable."""

    def __init__(self, run: str) -> None:
        arguments = [sys.executable, "-m", "engramfs.mount.reattach", run]
        self._child = os.posix_spawn(sys.executable, arguments, dict(os.environ))
        self.exited = os.pidfd_open(self._child)

    def kill(self) -> None:
        """It ends once the connection does, of which it may be waiting for an answer."""
        signal.pidfd_send_signal(self.exited, signal.SIGKILL)

    def reap(self) -> int:
        """Its exit code, as `subprocess` gives it; waits for the end."""
        os.close(self.exited)
        return os.waitstatus_to_exitcode(os.waitpid(self._child, 0)[1])
