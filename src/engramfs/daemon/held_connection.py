"""The connection that a keeper holds, from one worker to the next and perhaps to the next keeper.

One that cannot be handed on is ended and mounted afresh, and once it is served the sessions are attached
again where they were. The service manager is told of all this, and keeps a copy for the next keeper.
"""

from collections.abc import Callable

from engramfs.daemon.events import Events
from engramfs.daemon.handover import FUSE, FUSE_SERVED
from engramfs.daemon.keeper_log import log
from engramfs.daemon.reattaching import Reattaching
from engramfs.daemon.run_directory import RunDirectory
from engramfs.daemon.service_manager import ServiceManager
from engramfs.mount.connection import Connection, clear_dead


class HeldConnection:
    """At most one at a time. `connect` makes one; `connection` is what an earlier keeper left, or None.

    With `take_over` it can be handed on to another worker.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        directory: RunDirectory,
        manager: ServiceManager,
        events: Events,
        connection: Connection | None,
        *,
        take_over: bool,
    ) -> None:
        self._connect = connect
        self._directory = directory
        self._manager = manager
        self._events = events
        self._connection = connection
        self._take_over = take_over
        self._reattaching: Reattaching | None = None
        self._ended: set[int] = set()  # connections of which a mount may be left

    def current(self) -> Connection:
        """The connection, made when there is none. Raises what `connect` raises."""
        if self._connection is None:
            self._connection = self._connect()
            self._directory.set_attaching(self._directory.has_sessions())
        return self._connection

    def passed(self) -> dict[str, int]:
        """What a worker is started with: its descriptor, by the name that says what to do with it."""
        connection = self.current()
        return {FUSE_SERVED if connection.served else FUSE: connection.descriptor}

    @property
    def can_be_handed_on(self) -> bool:
        connection = self._connection
        return self._take_over and connection is not None and connection.served and not connection.has_ended

    def store(self) -> None:
        """Let the service manager keep a copy, from now on."""
        if self._take_over and self._connection is not None:
            self._manager.store(self._connection.descriptor)

    def is_served(self) -> None:
        """A worker is ready. The service is too, once what was attached before the mount is so again."""
        if self._connection is not None:
            self._connection.served = True
        if self._reattaching is not None:
            return
        if not self._directory.is_attaching():
            self._manager.tell("READY=1")
            return
        self._reattaching = Reattaching(self._directory.path)
        self._events.watch(self._reattaching.exited, self._reap_reattaching)

    def _reap_reattaching(self) -> None:
        if self._reattaching is None:
            return
        ended, self._reattaching = self._reattaching, None
        self._events.forget(ended.exited)
        status = ended.reap()
        log("the sessions are attached" if status == 0 else f"attaching sessions failed ({status})")
        self._directory.set_attaching(False)
        if status >= 0:
            self._manager.tell("READY=1")

    def abort(self) -> None:
        """End it at once for everyone; what waits for it is freed."""
        if self._connection is not None:
            self._connection.abort()

    def end(self, *, everywhere: bool = False) -> None:
        """End it, and take the hub off; with `everywhere` all its mounts."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._reattaching is not None:  # it would go on, and attach what is dead
            self._reattaching.kill()
            connection.abort()
            self._reap_reattaching()
        connection.close(everywhere=everywhere)
        self._manager.forget()
        self._ended.add(connection.minor)

    def let_go(self, *, for_good: bool) -> None:
        """The keeper ends, `for_good` when it was stopped and did not fail.

        The service manager has a copy of the connection for the next keeper: then the mounts stay. That one
        comes after a failure, and after a stop if that is half of a restart.
        """
        another = self._manager.starts_another() if for_good else self._manager.has_stored
        if self.can_be_handed_on and another and self._connection is not None:
            log("the connection is left to the next keeper")
            self._connection.leave()
        else:
            self.end(everywhere=for_good)
        clear_dead(self._ended)
