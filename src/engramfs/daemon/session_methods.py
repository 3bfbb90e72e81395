"""The methods of the control socket that are about sessions.

Mounts are made by whoever asks, never by the worker: a method says what belongs where, and is told when it
is there.
"""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
import trio

from engramfs.daemon.config import Config
from engramfs.daemon.control import Handler, Peer
from engramfs.daemon.holding import Holding, has_lost_holder, holder_of
from engramfs.daemon.request import taking
from engramfs.daemon.session import Session
from engramfs.daemon.sessions import Sessions
from engramfs.daemon.settling import Settled
from engramfs.daemon.switching import Switching
from engramfs.errors import Conflict
from engramfs.mount.holders import Held, held_sessions, is_gone
from engramfs.mount.mountinfo import read_mounts, top_mount
from engramfs.mount.place import Place, namespace_of, start_of
from engramfs.vfs.filesystem import Filesystem

PATIENCE = 2.0  # seconds to look for who is left in a session
Document = dict[str, Any]


class OpenRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`place` is where the caller is about to attach the session; `reuse` one that is attached there.

    With `reuse`, a session of another identity at `place` is in the way, unless `over`. A session that is
    `held` ends with the process that asks, unless it is attached somewhere by then.
    """

    agent: str | None = None
    actor: str | None = None
    tenant: str | None = None
    attach: tuple[str, ...] = ()
    uid: int | None = None
    gid: int | None = None
    place: Place | None = None
    reuse: bool = False
    over: bool = False
    held: bool = False


class NoRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A method without parameters."""


class SessionRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str


class ShowRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Without `state` it is not looked up whether anybody is left, which takes a look at every process."""

    id: str
    state: bool = True


class PlaceRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    place: Place


class AttachingRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """With `over`, the session takes the place of one that is there."""

    id: str
    place: Place
    over: bool = False


class SwitchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    actor: str
    tenant: str | None = None


class SessionMethods:
    """`mount` is where the hub is mounted."""

    def __init__(
        self, filesystem: Filesystem, sessions: Sessions, config: Config, mount: str, settled: Settled
    ) -> None:
        self._filesystem = filesystem
        self._sessions = sessions
        self._config = config
        run, name = os.path.split(mount)
        self._mount = os.path.join(os.path.realpath(run), name)  # as mountinfo shows it
        self._settled = settled
        self._looking = trio.CapacityLimiter(1)
        self._switching = Switching(sessions, config, settled)
        self.holding = Holding(sessions, self._end)

    def methods(self) -> Mapping[str, Handler]:
        return {
            "session.open": taking(OpenRequest, self.open),
            "session.list": taking(NoRequest, self.every),
            "session.show": taking(ShowRequest, self.show),
            "session.close": taking(SessionRequest, self.close),
            "session.close_gone": taking(NoRequest, self.close_gone),
            "session.attaching": taking(AttachingRequest, self.attaching),
            "session.attached": taking(PlaceRequest, self.attached),
            "session.detached": taking(PlaceRequest, self.detached),
            "session.switch": taking(SwitchRequest, self.switch),
            "session.switched": taking(SessionRequest, self.switched),
            "session.switch_failed": taking(SessionRequest, self.switch_failed),
        }

    async def open(self, request: OpenRequest, peer: Peer) -> Document:
        agent, actor, tenant, place = request.agent, request.actor, request.tenant, request.place
        if request.reuse and place is not None:
            known = self._sessions.find(self._config.agent(agent).name, actor, tenant, place)
            if known is not None:
                return (await self._sessions.refresh(known)).document() | {"created": False}
            if not request.over:
                await self._require_free(place)
        session = await self._sessions.open(
            agent,
            actor,
            tenant,
            asked=request.attach,
            uid=request.uid,
            gid=request.gid,
            place=None if request.reuse else place,
            holder=holder_of(peer) if request.held else None,
        )
        self.holding.begin(session)
        return session.document() | {"created": True}

    async def every(self, _request: NoRequest, _peer: Peer) -> list[Document]:
        return await self.documents()

    async def documents(self) -> list[Document]:
        """Every session, with whether anybody is left in it."""
        gone = await self._gone()
        return [session.document(_state(session, gone)) for session in self._sessions.every()]

    async def show(self, request: ShowRequest, _peer: Peer) -> Document:
        session = self._sessions.get(request.id)
        if not request.state:
            return session.document()
        return session.document(_state(session, await self._gone()))

    async def close(self, request: SessionRequest, _peer: Peer) -> None:
        await self._end(self._sessions.get(request.id))

    async def close_gone(self, _request: NoRequest, _peer: Peer) -> list[Document]:
        gone = await self._gone()
        ended = [session for session in self._sessions.every() if session.id in gone]
        for session in ended:
            await self._end(session)
        return [session.document("gone") for session in ended]

    async def _end(self, session: Session) -> None:
        await self._filesystem.seal_all()
        self._sessions.close(session.id)
        self.holding.forget(session.id)
        await self._settled()

    async def attaching(self, request: AttachingRequest, _peer: Peer) -> Document:
        """Keep a place for a session, whose mounts are made next: `attached` or `detached` follows."""
        if not request.over:
            await self._require_free(request.place, request.id)
        return self._sessions.reserve(request.id, request.place).document()

    async def _require_free(self, place: Place, but: str | None = None) -> None:
        """Raise `Conflict` when another session is at `place`. Nothing else runs between look and return."""
        if not self._sessions.at(place, but):
            return
        gone = await self._gone()
        for other in self._sessions.at(place, but):
            if other.id not in gone:
                where = place.root if place.pid is None else f"{place.root} of process {place.pid}"
                raise Conflict(
                    f"session {other.id} ({other.author.label()}) is attached at {where}; choose another, "
                    f"engramfs detach {other.id} first, or end it there with --over"
                )

    async def attached(self, request: PlaceRequest, _peer: Peer) -> Document:
        replaced = self._sessions.attached(request.id, request.place)
        for other in replaced:
            if not other.places:  # what it had is covered, and nobody can reach it any more
                await self._end(other)
        return self._sessions.get(request.id).document()

    async def detached(self, request: PlaceRequest, _peer: Peer) -> Document:
        return self._sessions.detached(request.id, request.place).document()

    # Switching

    async def switch(self, request: SwitchRequest, peer: Peer) -> Document:
        """The session, with the mount that belongs in every one of its places, if there is one to make."""
        by = Place("", 0, peer.pid, start_of(peer.pid))
        session = await self._switching.prepare(request.id, request.actor, request.tenant, by)
        assert session.pending is not None
        return session.document() | {"mount": msgspec.to_builtins(session.pending.attached)}

    async def switched(self, request: SessionRequest, _peer: Peer) -> Document:
        return (await self._switching.commit(request.id)).document()

    async def switch_failed(self, request: SessionRequest, _peer: Peer) -> Document:
        return self._switching.cancel(request.id).document()

    # Who is left

    async def _gone(self) -> set[str]:
        """The ids of sessions that were attached, and have nobody left in any of their places, or were held.

        While a look into /proc waits (see `holders`) nobody is said to be gone, and no second thread waits
        likewise.
        """
        lost = {session.id for session in self._sessions.every() if has_lost_holder(session)}
        if not any(session.places for session in self._sessions.every()):
            return lost
        held: Held | None = None
        with trio.move_on_after(PATIENCE):
            held = await trio.to_thread.run_sync(self._held, abandon_on_cancel=True, limiter=self._looking)
        if held is None:
            return lost
        own = namespace_of(os.getpid())
        return lost | {
            session.id
            for session in self._sessions.every()
            if session.places and all(map(partial(_is_gone, session, held, own), session.places))
        }

    def _held(self) -> Held:
        hub = top_mount(read_mounts(), self._mount)
        return held_sessions(hub.device) if hub is not None else {}


def _is_gone(session: Session, held: Held, own: int, place: Place) -> bool:
    return is_gone(session.id, place, held, own)


def _state(session: Session, gone: set[str]) -> str:
    if session.id in gone:
        return "gone"
    return "attached" if session.places else "open"
