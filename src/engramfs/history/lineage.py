"""The past of one file or directory: every version that touched it, through renames, newest first.

It is found by its node, not by the changes of every version: a name has rows of its own in `history`, and a
node has all the places that it ever had in `nodes`. So the cost is that of its own versions, however many
others there are. A file that is saved anew (another node, the same origin) is the same file; one that was
deleted and came back in its place is too.
"""

from collections.abc import Iterator

import msgspec

from engramfs.errors import NotFound
from engramfs.history.log import changes, numbers_touching
from engramfs.history.tree import VersionTree, decode_entry, places, resolve
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.model.version import ChangeKind
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table


class Step(msgspec.Struct, frozen=True):
    """A version that recorded the file, or moved it or a directory above it, and what it was then.

    With `went`, the file was there until that version, which deleted it or gave it another name.
    """

    number: int
    path: bytes
    entry: Entry
    went: bool = False


class _Name(msgspec.Struct, frozen=True):
    """A name on the way from the root to the file.

    `since` is the version that brought a directory there; of the file itself it is 0.
    """

    parent: int
    name: bytes
    since: int


def lineage(reader: Reader, store: Store, path: bytes, newest: int) -> Iterator[Step]:
    """The past of what `path` stands for in version `newest`; if nothing, of what it stood for last, and how
    that went.

    Raises `NotFound` when no version up to `newest` has such a path.
    """
    return _Lineage(reader, store).steps(path, newest)


class _Lineage:
    def __init__(self, reader: Reader, store: Store) -> None:
        self._reader = reader
        self._store = store

    def _tree(self, number: int) -> VersionTree:
        return VersionTree(self._reader, self._store, number)

    def steps(self, path: bytes, newest: int) -> Iterator[Step]:
        limit = newest if resolve(self._tree(newest), path) is not None else self._last(path, newest)
        names = self._names(path, limit)
        went = limit + 1 if limit < newest else 0
        while names:
            file = names[-1]
            row = self._row(file.parent, file.name, limit)
            if row is None:
                return
            recorded, entry = row
            if went:
                yield Step(went, b"/".join(name.name for name in names), entry, went=True)
            number = max(recorded, *(name.since for name in names if name.since <= limit))
            yield Step(number, b"/".join(name.name for name in names), entry)
            limit, went = number - 1, 0
            if number == recorded:
                before = self._before(file, entry, number)
                if before is None:
                    return
                parent, name, limit = before
                went = self._after(parent, name, limit) if limit < number - 1 else 0
                stays = (parent, name, limit) == (file.parent, file.name, number - 1)
                if stays and all(one.since != number for one in names):
                    continue
                file = _Name(parent, name, 0)
            names = self._above(file, limit)

    def _last(self, path: bytes, newest: int) -> int:
        """The newest version that still has what is not there any more."""
        for number in numbers_touching(self._reader, self._store, path, newest):
            if resolve(self._tree(number - 1), path) is not None:
                return number - 1
        raise NotFound(
            f"no version up to {newest} of {self._store.name} has {printable(path)}; "
            f"engramfs log {self._store.name} shows what each changed"
        )

    def _names(self, path: bytes, number: int) -> list[_Name]:
        tree = self._tree(number)
        above = resolve(tree, path.rpartition(b"/")[0])
        return self._above(_Name(above.node, path.rpartition(b"/")[2], 0), number) if above else []

    def _above(self, file: _Name, number: int) -> list[_Name]:
        """The names from the root to `file` as of a version."""
        tree = self._tree(number)
        names = [file]
        parent = file.parent
        while parent not in (ROOT_NODE, keys.NO_PARENT):
            place = tree.node(parent)
            if place is None:
                break
            parent, name, _ = place
            names.append(_Name(parent, name, self._since(parent, name, number)))
        return names[::-1]

    def _since(self, parent: int, name: bytes, number: int) -> int:
        """The version from which on the name stands for what it stands for in version `number`."""
        since, known = 0, None
        for row, entry in self._rows(parent, name, number):
            if entry is None or (known is not None and not _is_same(known, entry)):
                break
            since, known = row, entry
        return since

    def _row(self, parent: int, name: bytes, limit: int) -> tuple[int, Entry] | None:
        """The newest row of a name that says what it stood for."""
        for number, entry in self._rows(parent, name, limit):
            if entry is not None:
                return number, entry
        return None

    def _after(self, parent: int, name: bytes, number: int) -> int:
        """The version in which a name stood for something else next than in version `number`."""
        row = self._reader.at_or_after(Table.HISTORY, keys.history(self._store.id, parent, name, number + 1))
        return keys.read_u64(row[0][-8:]) if row is not None else 0

    def _rows(self, parent: int, name: bytes, limit: int) -> Iterator[tuple[int, Entry | None]]:
        start = keys.history(self._store.id, parent, name, 0)
        stop = keys.history(self._store.id, parent, name, limit + 1)
        for key, value in self._reader.scan(Table.HISTORY, start, stop, reverse=True):
            yield keys.read_u64(key[-8:]), decode_entry(value) if value != keys.TOMBSTONE else None

    def _before(self, file: _Name, entry: Entry, number: int) -> tuple[int, bytes, int] | None:
        """Where it was before version `number` recorded it, and the newest version that has it there."""
        tree = self._tree(number - 1)
        here = tree.lookup(file.parent, file.name)
        if here is not None and _is_same(here, entry):
            return file.parent, file.name, number - 1
        for parent, name, _ in places(self._reader, self._store.id, tree, entry.node):
            return parent, name, number - 1
        for path in self._went(entry, number):
            above, name = resolve(tree, path.rpartition(b"/")[0]), path.rpartition(b"/")[2]
            gone = tree.lookup(above.node, name) if above is not None else None
            if above is not None and gone is not None and _is_same(gone, entry):
                return above.node, name, number - 1
        for row, earlier in self._rows(file.parent, file.name, number - 1):
            if earlier is not None and _is_same(earlier, entry):
                return file.parent, file.name, row
        return None

    def _went(self, entry: Entry, number: int) -> Iterator[bytes]:
        """Where a version says that the file was which it saved anew under another name."""
        for change in changes(self._reader, self._store.id, number):
            if change.kind is Kind.FILE and change.origin == entry.origin:
                if change.op is ChangeKind.DELETED:
                    yield change.path
                elif change.from_path is not None:
                    yield change.from_path


def _is_same(one: Entry, other: Entry) -> bool:
    """Whether they are one file or directory, which an atomic save gives another node."""
    return one.node == other.node or (one.kind is not Kind.DIRECTORY and one.origin == other.origin)
