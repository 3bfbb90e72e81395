"""Where else a content is: in other paths and versions of a store, and in what was ever pending for it.

What waits for a decision, or is shown to its session still, loses it too, and waits on without it: see
`engramfs.history.waiting_redaction`.
"""

from collections.abc import Iterator

import msgspec

from engramfs.history import catalog
from engramfs.history.change_edits import Edit
from engramfs.history.occurrences import occurrences
from engramfs.history.redaction_plan import Part, Plan, require_past
from engramfs.history.redaction_target import spans
from engramfs.history.repository import Repository
from engramfs.model.entry import Entry
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Table

_AT_ONCE = 2000  # rows in one read transaction


def plan(
    repository: Repository, store: Store, content: Entry, edits: tuple[tuple[int, Edit], ...] = ()
) -> Plan:
    """What takes `content`, a file's or a symlink's, out of all of `store`. Raises `Refused`.

    `edits` are to be done to changes of the store besides.
    """
    with repository.engine.reading() as reader:
        forks = list(catalog.forks(reader, store.id))
    parts = [_part(repository, each, content) for each in (store, *forks)]
    with repository.engine.reading() as reader:
        require_past(reader, store, parts[0].spans)
    first = msgspec.structs.replace(parts[0], further=edits)
    return Plan(content, (first, *(_ended(part) for part in parts[1:])), everywhere=True)


def _part(repository: Repository, store: Store, content: Entry) -> Part:
    places = {(one.parent, one.name): None for one in occurrences(repository.engine, content, store.id)}
    with repository.engine.reading() as reader:
        head = catalog.head(reader, store.id).number
        found = [one for place in places for one in spans(reader, store, *place) if one.entry.holds(content)]
    mentions = set(_mentions(repository, store.id, content.digest)) if content.digest else set()
    return Part(store, head, tuple(found), mentions=tuple(sorted(mentions)))


def _ended(part: Part) -> Part:
    """In a fork nothing reaches further than its newest version."""
    ended = (msgspec.structs.replace(span, last=part.head) if span.last == 0 else span for span in part.spans)
    return msgspec.structs.replace(part, spans=tuple(ended))


def _mentions(repository: Repository, store: int, digest: bytes) -> Iterator[int]:
    """The versions whose changes name a digest."""
    start, stop = keys.u32(store), keys.after(keys.u32(store))
    while True:
        with repository.engine.reading() as reader:
            rows = reader.scan(Table.CHANGES, start, stop)
            found = [(key, digest in value) for (key, value), _ in zip(rows, range(_AT_ONCE), strict=False)]
        yield from (keys.read_u64(key[4:12]) for key, mentions in found if mentions)
        if len(found) < _AT_ONCE:
            return
        start = found[-1][0] + b"\0"
