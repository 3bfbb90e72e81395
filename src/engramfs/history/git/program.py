"""Running git, as a program: its data formats are stable, and a library would hold whole files in memory.

No variable `GIT_…` of the caller takes part, so a command means the directory that it is given, and nothing
above it. Hooks do not run.
"""

import os
import shutil
import subprocess
from typing import IO, Any

from engramfs.errors import Unavailable
from engramfs.model.names import printable

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "advice.graftFileDeprecated=false",
)


class Git:
    """Git in one directory, with these variables. Raises `Unavailable` when it is not installed."""

    def __init__(self, directory: bytes, **variables: str) -> None:
        program = shutil.which("git")
        if program is None:
            raise Unavailable("git is not installed; install it (apt-get install git)")
        self.directory = directory
        self._variables = variables
        self._program = os.fsencode(program)

    def start(self, *arguments: str | bytes, **streams: IO[bytes] | int | None) -> "subprocess.Popen[bytes]":
        """A git process. `streams` are `stdin`, `stdout` and `stderr` as `Popen` takes them."""
        settings = [part for setting in _SETTINGS for part in (b"-c", setting.encode())]
        command = [self._program, b"-C", self.directory, *settings, *map(os.fsencode, arguments)]
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL, **streams}
        return subprocess.Popen(command, env=self._environment(), **given)

    def ask(self, *arguments: str | bytes) -> bytes | None:
        """What git answers, without the last line end; None when it says no."""
        with self.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            said, _ = process.communicate()
        return said.removesuffix(b"\n") if process.returncode == 0 else None

    def run(self, *arguments: str | bytes) -> bytes:
        """What git answers. Raises `Unavailable` with git's own words when it fails."""
        with self.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            said, complaint = process.communicate()
        if process.returncode != 0:
            raise failed(arguments[0], self.directory, complaint, process.returncode)
        return said.removesuffix(b"\n")

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        above = os.path.dirname(os.path.realpath(self.directory))
        return {
            **kept,
            "LC_ALL": "C.UTF-8",
            "GIT_CEILING_DIRECTORIES": os.fsdecode(above),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            **self._variables,
        }


def failed(command: str | bytes, directory: bytes, complaint: bytes, code: int | None) -> Unavailable:
    """The error for a git that failed, with the line of its complaint that says most."""
    lines = [line.strip() for line in complaint.decode(errors="replace").splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith(("fatal:", "error:"))), (lines or [""])[-1])
    name = os.fsdecode(command)
    return Unavailable(f"git {name} failed in {printable(directory)}: {said or f'exit status {code}'}")
