"""A daemon of engramfs in the bench's own mount namespace."""

import json
import os
import subprocess
import sys
import time
from typing import Any

_CONFIG = """
[search]
semantic = false

[agents.bench]
memory = { state = "read_write" }
"""
STATE = "memory/bench/state"  # the store that the agent writes to


class Daemon:
    """`up` and `down` over one state directory; everything is below `directory`."""

    def __init__(self, directory: str, *, modules: str = "") -> None:
        """`modules` is a directory of Python modules that its processes find before others."""
        self.state = f"{directory}/state"
        self.root = f"{directory}/root"
        self.hub = f"{directory}/run/fs"
        os.makedirs(self.root)
        config = f"{directory}/engramfs.toml"
        with open(config, "w", encoding="utf-8") as file:
            file.write(_CONFIG)
        self.environment = {
            **os.environ,
            "ENGRAMFS_STATE": self.state,
            "ENGRAMFS_RUN": f"{directory}/run",
            "ENGRAMFS_CONFIG": config,
        }
        if modules:
            self.environment["PYTHONPATH"] = modules

    @property
    def writable(self) -> str:
        """The directory at which `STATE` is attached."""
        return f"{self.root}/mnt/memory/state"

    def __enter__(self) -> "Daemon":
        self.up()
        return self

    def __exit__(self, *exc: object) -> None:
        self.down()

    def up(self) -> float:
        """Seconds until the mounts are there."""
        begun = time.perf_counter()
        self.run("up", "--root", self.root, "--agent", "bench")
        return time.perf_counter() - begun

    def down(self) -> None:
        self.run("down")

    def worker(self) -> int:
        """The pid of the worker."""
        status: dict[str, Any] = json.loads(self.run("--json", "status"))
        return int(status["worker"]["pid"])

    def run(self, *arguments: str) -> str:
        """What `engramfs ARGUMENTS` says. Raises `RuntimeError` with its error when it fails."""
        ended = subprocess.run(
            [sys.executable, "-m", "engramfs", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if ended.returncode:
            raise RuntimeError(f"engramfs {' '.join(arguments)}: {ended.stderr.strip()}")
        return ended.stdout


def memory(pid: int) -> dict[str, int]:
    """VmRSS, RssAnon and RssFile of a process, in bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return {name: int(fields[name].split()[0]) << 10 for name in ("VmRSS", "RssAnon", "RssFile")}
