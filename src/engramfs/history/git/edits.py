"""What a version changes, in terms of git's trees: paths that go, and files and symlinks that come.

The changes of a version say where to look, and the two trees what is there, so the cost is that of what
changed. Where the version before is not kept, or paths were redacted, the trees are compared as a whole.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from engramfs.history.diff import Difference, differences
from engramfs.history.git.paths import is_refused
from engramfs.history.tree import Tree, resolve, walk
from engramfs.model.entry import Entry, Kind
from engramfs.model.version import Change, ChangeKind


class Edits(msgspec.Struct, frozen=True):
    """`written` are files and symlinks by path. With `afresh` nothing of the commit before stays."""

    removed: Sequence[bytes]
    written: Sequence[tuple[bytes, Entry]]
    refused: int = 0  # paths that no git repository may hold
    afresh: bool = False


def whole(tree: Tree) -> Edits:
    """Everything in `tree`, from nothing."""
    held = [(path, entry) for path, entry in walk(tree) if _has_content(entry)]
    written = [(path, entry) for path, entry in held if not is_refused(path)]
    return Edits((), written, len(held) - len(written), afresh=True)


def between(old: Tree, new: Tree, changes: Iterable[Change] | None) -> Edits:
    """What makes `new` of `old`, at the paths of `changes`; None: anywhere."""
    removed: dict[bytes, None] = {}
    written: dict[bytes, Entry] = {}
    refused = 0
    for difference in _differences(old, new, changes):
        was_there, is_there = _has_content(difference.old), _has_content(difference.new)
        if is_refused(difference.path):
            refused += is_there
        elif difference.new is not None and is_there:
            written[difference.path] = difference.new
        elif was_there:
            removed[difference.path] = None
    return Edits(list(removed), list(written.items()), refused)


def _differences(old: Tree, new: Tree, changes: Iterable[Change] | None) -> Iterator[Difference]:
    if changes is None:
        yield from differences(old, new)
        return
    for path in _places(old, new, changes):
        yield from differences(old, new, path)


def _places(old: Tree, new: Tree, changes: Iterable[Change]) -> Iterator[bytes]:
    """Where to look, each place once; everything below a place is looked at with it."""
    places: set[bytes] = set()
    for change in changes:
        if change.kind is not Kind.DIRECTORY or change.op is not ChangeKind.MODIFIED:
            places.update(path for path in (change.path, change.from_path) if path is not None)
        elif not _is_one_directory(old, new, change.path):
            places.add(change.path)
    return (path for path in sorted(places) if not any(above in places for above in _above(path)))


def _is_one_directory(old: Tree, new: Tree, path: bytes) -> bool:
    """Whether it stayed: then what changed of it is nothing that git keeps. It may have been made anew."""
    before, after = resolve(old, path), resolve(new, path)
    return before is not None and after is not None and before.node == after.node


def _above(path: bytes) -> Iterator[bytes]:
    while path:
        path = path.rpartition(b"/")[0]
        yield path


def _has_content(entry: Entry | None) -> bool:
    """Whether git has something for it."""
    return entry is not None and entry.kind is not Kind.DIRECTORY and not entry.is_redacted


def mode(entry: Entry) -> bytes:
    """Of the permission bits, git keeps whether a file is executable."""
    if entry.kind is Kind.SYMLINK:
        return b"120000"
    return b"100755" if entry.mode & 0o100 else b"100644"
