"""A real daemon in a private mount namespace, and sessions of it under roots of their own."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engramfs.daemon.client import ControlClient
from engramfs.errors import NoDaemon
from engramfs.history.repository import Repository
from engramfs.history.verify import verify

from .inside import Finished, Inside

ROOTS = "/mnt"  # a tmpfs inside: short paths that every uid can walk


class Place:
    """Where one session is attached: `state`, `preferences` and `user` are the paths of its mounts."""

    def __init__(self, daemon: "Daemon", root: str, document: dict[str, Any]) -> None:
        self.daemon = daemon
        self.inside = daemon.inside
        self.root = root
        self.session: str = document["id"]
        self.agent: str = document["agent"]
        self.attachments: list[dict[str, Any]] = document["attachments"]

    @property
    def state(self) -> str:
        return f"{self.root}/mnt/memory/state"

    @property
    def preferences(self) -> str:
        return f"{self.root}/mnt/memory/preferences"

    @property
    def user(self) -> str:
        return f"{self.root}/memories/user"

    @property
    def store(self) -> str:
        """The name of the store at `state`."""
        return f"memory/{self.agent}/state"

    def path(self, *parts: str) -> str:
        return os.path.join(self.state, *parts)

    def write(self, name: str, content: bytes, mode: str = "wb") -> None:
        self.inside.call("write", self.path(name), content, mode)

    def read(self, name: str) -> bytes:
        content: bytes = self.inside.call("read", self.path(name))
        return content

    def names(self, name: str = "") -> list[str]:
        names: list[str] = self.inside.call("names", self.path(name))
        return names

    def log(self) -> list[dict[str, Any]]:
        """The versions of the store, oldest first."""
        return self.daemon.log(self.store)

    def changes(self) -> list[list[str]]:
        """What each version changed, oldest first: "created a"."""
        return [
            [f"{change['op']} {change['path']}" for change in version["changes"]] for version in self.log()
        ]


class Daemon:
    """`engramfs` over one state and run directory. Nothing runs until `up`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state, self.run_directory = str(directory / "state"), str(directory / "run")
        self.inside = Inside()
        self.inside.shell(f"mount -t tmpfs -o mode=755 roots {ROOTS}")
        self.environment = {
            "ENGRAMFS_STATE": self.state,
            "ENGRAMFS_RUN": self.run_directory,
            "PYTHONWARNINGS": "error",
        }
        self.client = ControlClient(self.run_directory, timeout=30)
        self.places: list[Place] = []

    def configure(self, text: str) -> None:
        path = self.directory / "engramfs.toml"
        path.write_text(text)
        self.environment["ENGRAMFS_CONFIG"] = str(path)

    def command(self, *arguments: str, timeout: float = 60, through: Sequence[str] = ()) -> Finished:
        """`engramfs` with these arguments, started inside, by the command `through` if one is given."""
        command = [*through, sys.executable, "-m", "engramfs", *arguments]
        return self.inside.run(*command, timeout=timeout, environment=self.environment)

    def ok(self, *arguments: str) -> str:
        finished = self.command(*arguments)
        assert finished.code == 0, finished
        return finished.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    def up(self, *, agent: str = "default", actor: str | None = None, root: str | None = None) -> Place:
        """A session of `agent`, attached under a new root unless one is given."""
        root = root or f"{ROOTS}/{len(self.places)}"
        self.inside.call("os.makedirs", root, exist_ok=True)
        who = ["--agent", agent] + (["--actor", actor] if actor else [])
        self.places.append(Place(self, root, self.json("up", "--root", root, *who)))
        return self.places[-1]

    def end(self, place: Place) -> None:
        """Take a session off and close it."""
        points = [point for point in self.mounts() if point.startswith(f"{place.root}/")]
        self.inside.call("engramfs.mount.detach.detach", points)
        self.client.call("session.close", id=place.session)

    def mounts(self) -> list[str]:
        """Where something of this daemon is mounted inside: its hub, and what is attached."""
        mounts = [each for each in self.inside.call("engramfs.mount.mountinfo.read_mounts") if each.is_ours]
        ours = (f"{ROOTS}/", f"{self.run_directory}/")
        return sorted(mount.point for mount in mounts if mount.point.startswith(ours))

    # The daemon's processes

    @property
    def worker(self) -> int:
        """The pid of the worker, once one answers."""
        found: list[int] = []

        def answers() -> bool:
            try:
                found.append(self.client.call("ping")["pid"])  # a busy machine takes its time to start one
            except NoDaemon:
                return False
            return True

        eventually(answers)
        return found[0]

    def kill_worker(self) -> int:
        """SIGKILL; its pid. Another one is being started when this returns."""
        pid = self.worker
        os.kill(pid, signal.SIGKILL)
        return pid

    def said(self) -> str:
        """What the keeper and the workers wrote, but for what is routine."""
        path = Path(self.run_directory, "daemon.log")
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        return "\n".join(line for line in lines if "level=info" not in line and "engramfs keeper" not in line)

    # The log

    def barrier(self) -> None:
        self.client.call("barrier")

    def log(self, store: str) -> list[dict[str, Any]]:
        """The versions of a store, oldest first, as `engramfs log --json` has them."""
        versions: list[dict[str, Any]] = self.json("log", store, "-n", "100000")
        return versions[::-1]

    def check_soundness(self, *stores: str) -> None:
        with Repository.open(self.state) as repository:
            report = verify(repository, stores or None)
        assert report.sound, report.findings

    # The end

    def down(self) -> None:
        """Stop in order, and verify everything."""
        self.ok("down")
        if os.path.exists(os.path.join(self.state, "log/data.mdb")):
            self.check_soundness()

    def close(self) -> None:
        """End whatever is left."""
        self.inside.close()


def eventually(condition: Callable[[], bool], limit: float = 15.0) -> None:
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.01)
