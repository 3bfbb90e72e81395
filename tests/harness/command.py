"""`engramfs` as a command, run in a directory of its own, without a daemon."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple


class Finished(NamedTuple):
    code: int
    out: str
    err: str


class Command:
    """`engramfs`, run in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state = directory / "state"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "ENGRAMFS_STATE": str(self.state),
            "ENGRAMFS_RUN": str(directory / "run"),
            "TZ": "UTC",
            "PYTHONWARNINGS": "error",
        }

    def __call__(self, *arguments: str, **environment: str) -> Finished:
        child = subprocess.run(
            [sys.executable, "-m", "engramfs", *arguments],
            cwd=self.directory,
            env={**self.environment, **environment},
            capture_output=True,
            timeout=60,
        )
        return Finished(
            child.returncode, child.stdout.decode(errors="surrogateescape"), child.stderr.decode()
        )

    def ok(self, *arguments: str) -> str:
        finished = self(*arguments)
        assert finished.code == 0, finished
        assert finished.err == "", finished
        return finished.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    def refused(self, code: int, *arguments: str) -> str:
        """The one line that a failing command says, without `engramfs: `."""
        finished = self(*arguments)
        assert finished.code == code, finished
        assert finished.out == "", finished
        assert finished.err.count("\n") == 1, finished
        assert finished.err.startswith("engramfs: "), finished
        return finished.err.removeprefix("engramfs: ").strip()

    def write(self, path: str, content: bytes) -> None:
        place = self.directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
