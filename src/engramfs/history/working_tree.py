"""The head of a store with changes that are not committed yet: what a plan writes to, name by name.

Only what is touched is read, so an edit costs the same in a store of ten files and of a million. At the end
`commit` compares what was touched with the head. It takes a transaction, and the commit belongs into the same
one, or at least before anything else is written.
"""

import hashlib
from collections.abc import Collection, Iterator

import msgspec

from engramfs.errors import Busy
from engramfs.history import catalog
from engramfs.history.changes import change_of
from engramfs.history.commit import Commit, RowChange
from engramfs.history.fork_tree import ForkTree
from engramfs.history.graft import over_quota
from engramfs.history.tree import head_tree, path_to, places
from engramfs.model.author import Author
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.model.version import Change, ChangeKind
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Reader

replace = msgspec.structs.replace
Name = tuple[int, bytes]  # (parent node id, name)
_ROOT = (keys.NO_PARENT, b"")


class WorkingTree:
    """`held` are names that a mount has and the log has not: files that were created and never closed.

    New nodes get ids from `first_node` on.
    """

    def __init__(
        self, reader: Reader, store: Store, now: int, first_node: int = 0, held: Collection[Name] = ()
    ) -> None:
        self._reader = reader
        self._store = store
        self._log = head_tree(reader, store)
        self._head = catalog.head(reader, store.base or store.id)
        self._now = now
        self._next_node = max(first_node, self._head.next_node)
        self._held = held
        self._rows: dict[Name, Entry | None] = {}
        self._contents: dict[bytes, bytes] = {}
        self._places: dict[int, Name] = {ROOT_NODE: _ROOT}  # of directories that were made or moved
        self._moved: dict[Name, Name] = {}  # where it is now → where the log has it

    # Looking

    def lookup(self, parent: int, name: bytes) -> Entry | None:
        key = (parent, name)
        return self._rows[key] if key in self._rows else self._before(key)

    def _before(self, name: Name) -> Entry | None:
        return self._log.root() if name == _ROOT else self._log.lookup(*name)

    def head_digest(self, path: bytes) -> bytes | None:
        """The digest that the file at `path` has in the log; None when none is there."""
        entry: Entry | None = self._log.root()
        for part in path.split(b"/"):
            entry = self._log.lookup(entry.node, part) if entry is not None else None
        return entry.digest if entry is not None and entry.kind is Kind.FILE else None

    def children(self, parent: int) -> Iterator[tuple[bytes, Entry]]:
        touched = {name for directory, name in self._rows if directory == parent}
        for name, entry in self._log.children(parent):
            if name not in touched:
                yield name, entry
        for name in touched:
            made = self._rows[parent, name]
            if made is not None:
                yield name, made

    def content(self, entry: Entry) -> bytes:
        known = self._contents.get(entry.digest)
        return known if known is not None else blobs.read(self._reader, entry.digest, entry.size)

    # Changing

    def make_directory(self, parent: int, name: bytes) -> Entry:
        entry = self._new(Kind.DIRECTORY, 0o755)
        self._put((parent, name), entry)
        self._touch(parent)
        self._places[entry.node] = (parent, name)
        return entry

    def make_file(self, parent: int, name: bytes, content: bytes) -> Entry:
        entry = self._filled(self._new(Kind.FILE, 0o644), content)
        self._put((parent, name), entry)
        self._touch(parent)
        return entry

    def fill(self, parent: int, name: bytes, entry: Entry, content: bytes) -> Entry:
        """Give a file another content, under each of its names."""
        entry = self._filled(entry, content)
        for each in self._names((parent, name), entry):
            self._put(each, entry)
        return entry

    def remove(self, parent: int, name: bytes, entry: Entry) -> None:
        """Take a name away, and with a directory's everything in it."""
        if entry.kind is Kind.DIRECTORY:
            self._check_settled(entry.node)
            for below, child in list(self.children(entry.node)):
                self.remove(entry.node, below, child)
        elif entry.links > 1:
            for each in self._names((parent, name), entry):
                self._put(each, replace(entry, links=entry.links - 1, ctime=self._later(entry)))
        self._put((parent, name), None)
        self._touch(parent)

    def rename(self, parent: int, name: bytes, entry: Entry, new_parent: int, new_name: bytes) -> None:
        old, new = (parent, name), (new_parent, new_name)
        entry = replace(entry, ctime=self._later(entry))
        for each in self._names(old, entry):
            self._put(each, entry)
        self._put(old, None)
        self._put(new, entry)
        self._moved[new] = self._moved.pop(old, old)
        if entry.kind is Kind.DIRECTORY:
            self._places[entry.node] = new
        self._touch(parent)
        self._touch(new_parent)

    def _new(self, kind: Kind, mode: int) -> Entry:
        node = self._next_node
        self._next_node += 1
        return Entry(node=node, kind=kind, mode=mode, size=0, mtime=self._now, ctime=self._now, origin=node)

    def _filled(self, entry: Entry, content: bytes) -> Entry:
        digest = hashlib.sha256(content).digest()
        if digest == entry.digest:
            return entry
        self._contents[digest] = content
        later = self._later(entry)
        return replace(entry, digest=digest, size=len(content), mtime=later, ctime=later)

    def _later(self, entry: Entry) -> int:
        """Now, but after every time that the entry had, so that each content has a time of its own."""
        return max(self._now, entry.mtime + 1, entry.ctime + 1)

    def _put(self, name: Name, entry: Entry | None) -> None:
        if name in self._held:
            raise _being_written(self._path(name))
        self._rows[name] = entry

    def _check_settled(self, directory: int) -> None:
        for parent, name in self._held:
            if parent == directory:
                raise _being_written(self._path((parent, name)))

    def _touch(self, directory: int) -> None:
        name = self._place(directory)
        entry = self.lookup(*name) if name is not None else None
        if name is not None and entry is not None and entry.node == directory:
            self._rows[name] = replace(entry, mtime=self._now, ctime=self._now)

    def _place(self, directory: int) -> Name | None:
        known = self._places.get(directory)
        if known is None:
            found = self._log.node(directory)
            known = found[:2] if found is not None else None
        return known

    def _names(self, name: Name, entry: Entry) -> list[Name]:
        """Every name of a node, of which `name` is one."""
        if entry.links == 1 or entry.kind is Kind.DIRECTORY:
            return [name]
        logged = [row[:2] for row in self._places_in_log(entry.node)]
        made = [each for each, now in self._rows.items() if now is not None and now.node == entry.node]
        return list(dict.fromkeys([*(each for each in logged if each not in self._rows), *made]))

    def _places_in_log(self, node: int) -> Iterator[tuple[int, bytes, Entry]]:
        if isinstance(self._log, ForkTree):
            return self._log.places(node)
        return places(self._reader, self._store.id, self._log, node)

    def _path(self, name: Name) -> bytes:
        parts = [name[1]]
        directory = name[0]
        while directory not in (ROOT_NODE, keys.NO_PARENT):
            place = self._place(directory)
            if place is None:
                break
            directory = place[0]
            parts.append(place[1])
        return b"/".join(reversed(parts))

    # The end

    def commit(self, author: Author, via: str, message: str) -> Commit:
        """What was done, as a commit; without changes when it comes to nothing. Raises `QuotaExceeded`."""
        touched = [(name, self._before(name), entry) for name, entry in self._rows.items()]
        touched = [one for one in touched if one[1] != one[2]]
        if self._store.base:  # of new times alone nobody could decide
            touched = [one for one in touched if _is_recorded(one[1], one[2])]
        before = {old.node: old for _, old, _ in touched if old is not None}
        after = {new.node: new for _, _, new in touched if new is not None}
        used = sum(_bytes(entry) for entry in after.values()) - sum(_bytes(old) for old in before.values())
        if used > 0 and self._head.used + used > self._store.limits.quota:
            raise over_quota(self._store, self._head.used + used)
        return Commit(
            store=self._store.id,
            author=author,
            via=via,
            time=self._now,
            changes=list(self._changes(touched)),
            rows=[RowChange(*name, new, recorded=_is_recorded(old, new)) for name, old, new in touched],
            next_node=self._next_node,
            used_delta=0 if self._store.base else used,
            files_delta=0 if self._store.base else len(after) - len(before),
            contents=self._contents,
            message=message,
        )

    def _changes(self, touched: list[tuple[Name, Entry | None, Entry | None]]) -> Iterator[Change]:
        sources = {old for new, old in self._moved.items() if self._rows.get(new) is not None}
        for name, old, new in touched:
            source = self._moved.get(name)
            if new is None:
                if old is not None and name not in sources:
                    yield change_of(ChangeKind.DELETED, path_to(self._log, *name), old)
            elif source is not None and self._before(source) is not None and old is None:
                from_path = path_to(self._log, *source)
                yield change_of(ChangeKind.RENAMED, self._path(name), new, from_path=from_path)
            elif old is None:
                yield change_of(ChangeKind.CREATED, self._path(name), new)
            elif not new.looks_like(old):
                yield change_of(ChangeKind.MODIFIED, self._path(name), new, from_digest=old.digest)


def _being_written(path: bytes) -> Busy:
    return Busy(f"{printable(path)} is being written in a mount; try again when it is closed")


def _bytes(entry: Entry) -> int:
    return entry.size if entry.kind is Kind.FILE else 0


def _is_recorded(old: Entry | None, new: Entry | None) -> bool:
    return new is None or not new.same_but_for_times(old)
