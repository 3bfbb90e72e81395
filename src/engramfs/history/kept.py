"""What retention left of the versions below the horizon, path by path.

Of such a version the header and the changes stay while something that it brought is live, but the tree as a
whole cannot be made any more: rows that newer ones superseded are gone. What a path held is still known where

 1. the version brought it, and its row, or at least its content, is kept; or
 2. an older version did, and the name stood for the same up to the horizon.

Whoever wants one path asks `path_tree_at`; whoever wants everything asks `engramfs.history.tree.tree_at`,
which refuses. Functions take a transaction and hold none.
"""

from collections.abc import Iterator

import msgspec

from engramfs.errors import NotFound
from engramfs.history import catalog, log
from engramfs.history.tree import Tree, VersionTree, decode_entry, default_root, tree_at
from engramfs.model.entry import EMPTY_DIGEST, ROOT_NODE, Entry, Kind
from engramfs.model.names import printable
from engramfs.model.shell_words import path_word
from engramfs.model.store import Store
from engramfs.model.version import Change, ChangeKind, Version
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Row, Table

_STEM = 8  # bytes of a key of `history` after the name and its NUL: the number


class Kept(msgspec.Struct, frozen=True):
    """What a path held: `entry`, by the row of version `number` in the directory `parent`.

    Without that row both are 0, and the entry is what the change says of it.
    """

    parent: int
    number: int
    entry: Entry


class PathTree:
    """A `Tree` in which one path can be looked up, and nothing else."""

    def __init__(self, root: Entry, below: dict[tuple[int, bytes], Entry], unknown: NotFound) -> None:
        self._root = root
        self._below = below
        self._unknown = unknown

    def root(self) -> Entry:
        return self._root

    def lookup(self, parent: int, name: bytes) -> Entry:
        found = self._below.get((parent, name))
        if found is None:
            raise self._unknown
        return found

    def children(self, _parent: int) -> Iterator[tuple[bytes, Entry]]:
        raise self._unknown

    def node(self, node: int) -> tuple[int, bytes, Entry] | None:
        return next(((*name, entry) for name, entry in self._below.items() if entry.node == node), None)


def path_tree_at(reader: Reader, store: Store, number: int | None, path: bytes) -> Tree:
    """A tree in which `path` is what it was in version `number` (None: the head).

    That is the version's tree; of a version that is kept in part, a `PathTree`, in which directories whose
    own rows are gone have made-up modes and node ids below zero. Raises `NotFound` for an unknown version,
    and where what `path` held is not known any more.
    """
    names = [name for name in path.split(b"/") if name not in (b"", b".")]
    if not number or not names or not is_partial(reader, store, number):
        return tree_at(reader, store, number)
    path = b"/".join(names)
    kept = find_kept(reader, store, number, path)
    if kept is None or not _is_readable(reader, kept.entry):
        raise not_known(reader, store, number, path)
    return tree_of_path(path, kept.parent, kept.entry, not_known(reader, store, number, path))


def tree_of_path(path: bytes, parent: int, entry: Entry, unknown: NotFound) -> PathTree:
    """A tree with `entry` at `path`, in the directory `parent` (0: not known), and all else `unknown`."""
    names = path.split(b"/")
    made_up = default_root(entry.mtime)
    above = [ROOT_NODE, *(-depth for depth in range(1, len(names)))]
    if parent:
        above[-1] = parent
    entries = [*(msgspec.structs.replace(made_up, node=node) for node in above[1:]), entry]
    below = {(node, name): one for node, name, one in zip(above, names, entries, strict=True)}
    return PathTree(made_up, below, unknown)


def is_partial(reader: Reader, store: Store, number: int) -> bool:
    """Whether the version is there, but its tree as a whole is not."""
    is_below = 0 < number < catalog.head(reader, store.id).oldest
    return is_below and log.find_version(reader, store.id, number) is not None


def require_predecessor(reader: Reader, store: Store, number: int, so: str) -> None:
    """Raise `NotFound`, ending in `so`, unless a version and the one before it are there as they were."""
    oldest = catalog.head(reader, store.id).oldest
    if oldest == 1 or number > oldest:
        return
    what = f"{store.name}@{number}" if number < oldest else f"the version before {number} of {store.name}"
    raise NotFound(f"{what} is not kept any more as a whole, so {so}")


def find_kept(reader: Reader, store: Store, number: int, path: bytes) -> Kept | None:
    """What `path` held in a version that is kept in part: a file or a symlink, as far as that is known."""
    version = log.version(reader, store, number)
    look = _Look(reader, store, number)
    for change in log.changes(reader, store.id, number):
        if change.path == path and not change.is_redacted:
            is_content = change.op is not ChangeKind.DELETED and change.kind is not Kind.DIRECTORY
            return look.brought(change, version) if is_content else None
    return look.unchanged(path)


class _Look:
    def __init__(self, reader: Reader, store: Store, number: int) -> None:
        self._reader = reader
        self._store = store
        self._number = number
        self._oldest = catalog.head(reader, store.id).oldest
        self._horizon = VersionTree(reader, store, self._oldest)

    def brought(self, change: Change, version: Version) -> Kept | None:
        """What the version itself brought: by its row, and without one by the change."""
        *above, name = change.path.split(b"/")
        parents = [parent] if (parent := self._directory(above)) else []
        for key in (*(self._key(parent, name) for parent in parents), *self._keys(name)):
            value = self._reader.get(Table.HISTORY, key)
            entry = decode_entry(value) if value else None
            if entry is not None and is_of(entry, change):
                return Kept(keys.split_history(key)[0], self._number, entry)
        if change.kind is not Kind.FILE:
            return None  # what a symlink leads to is in its row alone
        time, origin = version.time, change.origin
        told = Entry(origin, Kind.FILE, change.mode, change.size, time, time, change.digest, origin=origin)
        return Kept(0, 0, told)

    def unchanged(self, path: bytes) -> Kept | None:
        """What an older version brought, if every name on the way stood for the same up to the horizon."""
        parent, number, entry = ROOT_NODE, 0, None
        for name in path.split(b"/"):
            if entry is not None:
                parent = entry.node
            row = self._known(parent, name)
            if row is None or (entry is not None and entry.kind is not Kind.DIRECTORY):
                return None
            number, entry = keys.read_u64(row[0][-_STEM:]), decode_entry(row[1])
        if entry is None or entry.kind is Kind.DIRECTORY:
            return None
        return Kept(parent, number, entry)

    def _known(self, parent: int, name: bytes) -> Row | None:
        """The row that says what a name stood for, if none between that and the horizon can be missing."""
        wanted = self._key(parent, name)
        row = self._reader.at_or_before(Table.HISTORY, wanted)
        if row is None or row[0][:-_STEM] != wanted[:-_STEM] or row[1] == keys.TOMBSTONE:
            return None
        following = self._reader.at_or_after(Table.HISTORY, wanted + b"\0")
        if following is None or following[0][:-_STEM] != wanted[:-_STEM]:
            return row
        is_after = keys.read_u64(following[0][-_STEM:]) > self._oldest
        return row if is_after else None

    def _directory(self, names: list[bytes]) -> int | None:
        """The node of a directory, as far as that is known, or else as it is called at the horizon."""
        node = ROOT_NODE
        for name in names:
            row = self._known(node, name)
            entry = decode_entry(row[1]) if row is not None else self._horizon.lookup(node, name)
            if entry is None or entry.kind is not Kind.DIRECTORY:
                return None
            node = entry.node
        return node

    def _key(self, parent: int, name: bytes) -> bytes:
        return keys.history(self._store.id, parent, name, self._number)

    def _keys(self, name: bytes) -> Iterator[bytes]:
        """The rows of the version with that name, in whatever directory: those above may have moved."""
        prefix, end = keys.u32(self._store.id), name + b"\0" + keys.u64(self._number)
        start = len(prefix) + 5
        for key in self._reader.keys(Table.HISTORY, prefix, keys.after(prefix)):
            if key[start:] == end:
                yield key


def is_of(entry: Entry, change: Change) -> bool:
    """Whether it is what the change brought."""
    is_same = entry.kind is change.kind and entry.digest == change.digest
    return is_same and entry.origin == change.origin


def _is_readable(reader: Reader, entry: Entry) -> bool:
    """Whether the content is there, or is said to be redacted."""
    if not entry.digest or entry.digest == EMPTY_DIGEST:
        return True
    start, stop = keys.blob(entry.digest, 0), keys.after(entry.digest)
    return next(reader.keys(Table.BLOBS, start, stop), None) is not None


def not_known(reader: Reader, store: Store, number: int, path: bytes) -> NotFound:
    """The error that says so, and why."""
    oldest = catalog.head(reader, store.id).oldest
    shows = f"engramfs log {store.name} {path_word(path)}"
    return NotFound(
        f"what {printable(path)} held in {store.name}@{number} is not kept any more: retention left only "
        f"part of that version; its oldest whole one is {oldest} ({shows})"
    )
