"""What differs between two versions of a store, at a cost that is proportional to it.

The log says what each version changed, so only those paths are looked up in both trees, and what lies below
directories that moved. When there are more changes between the two than files, or some of them are not there
any more (retention, redaction), the trees are walked instead.
"""

from collections.abc import Iterator

from engramfs.history import catalog
from engramfs.history.diff import Difference, compare, differences, is_directory, same, with_renames
from engramfs.history.kept import path_tree_at, require_predecessor
from engramfs.history.log import changes
from engramfs.history.tree import Tree, resolve
from engramfs.model.entry import Entry, Kind
from engramfs.model.store import Store
from engramfs.model.version import ChangeKind
from engramfs.storage.protocol import Reader

_FEW = 1000  # changes that are looked at even where there are hardly any files


def between(reader: Reader, store: Store, old: int, new: int, path: bytes = b"") -> Iterator[Difference]:
    """What is not the same in version `new` as in `old`, at and below `path`, as `differences` has it.

    Raises `NotFound` when there is no such version, or too little is kept of it.
    """
    before, after = (path_tree_at(reader, store, number, path) for number in (old, new))
    touched = _touched(reader, store, min(old, new), max(old, new))
    if touched is None:
        yield from differences(before, after, path)
    else:
        yield from at_paths(before, after, _within(touched, path))


def of_version(reader: Reader, store: Store, number: int) -> list[Difference]:
    """What a version did to the one before it, renames included.

    Raises `NotFound` when one of the two is not there as a whole any more.
    """
    require_predecessor(reader, store, number, "there is nothing to compare with")
    return with_renames(between(reader, store, number - 1, number))


def _touched(reader: Reader, store: Store, low: int, high: int) -> dict[bytes, bool] | None:
    """The paths that versions above `low` up to `high` changed, and whether what is below them moved.

    None when it is better to walk the trees.
    """
    head = catalog.head(reader, store.id)
    if low == 0 or low + 1 < head.oldest:
        return None
    left = max(_FEW, head.files)
    touched: dict[bytes, bool] = {}
    for number in range(low + 1, high + 1):
        for change in changes(reader, store.id, number):
            left -= 1
            if left < 0 or change.is_redacted:
                return None
            moved = change.op is ChangeKind.RENAMED and change.kind is Kind.DIRECTORY
            for path in (change.path, change.from_path):
                if path is not None:
                    touched[path] = touched.get(path, False) or moved
    return touched


def _within(touched: dict[bytes, bool], path: bytes) -> dict[bytes, bool]:
    """Those at and below `path`; or `path` itself, when it lies in a directory that moved."""
    if not path:
        return touched
    found = {one: moved for one, moved in touched.items() if one == path or one.startswith(path + b"/")}
    if any(moved and path.startswith(one + b"/") for one, moved in touched.items()):
        found[path] = True
    return found


def at_paths(old: Tree, new: Tree, touched: dict[bytes, bool]) -> Iterator[Difference]:
    """What is not the same at each of these paths, and below it where that moved or is another directory.

    `touched` says of each path whether what is below it moved.
    """
    done: bytes | None = None  # below which everything has been compared
    for path in sorted(touched, key=lambda path: path.split(b"/")):
        if done is not None and path.startswith(done):
            continue
        before, after = resolve(old, path), resolve(new, path)
        if touched[path] or _have_other_children(before, after):
            yield from compare(old, new, path, before, after)
            done = path + b"/" if path else b""
        elif not same(before, after):
            yield Difference(path, before, after)


def _have_other_children(before: Entry | None, after: Entry | None) -> bool:
    if is_directory(before) and is_directory(after):
        return before is not None and after is not None and before.node != after.node
    return is_directory(before) or is_directory(after)
