"""The methods of the control socket by which another process collects: see `engramfs.history.collection`.

That process reads the log itself. Here its slices are written, in their turn at the log writer, and what
comes into use meanwhile is noted. One collection at a time: each call but the first names it, and a call of
one that was given up, or that another worker began, is refused.
"""

import secrets
from collections.abc import Callable, Mapping
from functools import partial

import msgspec
import trio

from engramfs.daemon.control import Handler, Notify, Peer
from engramfs.daemon.request import taking
from engramfs.daemon.sessions import Sessions
from engramfs.errors import Busy, Stale
from engramfs.history import catalog
from engramfs.history.collection import slices
from engramfs.history.collection.carrier import Done, put_end, timed
from engramfs.history.collection.slices import Prune, Recode
from engramfs.history.repository import Repository
from engramfs.history.residue import clear_residue, leave_residue
from engramfs.storage.lmdb_wiping import SETTLING
from engramfs.storage.protocol import Writer
from engramfs.vfs.collecting import end_removed, note_unrecorded
from engramfs.vfs.filesystem import Filesystem

# Methods that store contents first, and name them some transactions later.
_NAMING = ("import", "import.git", "deploy", "store.restore")


class NoRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A method without parameters."""


class OldestRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    collection: str
    store: int
    oldest: int


class PruneRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    collection: str
    slice: Prune


class RecodeRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    collection: str
    rows: list[Recode]


class SweepRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    collection: str
    digests: list[bytes]


class EndRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    collection: str
    now: int


class WipedRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    residue: bytes


class GcMethods:
    """At most one collection at a time."""

    def __init__(self, repository: Repository, filesystem: Filesystem, sessions: Sessions) -> None:
        self._engine = repository.engine
        self._filesystem = filesystem
        self._sessions = sessions
        self._writer = filesystem.resources.writer
        self._in_use = filesystem.resources.in_use
        self._collection = ""

    def methods(self) -> Mapping[str, Handler]:
        return {
            "gc.begin": taking(NoRequest, self.begin),
            "gc.oldest": taking(OldestRequest, self.oldest),
            "gc.prune": taking(PruneRequest, self.prune),
            "gc.recode": taking(RecodeRequest, self.recode),
            "gc.sweep": taking(SweepRequest, self.sweep),
            "gc.end": taking(EndRequest, self.end),
            "gc.age": taking(NoRequest, self.age),
            "gc.wiped": taking(WipedRequest, self.wiped),
        }

    def guarding(self, methods: Mapping[str, Handler]) -> Mapping[str, Handler]:
        """The methods, those that name contents guarded from a collection."""
        return {
            name: self._guarded(handler) if name in _NAMING else handler for name, handler in methods.items()
        }

    def _guarded(self, handler: Handler) -> Handler:
        async def guarded(params: dict[str, object], peer: Peer, notify: Notify) -> object:
            with self._in_use.naming():
                if self._in_use.is_collected:
                    await self._writer.run(_nothing)  # a slice may be at work, and ends before this begins
                return await handler(params, peer, notify)

        return guarded

    async def begin(self, _request: NoRequest, _peer: Peer) -> str:
        """The name of the collection. The journal is left with what is needed of it."""
        with self._engine.reading() as reader:
            self._in_use.begin(reader)
        self._collection = secrets.token_hex(8)
        await self._filesystem.seal_all()
        self._filesystem.compact_journal()
        await note_unrecorded(self._filesystem)
        return self._collection

    def _require(self, collection: str) -> None:
        if collection != self._collection or not self._in_use.is_collected:
            raise Stale("this collection was given up, since another began or a worker did; begin again")

    async def oldest(self, request: OldestRequest, _peer: Peer) -> list[int]:
        """The versions that sessions are pinned to. After this none is pinned to one below `oldest`."""
        self._require(request.collection)
        await self._writer.run(partial(slices.set_oldest, store=request.store, oldest=request.oldest))
        with self._engine.reading() as reader:
            store = catalog.get(reader, request.store)
        pinned = self._sessions.pinned(store.name)
        end_removed(self._filesystem, store, request.oldest, pinned)
        return sorted(pinned)

    async def prune(self, request: PruneRequest, _peer: Peer) -> Done:
        return await self._carry(request.collection, partial(slices.prune, slice_=request.slice))

    async def recode(self, request: RecodeRequest, _peer: Peer) -> Done:
        body = partial(slices.recode, rows=request.rows, in_use=self._in_use)
        return await self._carry(request.collection, body)

    async def sweep(self, request: SweepRequest, _peer: Peer) -> Done:
        body = partial(slices.sweep, digests=request.digests, in_use=self._in_use)
        return await self._carry(request.collection, body)

    async def _carry(self, collection: str, body: Callable[[Writer], int]) -> Done:
        self._require(collection)
        if self._in_use.is_anything_named:
            raise Busy("contents are being imported; the collection goes on after that")
        return await self._writer.run(partial(timed, body=body))

    async def end(self, request: EndRequest, _peer: Peer) -> None:
        self._require(request.collection)
        self._in_use.end()
        await trio.to_thread.run_sync(self._engine.drop_buffers)
        await self._writer.run(partial(put_end, now=request.now))

    async def age(self, _request: NoRequest, _peer: Peer) -> None:
        """Commit often enough that no page which was freed until now is needed after a power cut."""
        for _ in range(SETTLING):
            await self._writer.run(leave_residue)

    async def wiped(self, request: WipedRequest, _peer: Peer) -> None:
        await self._writer.run(partial(clear_residue, known=request.residue))


def _nothing(_writer: Writer) -> None:
    pass
