"""An old tree, directory or file becomes the head again, as a new version."""

from collections.abc import Iterator

import msgspec

from engramfs.errors import Conflict, NotFound, Redacted
from engramfs.history.commit import Commit
from engramfs.history.forgotten_files import forgotten_origins, still_there
from engramfs.history.graft import Wanted, graft
from engramfs.history.kept import path_tree_at
from engramfs.history.redacted_files import Present, redacted_paths
from engramfs.history.tree import HeadTree, Tree, resolve, walk
from engramfs.model.author import Author
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable
from engramfs.model.shell_words import path_word
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader

replace = msgspec.structs.replace


def plan(
    reader: Reader,
    store: Store,
    number: int,
    path: bytes | None,
    author: Author,
    now: int,
    message: str = "",
) -> Commit:
    """The commit that makes `path` (None or empty: everything) what it was in version `number`.

    A file whose content was redacted gets its old name, and holds what it holds now; one that is gone does
    not come back: see `left_out`. Where the redaction took the old name too, the file stays where it is now.

    Files and directories that are still there keep their node; others get back the one that they had, if
    it is free. Directories above `path` that are gone come back too, with nothing else in them. Modes and
    mtimes are those of then. Without a difference there are no changes, so no version. `reader` must be
    the transaction that the commit is written in, unless nobody else can write meanwhile.

    Raises `NotFound` when the version, or the path in it, is not there (any more), `Conflict` when a file is
    where a directory above `path` was, and `QuotaExceeded`.
    """
    path = b"/".join(name for name in (path or b"").split(b"/") if name not in (b"", b"."))
    tree = path_tree_at(reader, store, number, path)
    entry = resolve(tree, path)
    if entry is not None and entry.is_redacted:
        raise Redacted(f"{printable(path)} in {store.name}@{number} was redacted; it cannot be restored")
    if entry is None:
        raise NotFound(
            f"{printable(path)} is not in {store.name}@{number}; engramfs log {store.name} {path_word(path)} "
            "shows the versions that have it"
        )
    scope, parent = _place(reader, store, path)
    wanted = [_wanted(where, entry, now) for where, entry in _missing_above(tree, scope, path)]
    wanted += _below(tree, HeadTree(reader, store), path, now)
    wanted += _forgotten(reader, store, number, path, wanted)
    grafted = graft(reader, store, scope, parent, wanted, times=False)
    suffix = b":" + path if path else b""
    message = message or f"restore of {store.name}@{number}{printable(suffix)}"
    return grafted.commit(store, author, "restore", now, message)


def left_out(reader: Reader, store: Store, number: int, path: bytes | None) -> list[bytes]:
    """The files at and below `path` that version `number` has no content of any more.

    Raises `NotFound` as `plan` does for the version.
    """
    path = (path or b"").strip(b"/")
    return redacted_paths(path_tree_at(reader, store, number, path), path)


def _place(reader: Reader, store: Store, path: bytes) -> tuple[bytes, int]:
    """Where to begin: `path`, or the first directory above it that is gone; and the node that holds it."""
    if not path:
        return b"", keys.NO_PARENT
    head = HeadTree(reader, store)
    parent = head.root()
    names = path.split(b"/")
    for depth, name in enumerate(names[:-1], start=1):
        above = head.lookup(parent.node, name)
        where = b"/".join(names[:depth])
        if above is None:
            return where, parent.node
        if above.kind is not Kind.DIRECTORY:
            raise Conflict(
                f"{printable(where)} in {store.name} is not a directory now; rename it, or restore it first"
            )
        parent = above
    return path, parent.node


def _missing_above(tree: Tree, scope: bytes, path: bytes) -> list[tuple[bytes, Entry]]:
    """The old directories from `scope` down to the one above `path`."""
    found = []
    where = path
    while len(where) > len(scope):
        where = where.rpartition(b"/")[0]
        entry = resolve(tree, where)
        if entry is not None:
            found.append((where, entry))
    return found[::-1]


def _below(tree: Tree, head: HeadTree, path: bytes, now: int) -> Iterator[Wanted]:
    """The old tree at and below `path`; with what is there now for redacted files."""
    old = list(walk(tree, path))
    present = Present(head, path, old)
    for where, entry in old:
        if not entry.is_redacted:
            yield _wanted(where, entry, now)
        else:
            for place, there in present.of(where):
                yield Wanted(place, there, there.node)


def _forgotten(
    reader: Reader, store: Store, number: int, path: bytes, wanted: list[Wanted]
) -> Iterator[Wanted]:
    """What the old tree would have, were its name not redacted: where the head has it."""
    origins = forgotten_origins(reader, store, number)
    placed = {one.path: one.entry for one in wanted}
    for where, entry in still_there(HeadTree(reader, store), path, origins, placed):
        yield Wanted(where, entry, (where, entry.node) if entry.kind is Kind.DIRECTORY else entry.node)


def _wanted(path: bytes, entry: Entry, now: int) -> Wanted:
    node = max(entry.node, 0)  # below zero it is made up: see `engramfs.history.kept`
    return Wanted(path, replace(entry, ctime=now, node=node, origin=entry.origin if node else 0), entry.node)
