"""Let some paths of a store stand for something else, as the rows and changes of a commit.

`graft` looks at a whole tree; here the cost is that of the paths. They are looked up in the transaction that
the commit is written in, or while nobody else can write. None of them may name a node that has other names.
"""

from collections.abc import Iterable, Mapping

import msgspec

from engramfs.history import catalog
from engramfs.history.changes import change_of
from engramfs.history.commit import RowChange
from engramfs.history.graft import Grafted, over_quota
from engramfs.history.tree import HeadTree
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.store import Store
from engramfs.model.version import Change, ChangeKind
from engramfs.storage.protocol import Reader

replace = msgspec.structs.replace


def replacing(
    reader: Reader,
    store: Store,
    wanted: Iterable[tuple[bytes, Entry | None]],
    renamed: Mapping[bytes, bytes],
) -> Grafted:
    """What makes each path stand for its entry, or for nothing, but never the root.

    A directory comes before what is in it, and when it goes everything in it is wanted gone too. What stays
    of one kind keeps its node. So does a file that was at the path which `renamed` gives for its own: that
    path is among the wanted. Raises `QuotaExceeded`.
    """
    entries = dict(wanted)
    replacing = _Replacing(reader, store)
    replacing.rename(entries, renamed)
    for path, entry in entries.items():
        replacing.put(path, entry)
    return replacing.result()


class _Replacing:
    def __init__(self, reader: Reader, store: Store) -> None:
        self._store = store
        self._tree = HeadTree(reader, store)
        self._head = catalog.head(reader, store.id)
        self._next_node = self._head.next_node
        self._before: dict[bytes, int | None] = {b"": ROOT_NODE}  # nodes of directories
        self._after: dict[bytes, int] = {}
        self._moved: dict[bytes, tuple[bytes, Entry]] = {}  # where the file at a path was, and what it was
        self._moved_away: set[bytes] = set()
        self._rows: list[RowChange] = []
        self._changes: list[Change] = []
        self._used = self._files = 0

    def rename(self, wanted: Mapping[bytes, Entry | None], renamed: Mapping[bytes, bytes]) -> None:
        """Let files be the same as before that come at one path and go at another."""
        for path, source in renamed.items():
            entry, left = wanted.get(path), wanted.get(source)
            here, there = self._lookup(path), self._lookup(source)
            goes = left is None or left.kind is Kind.DIRECTORY
            if entry is None or there is None or there.kind is not entry.kind or not goes:
                continue
            if here is None or here.kind is not entry.kind:
                self._moved[path] = source, there
                self._moved_away.add(source)

    def _lookup(self, path: bytes) -> Entry | None:
        above, _, name = path.rpartition(b"/")
        parent = self._directory(above)
        return self._tree.lookup(parent, name) if parent is not None else None

    def put(self, path: bytes, entry: Entry | None) -> None:
        above, _, name = path.rpartition(b"/")
        parent, new_parent = self._directory(above), self._after.get(above, self._directory(above))
        old = self._tree.lookup(parent, name) if parent is not None else None
        new = self._placed(path, old, entry)
        if new is not None and new.kind is Kind.DIRECTORY:
            self._after[path] = new.node
        if old is not None and parent is not None and (new is None or parent != new_parent):
            self._rows.append(RowChange(parent, name, None))
        if new is not None and new_parent is not None and (new != old or parent != new_parent):
            self._rows.append(RowChange(new_parent, name, new))
        self._tell(path, old, new)

    def _directory(self, path: bytes) -> int | None:
        """The node of a directory, as it was; None when there was none."""
        if path not in self._before:
            entry = self._lookup(path)
            is_directory = entry is not None and entry.kind is Kind.DIRECTORY
            self._before[path] = entry.node if entry is not None and is_directory else None
        return self._before[path]

    def _placed(self, path: bytes, old: Entry | None, entry: Entry | None) -> Entry | None:
        if entry is None:
            return None
        if old is not None and old.kind is entry.kind:
            entry = replace(entry, node=old.node, origin=old.origin)
            return old if entry.looks_like(old) else entry
        if path in self._moved:
            moved = self._moved[path][1]
            return replace(entry, node=moved.node, origin=moved.origin)
        self._next_node += 1
        return replace(entry, node=self._next_node - 1, origin=self._next_node - 1)

    def _tell(self, path: bytes, old: Entry | None, new: Entry | None) -> None:
        self._used += _bytes(new) - _bytes(old)
        self._files += (new is not None) - (old is not None)
        if new is None:
            if old is not None and path not in self._moved_away:
                self._changes.append(change_of(ChangeKind.DELETED, path, old))
        elif path in self._moved:
            from_path = self._moved[path][0]
            self._changes.append(change_of(ChangeKind.RENAMED, path, new, from_path=from_path))
        elif old is None:
            self._changes.append(change_of(ChangeKind.CREATED, path, new))
        elif not new.looks_like(old):
            self._changes.append(change_of(ChangeKind.MODIFIED, path, new, from_digest=old.digest))

    def result(self) -> Grafted:
        if self._used > 0 and self._head.used + self._used > self._store.limits.quota:
            raise over_quota(self._store, self._head.used + self._used)
        return Grafted(self._changes, self._rows, self._next_node, self._used, self._files)


def _bytes(entry: Entry | None) -> int:
    return entry.size if entry is not None and entry.kind is Kind.FILE else 0
