"""What an actor left behind: stores of their own, and in other stores what they wrote or what they had.

Nothing is removed here. Each trace in another store is one redaction to make.
"""

from collections.abc import Iterator

import msgspec

from engramfs.errors import NotFound
from engramfs.history import catalog, log, pending
from engramfs.history.authorship import Actor, brings_content, has_written, versions_of, written_first
from engramfs.history.collection.marking import named
from engramfs.history.imported import text_of
from engramfs.history.named_directories import named_directories
from engramfs.history.pending_redaction import redactable
from engramfs.history.redaction_target import target
from engramfs.model.entry import EMPTY_DIGEST
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.model.version import Change, ChangeKind, Version
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Table

_Place = tuple[int, bytes, int]  # parent, name, first version of a span
_WROTE = "wrote it"


class Trace(msgspec.Struct, frozen=True):
    """A content that a version of another store, or what was pending for it, brought; or a `message` of one,
    or the name that a version gave to a `directory`.

    It can be redacted when it is neither at the head any more nor `waits` for a decision; unless it is
    `lost`: the version says so, and nothing of it can be found there.
    """

    store: str
    number: int
    path: str
    why: str  # `wrote it`, `renamed it, …`, `named it`; of others' `wrote what it has`, `has it in …`
    at_head: bool
    lost: bool = False
    pending: bool = False  # `number` is that of what was pending
    waits: bool = False
    message: bool = False
    directory: bool = False  # the name of one


class _Whose(msgspec.Struct, frozen=True):
    """What is an actor's: what they made, the contents of their stores, and those they wrote `first`."""

    actor: Actor
    theirs: set[bytes]
    first: dict[bytes, int]  # digest → when

    def traced(self, reader: Reader, store: Store, version: Version) -> Iterator[tuple[Change, str]]:
        """The changes of a version that brought something of the actor's, and why it is that."""
        for change in log.changes(reader, store.id, version.number):
            why = self._why(reader, store, version, change) if brings_content(change) else ""
            if why:
                yield change, why

    def _why(self, reader: Reader, store: Store, version: Version, change: Change) -> str:
        is_by_them = self.actor.made(version)
        if is_by_them and (change.digest in self.first or has_written(reader, store, version.number, change)):
            return _WROTE
        if self.first.get(change.digest, version.time + 1) <= version.time:
            return "wrote what it has"
        if change.digest in self.theirs:
            return "has it in their own memory"
        return "renamed it, another wrote it" if is_by_them and change.op is ChangeKind.RENAMED else ""

    def said(self, version: Version) -> bool:
        """Whether the version has a message of the actor's: an approval alone says who approved it."""
        text = text_of(version)
        is_own = version.via != "approval" or " (pending " in text
        return bool(text) and is_own and self.actor.made(version)


def stores_of(reader: Reader, actor: str, tenant: str | None) -> list[Store]:
    """The stores that are one actor's memory."""
    owner = f"actor {actor}" if tenant is None else f"actor {actor} of {tenant}"
    return [store for store in catalog.every(reader) if store.owner == owner]


def traces(engine: Engine, own: list[Store], actor: str, tenant: str | None) -> Iterator[Trace]:
    """What of the actor is in other stores than their `own`, oldest first in each store."""
    who = Actor(actor, tenant)
    theirs = _contents(engine, {store.id for store in own}) - _seeded(engine, own)
    with engine.reading() as reader:
        others = [store for store in catalog.every(reader) if store not in own]
    whose = _Whose(who, theirs, written_first(engine, who))
    for store in others:
        yield from _in_store(engine, store, whose)
        with engine.reading() as reader:
            forks = list(catalog.forks(reader, store.id))
        for fork in forks:
            yield from _in_fork(engine, store, fork, whose)
        yield from _names(engine, store, who)


def _contents(engine: Engine, stores: set[int]) -> set[bytes]:
    """The digests that these stores hold, in any version."""
    rows = named(engine, Table.HISTORY, lambda _rows: None)
    return {digest for key, digest, _ in rows if keys.read_u32(key[:4]) in stores} - {b"", EMPTY_DIGEST}


def _seeded(engine: Engine, stores: list[Store]) -> set[bytes]:
    """The digests that engramfs itself put there, for everybody alike."""
    found: set[bytes] = set()
    with engine.reading() as reader:
        for store in stores:
            for version in log.versions(reader, store.id):
                if version.author.kind == "system":
                    found |= {change.digest for change in log.changes(reader, store.id, version.number)}
    return found


def _in_store(engine: Engine, store: Store, whose: _Whose) -> Iterator[Trace]:
    seen: set[_Place] = set()
    for reader, version in versions_of(engine, store):
        number = version.number
        for change, why in whose.traced(reader, store, version):
            yield from _traced(reader, store, number, change, seen, why)
        if whose.said(version):
            yield Trace(store.name, number, "", _WROTE, at_head=False, message=True)


def _names(engine: Engine, store: Store, who: Actor) -> Iterator[Trace]:
    """Last, since the paths of all others lead through them."""
    for one in named_directories(engine, store, who):
        yield Trace(
            store.name,
            one.number,
            printable(one.path),
            "named it",
            at_head=one.at_head,
            lost=one.lost,
            pending=one.pending,
            waits=one.waits,
            directory=True,
        )


def _in_fork(engine: Engine, store: Store, fork: Store, whose: _Whose) -> Iterator[Trace]:
    for reader, version in versions_of(engine, fork):
        offered = pending.of_version(reader, fork, version.number)
        if offered is None:
            continue
        number = offered.number
        for change, why in whose.traced(reader, fork, version):
            state = redactable(reader, store, number, change.path)
            path, lost, waits = printable(change.path), state == "lost", state == "waits"
            yield Trace(store.name, number, path, why, at_head=False, lost=lost, pending=True, waits=waits)
        if whose.said(version):
            yield Trace(store.name, number, "", _WROTE, at_head=False, pending=True, message=True)


def _traced(
    reader: Reader, store: Store, number: int, change: Change, seen: set[_Place], why: str
) -> Iterator[Trace]:
    """The trace, unless the redaction of one that was seen takes it out too."""
    path = printable(change.path)
    try:
        aim = target(reader, store, number, change.path)
    except NotFound:
        yield Trace(store.name, number, path, why, at_head=False, lost=True)
        return
    if aim.span is not None:
        place = aim.span.parent, aim.span.name, aim.span.first
        if place in seen:
            return
        seen.add(place)
    yield Trace(store.name, number, path, why, at_head=aim.is_at_head)
