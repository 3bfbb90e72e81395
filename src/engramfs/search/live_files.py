"""A hit is only shown as the log has it now: the same content, at the head, and where it may be seen.

So whatever the index missed, or has not caught up with, nothing older, deleted or redacted is ever shown.
"""

from collections.abc import Sequence

import msgspec

from engramfs.errors import Corrupt, NotFound
from engramfs.history import catalog
from engramfs.history.tree import HeadTree, Tree, VersionTree, changed_last, resolve
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import raw
from engramfs.model.store import Store
from engramfs.search.keyword_schema import Row
from engramfs.search.query import Place
from engramfs.storage import blobs
from engramfs.storage.protocol import Reader


class LiveFile(msgspec.Struct, frozen=True):
    store: str
    version: int  # that changed it last
    text: str


class LiveFiles:
    """The files that `reach` lets be seen (None: all), in the transaction `reader`."""

    def __init__(self, reader: Reader, reach: Sequence[Place] | None) -> None:
        self._reader = reader
        self._stores: dict[int, Store | None] = {}
        self._seen: dict[int, list[Place]] | None = None
        if reach is not None:
            self._seen = {}
            for place in reach:
                store = catalog.find(reader, place.store)
                if store is not None:
                    self._seen.setdefault(store.id, []).append(place)

    def places(self) -> tuple[tuple[int, bytes], ...] | None:
        """What a filter of the index is made of: (store id, path)."""
        if self._seen is None:
            return None
        return tuple((store, raw(place.inside)) for store, places in self._seen.items() for place in places)

    def read(self, row: Row) -> LiveFile | None:
        """The file of a hit; None when it is not what was indexed any more, or may not be seen."""
        store = self._store(row.store)
        if store is None or not self._is_seen(store, row):
            return None
        head = HeadTree(self._reader, store)
        entry = self._entry(head, row)
        if entry is None:
            return None
        try:
            content = blobs.read(self._reader, entry.digest, entry.size)
        except Corrupt:
            return None  # it cannot be shown; `engramfs verify` reports it
        text = content.decode("utf-8", "replace")
        return LiveFile(store.name, changed_last(self._reader, store, head, row.path), text)

    def _store(self, identifier: int) -> Store | None:
        """The store, if it is one with a name: neither deleted nor a fork."""
        if identifier not in self._stores:
            try:
                store = catalog.get(self._reader, identifier)
                found = catalog.find(self._reader, store.name)
                self._stores[identifier] = store if found is not None and found.id == identifier else None
            except NotFound:
                self._stores[identifier] = None
        return self._stores[identifier]

    def _is_seen(self, store: Store, row: Row) -> bool:
        if self._seen is None:
            return True
        return any(
            _covers(raw(place.inside), row.path)
            and (
                place.version is None
                or self._entry(VersionTree(self._reader, store, place.version), row) is not None
            )
            for place in self._seen.get(store.id, [])
        )

    def _entry(self, tree: Tree, row: Row) -> Entry | None:
        entry = resolve(tree, row.path)
        is_same = entry is not None and entry.kind is Kind.FILE and entry.digest == row.digest
        return entry if is_same else None


def _covers(inside: bytes, path: bytes) -> bool:
    return not inside or path == inside or path.startswith(inside + b"/")
