"""What an actor left behind: stores of their own, and in other stores what they wrote or what they had.

Nothing is removed here. Each trace in another store is one redaction to make.
"""

from collections.abc import Iterator
from itertools import islice

import msgspec

from engramfs.errors import NotFound
from engramfs.history import catalog, log
from engramfs.history.collection.marking import named
from engramfs.history.redaction_target import target
from engramfs.model.author import Author
from engramfs.model.entry import EMPTY_DIGEST, Kind
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.model.version import Change, ChangeKind
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Table

_Place = tuple[int, bytes, int]  # parent, name, first version of a span
_AT_ONCE = 2000  # versions in one read transaction


class Trace(msgspec.Struct, frozen=True):
    """A content that a version of another store brought; `at_head` if it is still there.

    It can be redacted by that path, when it is not at the head any more; unless it is `lost`: the version
    says so, and nothing of it can be found there.
    """

    store: str
    number: int
    path: str
    why: str  # `wrote it`, or `has it in their own memory`
    at_head: bool
    lost: bool = False


def stores_of(reader: Reader, actor: str, tenant: str | None) -> list[Store]:
    """The stores that are one actor's memory."""
    owner = f"actor {actor}" if tenant is None else f"actor {actor} of {tenant}"
    return [store for store in catalog.every(reader) if store.owner == owner]


def traces(engine: Engine, own: list[Store], actor: str, tenant: str | None) -> Iterator[Trace]:
    """What of the actor is in other stores than their `own`, oldest first in each store."""
    theirs = _contents(engine, {store.id for store in own}) - _seeded(engine, own)
    with engine.reading() as reader:
        others = [store for store in catalog.every(reader) if store not in own]
    for store in others:
        yield from _in_store(engine, store, theirs, actor, tenant)


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


def _in_store(
    engine: Engine, store: Store, theirs: set[bytes], actor: str, tenant: str | None
) -> Iterator[Trace]:
    start, stop = keys.version(store.id, 0), keys.version(store.id + 1, 0)
    seen: set[_Place] = set()
    while True:
        with engine.reading() as reader:
            rows = list(islice(reader.scan(Table.VERSIONS, start, stop), _AT_ONCE))
            for _, value in rows:
                version = log.decode_version(value)
                wrote = _is_by(version.author, actor, tenant)
                for change in log.changes(reader, store.id, version.number):
                    if _brings_content(change) and (wrote or change.digest in theirs):
                        yield from _traced(reader, store, version.number, change, seen, wrote=wrote)
        if len(rows) < _AT_ONCE:
            return
        start = rows[-1][0] + b"\0"


def _is_by(author: Author, actor: str, tenant: str | None) -> bool:
    return author.kind == "agent" and author.actor == actor and author.tenant == tenant


def _brings_content(change: Change) -> bool:
    return (
        change.op is not ChangeKind.DELETED
        and change.kind is not Kind.DIRECTORY
        and not change.is_redacted
        and change.digest != EMPTY_DIGEST
    )


def _traced(
    reader: Reader, store: Store, number: int, change: Change, seen: set[_Place], *, wrote: bool
) -> Iterator[Trace]:
    """The trace, unless the redaction of one that was seen takes it out too."""
    why = "wrote it" if wrote else "has it in their own memory"
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
