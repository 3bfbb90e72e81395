"""Sessions that are held by the process that opened them: with its end they end, however it comes.

A session that is attached somewhere outlives its holder, since a sandbox uses it then.

Concurrency. On the event loop; a task for each held session waits for the end of its process. A worker that
takes over waits anew for those that it brought back.
"""

import math
import os
from collections.abc import Awaitable, Callable

import trio

from engramfs import telemetry
from engramfs.daemon.control import Peer
from engramfs.daemon.session import Holder, Session
from engramfs.daemon.sessions import Sessions
from engramfs.errors import EngramError, NotFound
from engramfs.mount.place import lives, start_of

End = Callable[[Session], Awaitable[None]]


class Holding:
    """`end` ends a session, with what it wrote sealed."""

    def __init__(self, sessions: Sessions, end: End) -> None:
        self._sessions = sessions
        self._end = end
        self._waiting: dict[str, trio.CancelScope] = {}
        self._send, self._receive = trio.open_memory_channel[Session](math.inf)
        self._log = telemetry.logger("sessions")

    def begin(self, session: Session) -> None:
        """Wait for the end of a session's holder, if it has one."""
        if session.holder is not None:
            self._send.send_nowait(session)

    def forget(self, identifier: str) -> None:
        """The session has ended otherwise."""
        scope = self._waiting.pop(identifier, None)
        if scope is not None:
            scope.cancel()

    async def serve(self) -> None:
        """Wait for the holders of the sessions that are open now, and of those that `begin` names."""
        for session in self._sessions.every():
            self.begin(session)
        async with trio.open_nursery() as nursery:
            async for session in self._receive:
                nursery.start_soon(self._end_with, session)

    async def _end_with(self, session: Session) -> None:
        assert session.holder is not None
        with trio.CancelScope() as scope:
            self._waiting[session.id] = scope
            await _end_of(session.holder)
        if scope.cancelled_caught or self._waiting.pop(session.id, None) is None:
            return
        try:
            now = self._sessions.get(session.id)
            if not now.places:
                self._log.info("holder ended", id=session.id, pid=session.holder.pid)
                await self._end(now)
        except NotFound:  # it was closed by another
            return
        except EngramError as error:  # it stays, and is shown as gone
            self._log.warning("a held session cannot be closed", id=session.id, reason=error.message)


def holder_of(peer: Peer) -> Holder | None:
    """The process that asks; None for one in a pid namespace that we do not see into."""
    if peer.pid <= 0:
        return None
    try:
        return Holder(peer.pid, start_of(peer.pid))
    except OSError:  # it has ended already
        return Holder(peer.pid, 0)


def has_lost_holder(session: Session) -> bool:
    """Whether the process that held a session has ended, and it is attached nowhere."""
    holder = session.holder
    return holder is not None and not session.places and not lives(holder.pid, holder.started)


async def _end_of(holder: Holder) -> None:
    try:
        process = os.pidfd_open(holder.pid)
    except ProcessLookupError:
        return
    try:
        if lives(holder.pid, holder.started):
            await trio.lowlevel.wait_readable(process)
    finally:
        os.close(process)
