"""A private mount namespace: what is mounted in it is seen nowhere else, and goes with its last process.

The tests themselves stay outside: whoever touches a mount that nobody serves waits for ever, so that is
left to a process that can be killed (see `agent`).
"""

import os
import pickle
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

AGENT = Path(__file__).parent / "agent.py"
PATIENCE = 30.0  # seconds for one call


class Finished(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Hung(AssertionError):
    """A call had no answer in time, and its process was killed."""


class Inside:
    """A process in a mount namespace of its own, or in that of process `beside`."""

    def __init__(self, *, beside: int | None = None) -> None:
        agent = [sys.executable, str(AGENT)]
        if beside is None:
            command = ["unshare", "--mount", "--propagation", "private", *agent]
        else:
            command = ["nsenter", f"--mount=/proc/{beside}/ns/mnt", *agent]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", start_new_session=True
        )
        self.call("os.getpid")

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, name: str, *arguments: object, patience: float = PATIENCE, **keywords: object) -> Any:
        """The result of a function of `agent`, or of any module by its dotted name. Raises what it raised."""
        payload = pickle.dumps((name, arguments, keywords))
        assert self._process.stdin is not None
        self._process.stdin.write(len(payload).to_bytes(8, "big") + payload)
        self._process.stdin.flush()
        deadline = time.monotonic() + patience
        length = self._receive(8, deadline, name)
        succeeded, result = pickle.loads(self._receive(int.from_bytes(length, "big"), deadline, name))
        if not succeeded:
            raise result
        return result

    def _receive(self, size: int, deadline: float, what: str) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        received = b""
        while len(received) < size:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                self.kill()
                raise Hung(f"{what} had no answer in time")
            piece = os.read(descriptor, size - len(received))
            if not piece:
                raise Hung(f"the process that was to do {what} has ended")
            received += piece
        return received

    def run(
        self,
        *command: str,
        user: int | None = None,
        timeout: float = PATIENCE,
        cwd: str | None = None,
        environment: Mapping[str, str] | None = None,
        **variables: str,
    ) -> Finished:
        """A command inside, as uid and gid `user`, with these environment variables beside ours."""
        arguments = (list(command), timeout, user, cwd, {**(environment or {}), **variables})
        code, out, err = self.call("run", *arguments, patience=timeout + 10)
        return Finished(code, out.decode(errors="surrogateescape"), err.decode(errors="surrogateescape"))

    def shell(
        self, script: str, *, user: int | None = None, timeout: float = PATIENCE, cwd: str | None = None
    ) -> str:
        """The output of a script that must succeed."""
        finished = self.run("bash", "-ec", script, user=user, timeout=timeout, cwd=cwd)
        assert finished.code == 0, finished
        return finished.out

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)

    def close(self) -> None:
        """End the process; the namespace goes with it, unless other processes are left there."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
