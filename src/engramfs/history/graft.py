"""Make what a store holds at one path equal to a wanted tree, as the rows and changes of a commit.

Restoring and importing both end here. Directories that are there keep their node; so do files, unless two
files want the same one. Names with the same `identity` become names of one node (hard links).

Functions take a transaction; what they say holds for its snapshot, so the commit is written in the same
write transaction, or while nobody else can write.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from types import MappingProxyType

import msgspec

from engramfs.errors import QuotaExceeded
from engramfs.history import catalog
from engramfs.history.changes import change_of
from engramfs.history.commit import Commit, RowChange
from engramfs.history.diff import Difference, with_renames
from engramfs.history.tree import HeadTree, places, walk
from engramfs.model.author import Author
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.quantities import format_size
from engramfs.model.store import Store
from engramfs.model.version import Change, ChangeKind
from engramfs.storage.protocol import Reader

replace = msgspec.structs.replace
Key = tuple[int, bytes]
_NOTHING: Mapping[bytes, bytes] = MappingProxyType({})


class Wanted(msgspec.Struct, frozen=True):
    """What a path shall stand for. `entry.node` is the node that it had before, or 0."""

    path: bytes
    entry: Entry
    identity: Hashable


class Grafted(msgspec.Struct, frozen=True):
    """The parts of a commit; no changes when nothing but times and links differs."""

    changes: list[Change]
    rows: list[RowChange]
    next_node: int
    used_delta: int
    files_delta: int

    def commit(self, store: Store, author: Author, via: str, time: int, message: str) -> Commit:
        """The commit that writes them."""
        return Commit(
            store=store.id,
            author=author,
            via=via,
            time=time,
            changes=self.changes,
            rows=self.rows,
            next_node=self.next_node,
            used_delta=self.used_delta,
            files_delta=self.files_delta,
            message=message,
        )


def graft(
    reader: Reader,
    store: Store,
    path: bytes,
    parent: int,
    wanted: Iterable[Wanted],
    *,
    times: bool,
    renamed: Mapping[bytes, bytes] = _NOTHING,
) -> Grafted:
    """What makes everything at and below `path` equal to `wanted`, which begins with `path` itself and has
    directories before what is in them.

    `parent` is the node of the directory that holds `path`. With `times`, an entry that differs in times
    alone takes those of `wanted`. A file stays the same that was at the path which `renamed` gives for its
    own, and is not there any more. Raises `QuotaExceeded`.
    """
    return _Graft(reader, store, path, parent, list(wanted), times, renamed).result()


class _Graft:
    def __init__(
        self,
        reader: Reader,
        store: Store,
        path: bytes,
        parent: int,
        wanted: list[Wanted],
        times: bool,
        renamed: Mapping[bytes, bytes],
    ) -> None:
        self._reader = reader
        self._store = store
        self._tree = HeadTree(reader, store)
        self._head = catalog.head(reader, store.id)
        self._scope = path
        self._parent = parent
        self._wanted = wanted
        self._times = times
        self._renamed = renamed
        self._moved: dict[bytes, bytes] = {}  # of `renamed`, what has its old node
        self._current = dict(walk(self._tree, path))
        self._current_rows = {self._key(one, self._current): entry for one, entry in self._current.items()}
        self._next_node = self._head.next_node
        self._nodes: dict[Hashable, int] = {}  # identity → node
        self._taken: set[int] = set()
        self._outside: dict[int, list[tuple[Key, Entry]]] = {}

    def result(self) -> Grafted:
        self._assign_nodes()
        target = self._target()
        rows = {self._key(one, target): entry for one, entry in target.items()}
        links = Counter(entry.node for entry in rows.values() if entry.kind is not Kind.DIRECTORY)
        rows = {key: self._with_links(entry, links) for key, entry in rows.items()}
        used, files = self._count(rows)
        if used > 0 and self._head.used + used > self._store.limits.quota:
            raise over_quota(self._store, self._head.used + used)
        return Grafted(
            changes=self._changes(target),
            rows=[*self._row_changes(rows), *self._links_outside(links)],
            next_node=self._next_node,
            used_delta=used,
            files_delta=files,
        )

    def _key(self, path: bytes, entries: dict[bytes, Entry]) -> Key:
        """Where the row of `path` is, in a tree whose directories are in `entries`."""
        above, _, name = path.rpartition(b"/")
        if path == self._scope:
            return (self._parent, name)
        return (entries[above].node, name)

    # Which node each name gets

    def _assign_nodes(self) -> None:
        for wanted in self._wanted:
            current = self._current.get(wanted.path)
            if current is not None and current.kind is wanted.entry.kind:
                same = replace(wanted.entry, node=current.node).looks_like(current)
                self._claim(wanted.identity, current.node, shared=same)
        for wanted in self._wanted:
            self._claim_moved(wanted)
        for wanted in self._wanted:
            self._claim(wanted.identity, wanted.entry.node)
        for wanted in self._wanted:
            if self._claim(wanted.identity, self._next_node):
                self._next_node += 1

    def _claim_moved(self, wanted: Wanted) -> None:
        source = self._renamed.get(wanted.path)
        was = self._current.get(source) if source is not None else None
        if source is None or was is None or was.kind is not wanted.entry.kind:
            return
        if self._claim(wanted.identity, was.node):
            self._moved[wanted.path] = source

    def _claim(self, identity: Hashable, node: int, *, shared: bool = False) -> bool:
        """Give `node` to `identity`, if it has none and the node is free once this path is as wanted.

        With `shared` the node may have names outside the path: it stays as it is.
        """
        if not node or identity in self._nodes or node in self._taken:
            return False
        if not shared and self._elsewhere(node):
            return False
        self._nodes[identity] = node
        self._taken.add(node)
        return True

    def _elsewhere(self, node: int) -> list[tuple[Key, Entry]]:
        """The names that a node has outside the path."""
        if self._scope == b"" or node >= self._head.next_node:
            return []
        found = self._outside.get(node)
        if found is None:
            found = self._outside[node] = [
                ((parent, name), entry)
                for parent, name, entry in places(self._reader, self._store.id, self._tree, node)
                if (parent, name) not in self._current_rows
            ]
        return found

    # The tree afterwards

    def _target(self) -> dict[bytes, Entry]:
        target: dict[bytes, Entry] = {}
        for wanted in self._wanted:
            node = self._nodes[wanted.identity]
            current = self._current.get(wanted.path)
            known = self._current[self._moved[wanted.path]] if wanted.path in self._moved else current
            entry = replace(wanted.entry, node=node, origin=wanted.entry.origin or self._origin(node, known))
            if current is not None and entry.looks_like(current):
                entry = self._unchanged(entry, current)
            target[wanted.path] = entry
        return target

    def _origin(self, node: int, current: Entry | None) -> int:
        return current.origin if current is not None and current.node == node else node

    def _unchanged(self, entry: Entry, current: Entry) -> Entry:
        if not self._times or entry.mtime == current.mtime:
            return replace(current, node=entry.node)
        return replace(entry, origin=current.origin)

    def _with_links(self, entry: Entry, links: Counter[int]) -> Entry:
        count = 1 if entry.kind is Kind.DIRECTORY else links[entry.node] + len(self._elsewhere(entry.node))
        return entry if entry.links == count else replace(entry, links=count)

    # What to write

    def _row_changes(self, rows: dict[Key, Entry]) -> Iterable[RowChange]:
        for key in self._current_rows.keys() - rows.keys():
            yield RowChange(*key, None)
        for key, entry in rows.items():
            current = self._current_rows.get(key)
            if current != entry:
                yield RowChange(*key, entry, recorded=not entry.same_but_for_times(current))

    def _links_outside(self, links: Counter[int]) -> Iterable[RowChange]:
        """Other names of the nodes that lost some here."""
        before = Counter(e.node for e in self._current_rows.values() if e.kind is not Kind.DIRECTORY)
        for node in before:
            elsewhere = self._elsewhere(node)
            for key, entry in elsewhere:
                count = len(elsewhere) + links[node]
                if entry.links != count:
                    yield RowChange(*key, replace(entry, links=count))

    def _count(self, rows: dict[Key, Entry]) -> tuple[int, int]:
        """Bytes of files and number of nodes, more or fewer; the root is not counted."""
        before = {entry.node: entry for entry in self._current_rows.values()}
        after = {entry.node: entry for entry in rows.values()}
        used = files = 0
        for node in (before.keys() | after.keys()) - {ROOT_NODE}:
            if not self._elsewhere(node):
                used += _bytes(after.get(node)) - _bytes(before.get(node))
                files += (node in after) - (node in before)
        return used, files

    def _changes(self, target: dict[bytes, Entry]) -> list[Change]:
        sources = self._sources(target)
        moved_away = set(sources.values())
        changes = [
            change_of(ChangeKind.DELETED, path, entry)
            for path, entry in self._current.items()
            if path not in target and path not in moved_away
        ]
        for path, entry in target.items():
            current, source = self._current.get(path), sources.get(path)
            if source is not None and _goes_along(path, source, sources):
                current, source = self._current[source], None
            if source is not None:
                changes.append(change_of(ChangeKind.RENAMED, path, entry, from_path=source))
            elif current is None:
                changes.append(change_of(ChangeKind.CREATED, path, entry))
            elif not entry.looks_like(current):
                changes.append(change_of(ChangeKind.MODIFIED, path, entry, from_digest=current.digest))
        return changes

    def _sources(self, target: dict[bytes, Entry]) -> dict[bytes, bytes]:
        """Where what comes at a path was before, if it is the same thing that goes elsewhere."""
        gone = [Difference(path, one, None) for path, one in self._current.items() if path not in target]
        came = [Difference(path, None, one) for path, one in target.items() if path not in self._current]
        found = {one.path: one.from_path for one in with_renames([*gone, *came])}
        return {**{path: source for path, source in found.items() if source is not None}, **self._moved}


def _goes_along(path: bytes, source: bytes, sources: Mapping[bytes, bytes]) -> bool:
    """Whether its directory was moved, and it in there: that is no change of its own."""
    above, _, name = path.rpartition(b"/")
    source_above, _, source_name = source.rpartition(b"/")
    return name == source_name and above in sources and sources[above] == source_above


def over_quota(store: Store, size: int) -> QuotaExceeded:
    quota = format_size(store.limits.quota)
    return QuotaExceeded(
        f"store {store.name} would hold {format_size(size)}, over its quota of {quota}; "
        f"raise it (engramfs store set {store.name} --quota) or remove files"
    )


def _bytes(entry: Entry | None) -> int:
    return entry.size if entry is not None and entry.kind is Kind.FILE else 0
