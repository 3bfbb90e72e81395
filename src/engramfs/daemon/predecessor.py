"""What an earlier keeper left in a run directory, and whether the next one can go on with it.

Under a service manager that kept its connection: that. Without one, a worker that outlived its keeper.
Otherwise a mount that is dead, or will be in a moment, which is taken off. Standard library only.
"""

import os
from typing import NamedTuple

from engramfs.daemon import adoption
from engramfs.daemon.adoption import Orphan
from engramfs.daemon.keeper_log import log
from engramfs.daemon.run_directory import RunDirectory
from engramfs.daemon.service_manager import ServiceManager
from engramfs.errors import Unavailable
from engramfs.mount.connection import Connection
from engramfs.mount.hub import clear_stale
from engramfs.mount.mountinfo import read_mounts, top_mount

ORPHAN_LIMIT = 5.0  # seconds that the worker of a killed keeper is given to end


class Left(NamedTuple):
    """A connection that was served, and the worker that still serves it; both may be missing."""

    connection: Connection | None = None
    worker: Orphan | None = None


def find(directory: RunDirectory, manager: ServiceManager, *, take_over: bool) -> Left:
    """What is left. After this, something is mounted at the hub only if there is a connection.

    Raises `Busy` and `Refused` as `clear_stale` does.
    """
    if manager.connection is not None:
        connection = _stored(manager.connection, directory.hub, take_over=take_over)
        if connection is not None:
            return Left(connection)
        manager.forget()
    # With a service manager there is no orphan: it ends both together.
    if manager.control is None and top_mount(read_mounts(), directory.hub) is not None:
        orphan = adoption.find(directory.path)
        if orphan is not None:
            return Left(Connection.adopt(orphan.fuse, directory.hub), orphan)
    if clear_stale(directory.hub, patience=ORPHAN_LIMIT):
        log(f"removed the stale mount of a dead daemon at {directory.hub}")
    return Left()


def _stored(descriptor: int, hub: str, *, take_over: bool) -> Connection | None:
    """The connection that the service manager kept, if another worker can go on with it."""
    if take_over:
        try:
            connection = Connection.adopt(descriptor, hub)
        except Unavailable as error:
            log(f"cannot go on with the connection of the keeper before: {error}")
        else:
            log(f"going on with the connection of the keeper before, at {hub}")
            return connection
    os.close(descriptor)
    return None
