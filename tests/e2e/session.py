"""A session as tests of the command line use it."""

from typing import Any

from ..harness.daemon import Daemon
from ..harness.inside import Inside

PLACES = ["/memories/user", "/mnt/memory/preferences", "/mnt/memory/state"]
PARENTS = ["/mnt/context", "/mnt/memory", "/memories"]


class Session:
    """An open session, and the root directory that is meant for it."""

    def __init__(self, daemon: Daemon, root: str, document: dict[str, Any]) -> None:
        self.daemon = daemon
        self.id: str = document["id"]
        self.actor: str = document["actor"]
        self.agent: str = document["agent"]
        self.root = root

    @property
    def other(self) -> str:
        """Another actor, of whom no other test knows."""
        return f"{self.actor}-other"[-100:]

    @property
    def user(self) -> str:
        return f"{self.root}/memories/user"

    def attach(self, *where: str) -> None:
        self.daemon.ok("attach", self.id, *(where or ("--root", self.root)))

    def switch(self, actor: str) -> None:
        self.daemon.ok("switch", self.id, "--actor", actor)

    def show(self) -> dict[str, Any]:
        shown: dict[str, Any] = self.daemon.client.call("session.show", id=self.id)
        return shown

    def mounts(self) -> list[str]:
        return mounts_under(self.daemon.inside, self.root)


def mounts_under(inside: Inside, root: str) -> list[str]:
    mounts = inside.call("engramfs.mount.mountinfo.read_mounts")
    return sorted(mount.point for mount in mounts if mount.is_ours and mount.point.startswith(f"{root}/"))
