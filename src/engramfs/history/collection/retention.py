"""Which versions of a store stay, and which rows go with the others.

Everything below a horizon goes: headers, changes, and the rows of `history` that no tree from there on is
made of. What stays of it, since something needs it yet:

 1. The trees of the horizon and of each version that is `pinned` (by a session, or as the base of what waits
    for a decision): of each name, the newest row that is not above it.
 2. The header and the changes of the newest version of each live file, so that one can always say who
    wrote what is there.

The horizon never goes back, and is never above the head.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import groupby, islice

from engramfs.history import log
from engramfs.history.collection.slices import Place, Prune
from engramfs.history.tree import decode_entry
from engramfs.model.entry import Entry, Kind
from engramfs.model.store import Head, Store
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Row, Table

_DAY = 86_400 * 10**9  # nanoseconds
_ROWS = 2000  # in one read transaction


def horizon(reader: Reader, store: Store, head: Head, now: int) -> int:
    """The oldest version that the store is to keep. A version stays while either rule keeps it."""
    rules = store.retention
    candidates = []
    if rules.keep_versions:
        candidates.append(head.number - rules.keep_versions + 1)
    if rules.keep_days:
        candidates.append(log.first_after(reader, store.id, now - rules.keep_days * _DAY))
    if not candidates or not head.number:
        return head.oldest
    return max(head.oldest, min(*candidates, head.number))


class Pruning:
    """What is to go below `oldest`, as slices; the store must have that horizon already."""

    def __init__(self, engine: Engine, store: Store, head: Head, pinned: Collection[int]) -> None:
        self._engine = engine
        self._store = store
        self._head = head
        self._trees = sorted({*(number for number in pinned if number < head.oldest), head.oldest})
        self._needed = set(self._trees)  # versions whose headers stay

    def slices(self, size: Callable[[], int]) -> Iterator[Prune]:
        """Rows first, and then headers: which of these stay is known only after all rows were seen.

        `size` is asked before each slice how many rows it may have.
        """
        yield from self._of_rows(size)
        numbers = self._superfluous()
        while some := tuple(islice(numbers, size())):
            yield Prune(self._store.id, self._head.number, versions=some)

    def _of_rows(self, size: Callable[[], int]) -> Iterator[Prune]:
        waiting: list[bytes | Place] = []
        for _, group in groupby(self._rows(), key=_stem):
            waiting += self._of_name(list(group))
            while len(waiting) >= (most := size()):
                yield self._slice(waiting[:most])
                waiting = waiting[most:]
        if waiting:
            yield self._slice(waiting)

    def _slice(self, gone: list[bytes | Place]) -> Prune:
        rows = tuple(row for row in gone if isinstance(row, bytes))
        places = tuple(place for place in gone if isinstance(place, Place))
        return Prune(self._store.id, self._head.number, rows=rows, places=places)

    def _rows(self) -> Iterator[Row]:
        start, stop = keys.u32(self._store.id), keys.after(keys.u32(self._store.id))
        while True:
            with self._engine.reading() as reader:
                rows = list(islice(reader.scan(Table.HISTORY, start, stop), _ROWS))
            yield from rows
            if len(rows) < _ROWS:
                return
            start = rows[-1][0] + b"\0"

    def _of_name(self, rows: list[Row]) -> list[bytes | Place]:
        """The rows of a name that go, and after them the places that go with them."""
        if keys.read_u64(rows[0][0][-8:]) >= self._head.oldest:
            return []
        kept = self._kept(rows)
        gone = [row for row in rows if row[0] not in kept]
        parent, name, newest = keys.split_history(rows[-1][0])
        live = self._live(parent, name)
        if newest < self._head.oldest and live is not None and live.kind is not Kind.DIRECTORY:
            self._needed.add(newest)
        nodes = _nodes(gone) - _nodes(row for row in rows if row[0] in kept)
        if live is not None:
            nodes.discard(live.node)
        return [*(key for key, _ in gone), *(Place(node, parent, name) for node in nodes)]

    def _kept(self, rows: list[Row]) -> set[bytes]:
        kept: dict[bytes, None] = {}
        for tree in self._trees:
            before = [key for key, _ in rows if keys.read_u64(key[-8:]) <= tree]
            kept |= dict.fromkeys(before[-1:])
        kept |= dict.fromkeys(key for key, _ in rows if keys.read_u64(key[-8:]) > self._head.oldest)
        values = dict(rows)
        for key in list(kept):  # a name that was nothing before either needs no row to say so
            if values[key] != keys.TOMBSTONE or keys.read_u64(key[-8:]) >= self._head.oldest:
                break
            del kept[key]
        return set(kept)

    def _live(self, parent: int, name: bytes) -> Entry | None:
        with self._engine.reading() as reader:
            value = reader.get(Table.LIVE, keys.live(self._store.id, parent, name))
        return decode_entry(value) if value else None

    def _superfluous(self) -> Iterator[int]:
        """The versions below the horizon whose headers go."""
        start, stop = keys.version(self._store.id, 0), keys.version(self._store.id, self._head.oldest)
        while True:
            with self._engine.reading() as reader:
                found = list(islice(reader.keys(Table.VERSIONS, start, stop), _ROWS))
            yield from (number for key in found if (number := keys.read_u64(key[4:])) not in self._needed)
            if len(found) < _ROWS:
                return
            start = found[-1] + b"\0"


def _stem(row: Row) -> bytes:
    """The store, the parent and the name of a row of `history`."""
    return row[0][:-8]


def _nodes(rows: Iterable[Row]) -> set[int]:
    return {decode_entry(value).node for _, value in rows if value != keys.TOMBSTONE}
