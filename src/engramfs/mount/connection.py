"""A FUSE connection as whoever keeps it has it: a `/dev/fuse` descriptor and the place where it is mounted.

Who holds the descriptor holds the connection: it lives until the last copy is closed, and requests wait
meanwhile. Nothing here reads it or touches the mounted filesystem, so nothing here waits for a worker.
"""

import errno
import os
import select
from collections.abc import Callable, Collection

from engramfs.errors import Unavailable
from engramfs.mount import hub
from engramfs.mount.liveness import Liveness, liveness
from engramfs.mount.mountinfo import read_mounts, top_mount


class Connection:
    """What a worker serves. It outlives a worker; `close` or `leave` ends our part in it, once."""

    def __init__(
        self, descriptor: int, point: str, minor: int, unmount: Callable[[str], None] = hub.unmount
    ) -> None:
        self.descriptor = descriptor
        self.point = point
        self.minor = minor
        self.served = False  # a worker has answered its INIT, so the next one takes it over
        self._unmount = unmount

    @classmethod
    def open(
        cls,
        point: str,
        mount: Callable[[str], int] = hub.mount_new,
        unmount: Callable[[str], None] = hub.unmount,
    ) -> "Connection":
        """A new one, mounted by `mount` at `point`, a path without symbolic links.

        Raises what `mount` raises, `Unavailable` above all, and then leaves nothing behind.
        """
        descriptor = mount(point)
        mounted = top_mount(read_mounts(), point)
        if mounted is None:
            os.close(descriptor)
            unmount(point)
            raise Unavailable(f"{point} was mounted but /proc/self/mountinfo does not list it; mount /proc")
        return cls(descriptor, point, mounted.minor, unmount)

    @classmethod
    def adopt(cls, descriptor: int, point: str) -> "Connection":
        """One that was served already. Raises `Unavailable` when it is not mounted here, or at its end."""
        mounted = top_mount(read_mounts(), point)
        if mounted is None or not mounted.is_ours:
            raise Unavailable(
                f"{point} is not mounted in this mount namespace; start the daemon where it was"
            )
        if _has_ended(descriptor):
            raise Unavailable(f"the connection that was mounted at {point} has ended; it is mounted afresh")
        connection = cls(descriptor, point, mounted.minor)
        connection.served = True
        return connection

    @property
    def has_ended(self) -> bool:
        """Whether it was aborted, unmounted everywhere, or given up by us."""
        return self.descriptor < 0 or _has_ended(self.descriptor)

    def abort(self) -> None:
        """End the connection now; what waits on it gets ENOTCONN. The mounts stay.

        Only while it lives: once its last mount is gone, its number is given to another connection.
        """
        if not self.has_ended:
            hub.abort_connection(self.minor)

    def leave(self) -> None:
        """Close our copy of the descriptor and nothing else: somebody else has one, and goes on with it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def close(self, *, everywhere: bool = False) -> None:
        """End the connection and take the hub off, or with `everywhere` all its mounts in this namespace.

        Bind mounts that stay give ENOTCONN.
        """
        if self.descriptor < 0:
            return
        self.abort()  # first: until then a path that leads through one of the mounts may wait for ever
        self.leave()
        if everywhere:
            for mount in reversed(read_mounts()):
                if mount.is_ours and mount.minor == self.minor and mount.point != self.point:
                    _unmount_dead(mount.point)
        self._unmount(self.point)


def _has_ended(descriptor: int) -> bool:
    """Whether the connection was aborted, or unmounted everywhere."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return bool(poll.poll(0))


def clear_dead(minors: Collection[int]) -> None:
    """Unmount what is left in this namespace of ended connections, by their numbers.

    A number is given to a new connection once the last mount of the old one is gone, so each is asked.
    """
    for mount in reversed(read_mounts()):
        if mount.is_ours and mount.minor in minors and liveness(mount.point) is Liveness.DEAD:
            _unmount_dead(mount.point)


def _unmount_dead(point: str) -> None:
    """Unmount one of a dead connection's mounts. One beneath another goes with that one."""
    try:
        hub.unmount(point)
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise
