"""Switching the actor of a session: `/memories/user` becomes another's, everywhere at once.

Three steps, since the mounts are made by whoever asks (a worker never touches its own mount):

    prepare   the new view is served, at a source of its own; nobody sees it yet
    (mounts)  `engramfs.mount.switch` puts it in the place of the old one
    commit    the old view is revoked, the other views have the new author, the file and the log say so

`cancel` ends the new view instead. Whoever asks may die between: then the session says so, every place still
shows exactly one actor's memory, and the next switch puts all of them right.
"""

import time

import msgspec
import trio

from engramfs import telemetry
from engramfs.daemon.attachments import USER_MEMORY
from engramfs.daemon.config import Config
from engramfs.daemon.scoping import ScopedMemory, scoped_memory
from engramfs.daemon.session import Pending, Session, Switch
from engramfs.daemon.sessions import Sessions
from engramfs.daemon.settling import Settled
from engramfs.errors import Busy, Conflict, Refused
from engramfs.model.access import Access
from engramfs.model.times import format_time
from engramfs.mount.place import Place, lives
from engramfs.vfs.writable_view import WritableView

replace = msgspec.structs.replace
_REMEMBERED = 100  # earlier actors, in the file of a session

GRACE = 0.01  # seconds for whoever opened a file in the old view to have read it, before it is revoked


class Switching:
    """The three steps. On the event loop; `prepare` waits for stores, `commit` for the kernel."""

    def __init__(self, sessions: Sessions, config: Config, settled: Settled) -> None:
        self._sessions = sessions
        self._config = config
        self._settled = settled
        self._log = telemetry.logger("sessions")

    async def prepare(self, identifier: str, actor: str, tenant: str | None, by: Place) -> Session:
        """Serve the memory of the new actor beside the old one; the session with what is `pending`.

        Without a tenant the session keeps its own. Raises what opening a session for that actor would
        raise, `Busy` while another switch goes on, `Refused` where there is no actor's memory to switch.
        """
        session = self._sessions.get(identifier)
        self._check_free(session)
        tenant = session.tenant if tenant is None else tenant
        config = self._config.agent(session.agent)
        shown = _shown_memory(session, scoped_memory(config, session.agent, session.actor, session.tenant))
        wanted = await self._sessions.wanted(config, actor, tenant)
        session = self._sessions.get(identifier)
        self._check_free(session)
        memory = scoped_memory(config, session.agent, actor, tenant)
        attached = None
        if memory is not None and memory.store != shown:
            session = replace(session, serial=session.serial + 1)
            new = next(each for each in wanted if each.path == USER_MEMORY)
            attached = self._sessions.pin(session, new)
            self._sessions.graft(replace(session, actor=actor, tenant=tenant), attached)
        return self._sessions.keep(replace(session, pending=Pending(actor, tenant, attached, by)))

    def _check_free(self, session: Session) -> None:
        pending = session.pending
        if pending is not None and lives(pending.by.pid, pending.by.started):
            raise Busy(f"session {session.id} is being switched by process {pending.by.pid}; try again")

    async def commit(self, identifier: str) -> Session:
        """Every place shows the new view: from now on there is no other. Raises `Conflict`."""
        session = self._sessions.get(identifier)
        pending = session.pending
        if pending is None:
            raise Conflict(f"session {identifier} is not being switched")
        before = Switch(format_time(time.time_ns()), session.actor, session.tenant)
        attachments = session.attachments
        if pending.attached is not None:
            attachments = tuple(
                pending.attached if each.path == USER_MEMORY else each for each in attachments
            )
        session = replace(
            session.with_attachments(attachments),
            actor=pending.actor,
            tenant=pending.tenant,
            pending=None,
            switched=(*session.switched, before)[-_REMEMBERED:],
        )
        self._sessions.keep(session)
        await trio.sleep(GRACE)
        self._take_over(session)
        await self._settled()
        self._log.info(
            "session switched",
            id=identifier,
            actor=session.actor,
            tenant=session.tenant,
            from_actor=before.actor,
            from_tenant=before.tenant,
        )
        return session

    def _take_over(self, session: Session) -> None:
        """Revoke what the session does not show any more; the rest is written by the new actor."""
        shown = {each.source for each in session.attachments}
        for source in self._sessions.own_sources(session.id):
            view = self._sessions.view(session.id, source)
            if source not in shown:
                self._sessions.revoke(session.id, source)
            elif isinstance(view, WritableView):
                view.author = session.author

    def cancel(self, identifier: str) -> Session:
        """The mounts could not be made: the new view ends, and the session is what it was."""
        session = self._sessions.get(identifier)
        if session.pending is not None and session.pending.attached is not None:
            self._sessions.revoke(identifier, session.pending.attached.source)
        return self._sessions.keep(replace(session, pending=None))


def _shown_memory(session: Session, memory: ScopedMemory | None) -> str | None:
    """The store at `/memories/user`, which is that of the session's actor. Raises `Refused` otherwise."""
    shown = next((each for each in session.attachments if each.path == USER_MEMORY), None)
    expected = (memory.store, Access.READ_WRITE) if memory is not None else None
    if expected != ((shown.store, shown.access) if shown is not None else None):
        raise Refused(
            f"session {session.id} was opened with another attachment at {USER_MEMORY}; "
            "open a new session for that actor"
        )
    return shown.store if shown is not None else None
