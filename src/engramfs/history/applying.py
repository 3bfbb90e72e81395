"""The rows of one version of a fork on the head of the store below: what they make, what stands against it.

A name must still stand for what the version was made from. Beyond names: a directory that goes must be
empty, one that something goes into must be there, and none may come to lie below itself.
"""

import hashlib
from collections.abc import Iterator
from functools import partial

import msgspec

from engramfs.errors import Conflict
from engramfs.history import catalog
from engramfs.history.changes import Name, Pair, changes_of
from engramfs.history.commit import Commit, RowChange
from engramfs.history.graft import over_quota
from engramfs.history.merge import merge
from engramfs.history.tree import HasNodes, HeadTree, fork_tree, growth, path_to, places
from engramfs.model.author import SYSTEM
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.names import printable
from engramfs.model.pending import Pending
from engramfs.model.store import Store
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Reader

replace = msgspec.structs.replace
Rows = dict[Name, Entry | None]
_MERGEABLE = 8 << 20  # bytes of a text that is still merged
_NAMED = 5  # paths in a message


class Applying:
    """Used once: `commit`."""

    def __init__(
        self, reader: Reader, store: Store, fork: Store, offered: Pending, rows: Rows, now: int
    ) -> None:
        self._reader = reader
        self._store = store
        self._offered = offered
        self._now = now
        self._head = HeadTree(reader, store)
        self._made_from = fork_tree(reader, fork, offered.version, offered.base, without=True)
        self._made = fork_tree(reader, fork, offered.version, offered.base)
        self._rows = rows
        self._contents: dict[bytes, bytes] = {}  # of what was merged
        self._after = After(reader, store, self._head)

    def commit(self, *, merge: bool) -> Commit:
        """The commit, by nobody yet. Raises `Conflict` and `QuotaExceeded`."""
        refused = [name for name in self._rows if not self._take(name, merge=merge)]
        if not refused:
            refused = self._after.problems()
        if refused:
            raise self._conflict(refused, tried=merge)
        self._after.count_links()
        pairs = [
            Pair(name, self._head.lookup(*name), entry) for name, entry in sorted(self._after.rows.items())
        ]
        pairs = [pair for pair in pairs if pair.old != pair.new]
        used, files = self._after.growth()
        head = catalog.head(self._reader, self._store.id)
        if used > 0 and head.used + used > self._store.limits.quota:
            raise over_quota(self._store, head.used + used)
        return Commit(
            store=self._store.id,
            author=SYSTEM,
            via="approval",
            time=self._now,
            changes=changes_of(pairs, partial(_path, self._after, self._head)),
            rows=[RowChange(*pair.name, pair.new, recorded=pair.is_recorded) for pair in pairs],
            next_node=head.next_node,
            used_delta=used,
            files_delta=files,
            contents=self._contents,
        )

    def _take(self, name: Name, *, merge: bool) -> bool:
        """Whether the row of a name can be applied."""
        old, now, new = self._made_from.lookup(*name), self._head.lookup(*name), self._rows[name]
        if _is_same(old, now):
            self._after.put(name, new)
            return True
        if _is_same(now, new) or (now is not None and now.looks_like(new)):
            return True  # somebody made the same of it
        return merge and self._merge(name, old, now, new)

    def _merge(self, name: Name, old: Entry | None, now: Entry | None, new: Entry | None) -> bool:
        if old is None or now is None or new is None:
            return False
        entries = (old, now, new)
        if any(entry.kind is not Kind.FILE or entry.size > _MERGEABLE for entry in entries):
            return False
        merged = merge(*(blobs.read(self._reader, entry.digest, entry.size) for entry in entries))
        if merged is None:
            return False
        digest = hashlib.sha256(merged).digest()
        if digest != now.digest:
            self._contents[digest] = merged
        entry = replace(
            now,
            digest=digest,
            size=len(merged),
            mode=new.mode if now.mode == old.mode else now.mode,
            xattrs=new.xattrs if now.xattrs == old.xattrs else now.xattrs,
            mtime=self._now,
            ctime=self._now,
        )
        self._after.put(name, entry)
        for parent, other, _ in places(self._reader, self._store.id, self._head, now.node):
            self._after.put((parent, other), entry)
        return True

    def _conflict(self, names: list[Name], *, tried: bool) -> Conflict:
        paths = (_path(self._made, self._made_from, name) for name in names[:_NAMED])
        shown = [printable(path) or "the root" for path in paths]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        number, store = self._offered.number, self._store.name
        advice = (
            f"engramfs pending diff {store} {number} shows what it would change"
            if tried
            else f"approve it with --merge, or see engramfs pending diff {store} {number}"
        )
        why = "cannot be merged with" if tried else "is not what it was in"
        return Conflict(
            f"pending {number} was made from {store}@{self._offered.base}; {', '.join(shown)}{more} {why} "
            f"that version; {advice}"
        )


def _path(after: HasNodes, before: HasNodes, name: Name) -> bytes:
    """Where a name is in the tree `after`, or was in the one `before`."""
    parent, last = name
    if parent == keys.NO_PARENT:
        return b""
    is_there = parent == ROOT_NODE or after.node(parent) is not None
    return path_to(after if is_there else before, parent, last)


def _is_same(one: Entry | None, other: Entry | None) -> bool:
    """Whether nothing but times, origin or the number of links differs."""
    if one is None or other is None:
        return one is other
    return one.node == other.node and one.looks_like(other)


class After:
    """The tree of a store with `rows` on its head."""

    def __init__(self, reader: Reader, store: Store, head: HeadTree) -> None:
        self.rows: Rows = {}
        self._named: dict[int, set[Name]] = {}  # node → its names in `rows`
        self._reader = reader
        self._store = store
        self._head = head

    def put(self, name: Name, entry: Entry | None) -> None:
        """Let a name stand for `entry`, or for nothing."""
        before = self.rows.get(name)
        if before is not None:
            self._named[before.node].discard(name)
        self.rows[name] = entry
        if entry is not None:
            self._named.setdefault(entry.node, set()).add(name)

    def places(self, node: int) -> Iterator[tuple[Name, Entry]]:
        """Each name of a node, with its entry."""
        for parent, name, entry in places(self._reader, self._store.id, self._head, node):
            if (parent, name) not in self.rows:
                yield (parent, name), entry
        for key in sorted(self._named.get(node, ())):
            row = self.rows[key]
            if row is not None:
                yield key, row

    def problems(self) -> list[Name]:
        """The names that cannot be so."""
        parents = {parent for (parent, _), entry in self.rows.items() if entry is not None}
        lost = {parent for parent in parents if not self._leads_to_root(parent)}
        found = [name for name, entry in self.rows.items() if entry is not None and name[0] in lost]
        for name in self.rows:
            before = self._head.lookup(*name)
            if before is not None and before.kind is Kind.DIRECTORY and not any(self.places(before.node)):
                found.extend(self._left_in(before.node))
        return found

    def _leads_to_root(self, directory: int) -> bool:
        seen: set[int] = set()
        while directory not in (ROOT_NODE, keys.NO_PARENT):
            place = next(self.places(directory), None)
            if directory in seen or place is None or place[1].kind is not Kind.DIRECTORY:
                return False
            seen.add(directory)
            directory = place[0][0]
        return True

    def _left_in(self, directory: int) -> list[Name]:
        return [
            (directory, name)
            for name, _ in self._head.children(directory)
            if self.rows.get((directory, name), name) is not None
        ]

    def _nodes(self) -> set[int]:
        """Every node that came, went or changed, but the root."""
        before = {entry.node for name in self.rows if (entry := self._head.lookup(*name)) is not None}
        after = {entry.node for entry in self.rows.values() if entry is not None}
        return (before | after) - {ROOT_NODE}

    def count_links(self) -> None:
        """Let every name of a file have the same entry, with the number of its names."""
        for node in self._nodes():
            known = dict(self.places(node))
            if not known or any(entry.kind is Kind.DIRECTORY for entry in known.values()):
                continue
            newest = next((entry for name, entry in known.items() if name in self.rows), None)
            for name, entry in known.items():
                wanted = replace(newest or entry, links=len(known))
                if entry != wanted:
                    self.put(name, wanted)

    def node(self, node: int) -> tuple[int, bytes, Entry] | None:
        """As a `Tree` has it."""
        place = next(self.places(node), None)
        return (*place[0], place[1]) if place is not None else None

    def growth(self) -> tuple[int, int]:
        """Bytes of files and number of nodes, more or fewer."""
        return growth(self._head, self, self._nodes())
