"""Where a file of an old version may be now: every name it has had since, through renames and atomic saves.

A rename keeps the node; an atomic save gives the name another node of the same origin. So its names are found
by its nodes, and its nodes by its names: at the cost of its own versions, however many others there are.
"""

from collections.abc import Iterator

from engramfs.history import log
from engramfs.history.changes import Name
from engramfs.history.tree import VersionTree, decode_entry, named, resolve
from engramfs.model.entry import Entry, Kind
from engramfs.model.store import Store
from engramfs.model.version import ChangeKind
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table


def later_names(reader: Reader, store: Store, name: Name, entry: Entry, number: int) -> Iterator[Name]:
    """The names of what `name` stood for in version `number`: those of its node first, in no other order.

    Some may stand for something else now, or for nothing.
    """
    return _LaterNames(reader, store, entry, number).names(name)


def is_same_thing(one: Entry, other: Entry) -> bool:
    """Whether they are one file or directory, whatever it holds."""
    if one.kind is not other.kind:
        return False
    return one.node == other.node or (one.kind is not Kind.DIRECTORY and one.origin == other.origin)


class _LaterNames:
    def __init__(self, reader: Reader, store: Store, entry: Entry, number: int) -> None:
        self._reader = reader
        self._store = store
        self._entry = entry
        self._number = number

    def names(self, name: Name) -> Iterator[Name]:
        seen = dict.fromkeys([name, *named(self._reader, self._store.id, self._entry.node)])
        yield from seen
        if self._entry.kind is Kind.DIRECTORY or not self._entry.origin:
            return  # nothing but its node makes it the same
        waiting = list(seen)
        while waiting:
            for other in self._after(waiting.pop()):
                if other not in seen:
                    seen[other] = None
                    waiting.append(other)
                    yield other

    def _after(self, name: Name) -> Iterator[Name]:
        """Further names of the nodes that the name has had, and where the file went when it left the name."""
        start = keys.history(self._store.id, *name, self._number)
        stop = keys.after(keys.live(self._store.id, *name) + b"\0")
        was_here = True
        for key, value in self._reader.scan(Table.HISTORY, start, stop):
            entry = decode_entry(value) if value != keys.TOMBSTONE else None
            is_here = entry is not None and self._is_same(entry)
            if entry is not None and is_here:
                yield from named(self._reader, self._store.id, entry.node)
            elif was_here:
                yield from self._went(keys.read_u64(key[-8:]))
            was_here = is_here

    def _is_same(self, entry: Entry) -> bool:
        return entry.kind is self._entry.kind and entry.origin == self._entry.origin

    def _went(self, number: int) -> Iterator[Name]:
        """Where version `number` has the file, if it saved it anew and renamed it at once."""
        tree = VersionTree(self._reader, self._store, number)
        for change in log.changes(self._reader, self._store.id, number):
            if change.origin == self._entry.origin and change.op is not ChangeKind.DELETED and change.path:
                above, _, last = change.path.rpartition(b"/")
                if (directory := resolve(tree, above)) is not None:
                    yield directory.node, last
