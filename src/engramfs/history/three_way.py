"""Changes that were made elsewhere in the history of a store, on its head: what they make, and what stands
against it.

A name must still stand for what the change was made from. Beyond names: a directory that goes must be empty,
one that something goes into must be there, and none may come to lie below itself.
"""

import hashlib
from collections.abc import Iterator
from functools import partial

import msgspec

from engramfs.history import catalog
from engramfs.history.changes import Name, Pair, changes_of
from engramfs.history.commit import Commit, RowChange
from engramfs.history.graft import over_quota
from engramfs.history.merge import merge
from engramfs.history.tree import HasNodes, HeadTree, Tree, growth, path_to, places
from engramfs.model.author import SYSTEM
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.store import Store
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Reader

replace = msgspec.structs.replace
Rows = dict[Name, Entry | None]
_MERGEABLE = 8 << 20  # bytes of a text that is still merged


class ThreeWay:
    """Used once: `take` each change, then look at `after.problems()`, then `commit`."""

    def __init__(self, reader: Reader, store: Store, now: int) -> None:
        self.head = HeadTree(reader, store)
        self.after = After(reader, store, self.head)
        self._reader = reader
        self._store = store
        self._now = now
        self._next_node = catalog.head(reader, store.id).next_node
        self._contents: dict[bytes, bytes] = {}  # of what was merged

    def take(self, name: Name, old: Entry | None, new: Entry | None, *, merge: bool) -> bool:
        """Let a name stand for `new` if it stands for `old`, or, with `merge`, for both changes together.

        Whether that was possible.
        """
        now = self.present(name)
        if is_same(old, now):
            self.after.put(name, _in_place_of(now, old, new))
            return True
        if is_same(now, new):
            return True  # somebody made the same of it
        return merge and self._merge(name, old, now, new)

    def leave(self, name: Name) -> bool:
        """Let a name stand for nothing: what it stood for goes elsewhere."""
        self.after.put(name, None)
        return True

    def move_merged(self, name: Name, old: Entry, now: Entry, new: Entry) -> bool:
        """Let a name stand for the file `now` with what `new` made of `old`. Whether that was possible."""
        entry = self.merged(old, now, new)
        if entry is not None:
            self._put_everywhere(name, entry)
        return entry is not None

    def present(self, name: Name) -> Entry | None:
        """What a name stands for at the head."""
        return entry_in(self.head, name)

    def new_node(self) -> int:
        """A node id that nothing has."""
        self._next_node += 1
        return self._next_node - 1

    def _merge(self, name: Name, old: Entry | None, now: Entry | None, new: Entry | None) -> bool:
        if old is None or now is None or new is None:
            return False
        entry = self.merged(old, now, new)
        if entry is None:
            return False
        self._put_everywhere(name, entry)
        return True

    def _put_everywhere(self, name: Name, entry: Entry) -> None:
        """Under every name that the node has; those that it leaves are taken before or after."""
        self.after.put(name, entry)
        for parent, other, _ in places(self._reader, self._store.id, self.head, entry.node):
            if self.after.rows.get((parent, other), entry) is not None:
                self.after.put((parent, other), entry)

    def merged(self, old: Entry, now: Entry, new: Entry) -> Entry | None:
        """The file `now` with what `new` made of `old`; None where they conflict, or `old` is gone."""
        entries = (old, now, new)
        if any(
            entry.kind is not Kind.FILE or entry.size > _MERGEABLE or entry.is_redacted for entry in entries
        ):
            return None
        content = merge(*(blobs.read(self._reader, entry.digest, entry.size) for entry in entries))
        if content is None:
            return None
        digest = hashlib.sha256(content).digest()
        if digest != now.digest:
            self._contents[digest] = content
        return replace(
            now,
            digest=digest,
            size=len(content),
            mode=new.mode if now.mode == old.mode else now.mode,
            xattrs=new.xattrs if now.xattrs == old.xattrs else now.xattrs,
            mtime=self._now,
            ctime=self._now,
        )

    def commit(self, via: str) -> Commit:
        """What was taken, as a commit by nobody yet. Raises `QuotaExceeded`."""
        self.after.count_links()
        pairs = [Pair(name, self.present(name), entry) for name, entry in sorted(self.after.rows.items())]
        pairs = [pair for pair in pairs if pair.old != pair.new]
        used, files = self.after.growth()
        head = catalog.head(self._reader, self._store.id)
        if used > 0 and head.used + used > self._store.limits.quota:
            raise over_quota(self._store, head.used + used)
        return Commit(
            store=self._store.id,
            author=SYSTEM,
            via=via,
            time=self._now,
            changes=changes_of(pairs, partial(path_in, self.after, self.head)),
            rows=[RowChange(*pair.name, pair.new, recorded=pair.is_recorded) for pair in pairs],
            next_node=self._next_node,
            used_delta=used,
            files_delta=files,
            contents=self._contents,
        )


def entry_in(tree: Tree, name: Name) -> Entry | None:
    """What a name stands for in a tree. The root is always something, also where nobody ever changed it."""
    return tree.root() if name[0] == keys.NO_PARENT else tree.lookup(*name)


def path_in(after: HasNodes, before: HasNodes, name: Name) -> bytes:
    """Where a name is in the tree `after`, or was in the one `before`."""
    parent, last = name
    if parent == keys.NO_PARENT:
        return b""
    is_there = parent == ROOT_NODE or after.node(parent) is not None
    return path_to(after if is_there else before, parent, last)


def is_same(one: Entry | None, other: Entry | None) -> bool:
    """Whether a person would see no difference but times; a file may have been saved anew."""
    if one is None or other is None:
        return one is other
    return one.looks_like(other)


def _in_place_of(now: Entry | None, old: Entry | None, new: Entry | None) -> Entry | None:
    """`new`; as the file that is there, if that was saved anew with the bytes that it had."""
    if now is None or old is None or new is None or now.node == old.node:
        return new
    if not now.kind is new.kind is Kind.FILE:
        return new
    return replace(new, node=now.node, origin=now.origin)


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
