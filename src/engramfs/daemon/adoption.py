"""A keeper has died and its worker goes on: how the next keeper takes the worker in.

The worker offers the numbers of its descriptors, the keeper copies them out of it (pidfd_getfd) and
tells it where to send its notifications and its stderr from now on. The mounts never notice.

A keeper holds the run directory a moment before it has its worker. A worker that is told to stop just then
would be taken for one that crashed, and replaced: so `keeper_known` asks the worker who its keeper is.

Both sides are here. The keeper's, `find` and `take_in`, imports the standard library alone.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from engramfs.daemon.client import ControlClient
from engramfs.errors import EngramError, UsageError
from engramfs.mount.syscalls import outlive_parent, take_descriptor

if TYPE_CHECKING:
    from engramfs.daemon.control import Peer

PATIENCE = 5.0  # seconds for a worker to answer


class Orphan(NamedTuple):
    """A worker without a keeper, and copies of its descriptors."""

    pid: int
    process: int  # a pidfd
    fuse: int
    control: int


def find(run: str) -> Orphan | None:
    """The worker that answers in the run directory `run`, while nobody holds it; or None."""
    try:
        offer = ControlClient(run, timeout=PATIENCE).call("keeper.offer")
    except EngramError:  # none answers, or one that ends with its keeper
        return None
    process = os.pidfd_open(offer["pid"])
    fuse, control = (take_descriptor(process, offer[name]) for name in ("fuse", "control"))
    return Orphan(offer["pid"], process, fuse, control)


def take_in(run: str, address: str, stderr: int) -> None:
    """Let the worker notify `address`, and write its stderr to our descriptor `stderr`."""
    client = ControlClient(run, timeout=PATIENCE)
    client.call("keeper.adopt", address=address, stderr=f"/proc/{os.getpid()}/fd/{stderr}")


def keeper_known(client: ControlClient, within: float = PATIENCE) -> int | None:
    """The pid of the keeper that the worker has; None of a worker of an older version. Raises as `call`."""
    keeper: int | None = client.call("keeper.offer", timeout=within).get("keeper")
    return keeper


class Adoptable:
    """The worker's side."""

    def __init__(self, fuse: int, control: int) -> None:
        self._fuse = fuse
        self._control = control
        self._keeper = os.getppid()
        outlive_parent()

    def methods(self) -> Mapping[str, Callable[..., Awaitable[object]]]:
        return {"keeper.offer": self.offer, "keeper.adopt": self.adopt}

    async def offer(self, *_request: object) -> object:
        return {
            "pid": os.getpid(),
            "fuse": self._fuse,
            "control": self._control,
            "keeper": self._keeper,
        }

    async def adopt(self, params: Mapping[str, object], peer: "Peer", *_request: object) -> object:
        address, stderr = params.get("address"), params.get("stderr")
        if not isinstance(address, str) or not isinstance(stderr, str):
            raise UsageError("keeper.adopt takes an address and a stderr")
        descriptor = os.open(stderr, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(descriptor, 2)
        os.close(descriptor)
        os.environ["NOTIFY_SOCKET"] = address
        self._keeper = peer.pid
        return None
