"""What a pending version would change, as differences: of the names that it recorded, not of whole trees."""

from collections.abc import Iterable, Iterator

from engramfs.errors import NotFound
from engramfs.history import catalog
from engramfs.history.approval import rows_of
from engramfs.history.between import at_paths
from engramfs.history.changes import Name
from engramfs.history.diff import Difference, with_renames
from engramfs.history.kept import is_of, tree_of_path
from engramfs.history.log import changes
from engramfs.history.pending import needed_bases
from engramfs.history.tree import Tree, fork_tree, head_tree, path_to, version_tree
from engramfs.model.entry import Entry, Kind
from engramfs.model.pending import Pending
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table


def require_base(reader: Reader, store: Store, offered: Pending) -> None:
    """Raise `NotFound` unless the tree that it was made from is there as a whole."""
    if not has_base(reader, store, offered):
        raise _no_base(store, offered)


def has_base(reader: Reader, store: Store, offered: Pending) -> bool:
    """Whether the tree that it was made from is there as a whole."""
    is_whole = not 0 < offered.base < catalog.head(reader, store.id).oldest
    return is_whole or offered.base in needed_bases(reader, store.id)


def _no_base(store: Store, offered: Pending) -> NotFound:
    return NotFound(
        f"pending {offered.number} was made from {store.name}@{offered.base}, of which retention left "
        f"only part; engramfs pending show {store.name} {offered.number} lists what it changed"
    )


def path_tree(reader: Reader, offered: Pending, path: bytes) -> Tree:
    """A tree in which `path` is what the pending version has there.

    Raises `NotFound` when what it was made from is not kept any more, unless it wrote the path itself.
    """
    fork = catalog.get(reader, offered.fork)
    store = catalog.get(reader, fork.base)
    if has_base(reader, store, offered):
        return version_tree(reader, fork, offered.version)
    own = find_own(reader, fork, offered, path)
    if own is None:
        raise _no_base(store, offered)
    return tree_of_path(path, *own, _no_base(store, offered))


def find_own(reader: Reader, fork: Store, offered: Pending, path: bytes) -> tuple[int, Entry] | None:
    """The directory and the entry of a file or symlink that it wrote, whatever is left of the tree below."""
    rows = rows_of(reader, fork).get(offered.version, {})
    for change in changes(reader, fork.id, offered.version):
        if change.path == path and change.kind is not Kind.DIRECTORY:
            for (parent, name), entry in rows.items():
                if entry is not None and name == path.rpartition(b"/")[2] and is_of(entry, change):
                    return parent, entry
    return None


def differences(reader: Reader, pending: Pending) -> list[Difference]:
    """By path, renames included, and what is in a directory that moved: see `with_renames`.

    Raises `NotFound` when it was decided, and what it was made from is not kept any more.
    """
    fork = catalog.get(reader, pending.fork)
    require_base(reader, catalog.get(reader, fork.base), pending)
    before = fork_tree(reader, fork, pending.version, pending.base, without=True)
    after = fork_tree(reader, fork, pending.version, pending.base)
    names = rows_of(reader, fork).get(pending.version, {})
    return with_renames(at_paths(before, after, _touched(names, before, after)))


def shown_differences(reader: Reader, fork: Store) -> Iterator[Difference]:
    """What a session that asks sees otherwise than the store's head has it; each path for itself."""
    before, after = head_tree(reader, catalog.get(reader, fork.base)), head_tree(reader, fork)
    prefix = keys.u32(fork.id)
    names = [keys.split_live(key) for key in reader.keys(Table.LIVE, prefix, keys.after(prefix))]
    return at_paths(before, after, _touched(names, before, after))


def _touched(names: Iterable[Name], before: Tree, after: Tree) -> dict[bytes, bool]:
    """The paths of `names` in both trees, for `at_paths`: a directory above one may have moved."""
    touched: dict[bytes, bool] = {}
    for parent, name in names:
        for tree in (before, after):
            if tree.lookup(parent, name) is not None:
                path = path_to(tree, parent, name) if parent != keys.NO_PARENT else b""
                touched[path] = False
    return touched
