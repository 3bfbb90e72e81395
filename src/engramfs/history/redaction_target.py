"""What a redaction is about: the content of a path in a version, and where in the log it says so.

Functions take a transaction and hold none.
"""

from collections.abc import Iterator
from itertools import groupby

import msgspec

from engramfs.errors import NotFound, Redacted, UsageError
from engramfs.history import catalog, log
from engramfs.history.change_edits import Edit
from engramfs.history.kept import find_kept, is_partial, not_known
from engramfs.history.tree import Tree, decode_entry, resolve, tree_at
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable
from engramfs.model.shell_words import path_word
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Row, Table


class Span(msgspec.Struct, frozen=True):
    """The versions `first` to `last` showed the content of `entry` as `name` in the directory `parent`."""

    parent: int
    name: bytes
    first: int
    last: int  # 0: up to the head
    entry: Entry
    rows: tuple[int, ...]  # the versions whose rows say so


class Target(msgspec.Struct, frozen=True):
    """A content, the span in which the path held it, and what else is to be done to changes of versions.

    Of a version that retention kept in part, the row of the path may be gone: then there is no span.
    """

    content: Entry
    span: Span | None
    edits: tuple[tuple[int, Edit], ...] = ()

    @property
    def is_at_head(self) -> bool:
        return self.span is not None and self.span.last == 0


def target(reader: Reader, store: Store, number: int, path: bytes) -> Target:
    """What `path` holds in version `number`.

    Raises `NotFound` for an unknown version or path, `Redacted` when it was taken out before, and
    `UsageError` for a directory.
    """
    if is_partial(reader, store, number):
        return _kept_target(reader, store, number, path)
    parent, entry = find(tree_at(reader, store, number), store, f"{store.name}@{number}", path)
    return Target(entry, _span_at(reader, store, parent, path.rpartition(b"/")[2], number))


def find(tree: Tree, store: Store, where: str, path: bytes) -> tuple[int, Entry]:
    """The directory and the entry of `path` in a tree of `store`, which people know as `where`."""
    above, entry = resolve(tree, path.rpartition(b"/")[0]), resolve(tree, path)
    if entry is None or above is None:
        raise NotFound(
            f"{printable(path)} is not in {where}; "
            f"engramfs log {store.name} --path {path_word(path)} shows which versions have it"
        )
    if entry.kind is Kind.DIRECTORY:
        raise UsageError(f"{printable(path) or 'the root'} is a directory; redact the files in it one by one")
    _require_unredacted(entry, where, path)
    return above.node, entry


def _require_unredacted(entry: Entry, where: str, path: bytes) -> None:
    if entry.is_redacted:
        raise Redacted(f"{printable(path)} in {where} was redacted before")


def _kept_target(reader: Reader, store: Store, number: int, path: bytes) -> Target:
    kept = find_kept(reader, store, number, path)
    if kept is None:
        raise not_known(reader, store, number, path)
    _require_unredacted(kept.entry, f"{store.name}@{number}", path)
    span = None
    if kept.parent:
        span = _span_at(reader, store, kept.parent, path.rpartition(b"/")[2], kept.number)
    return Target(kept.entry, span, tuple(_edits_below_horizon(reader, store, number, path, kept.entry)))


def _edits_below_horizon(
    reader: Reader, store: Store, number: int, path: bytes, entry: Entry
) -> Iterator[tuple[int, Edit]]:
    """Of the version itself, and of those up to the horizon that may say what was there before.

    Few are kept there, and rows that would lead to them are not.
    """
    yield number, Edit(entry, frozenset([path]), True)
    oldest = catalog.head(reader, store.id).oldest
    for version in log.versions(reader, store.id, newest=oldest):
        if version.number <= number:
            return
        yield version.number, Edit(entry, frozenset([path]), False)


def spans(reader: Reader, store: Store, parent: int, name: bytes) -> Iterator[Span]:
    """The spans of a name, oldest first; rows that hold the same are one."""
    prefix = keys.live(store.id, parent, name) + b"\0"
    rows = list(reader.scan(Table.HISTORY, prefix, keys.after(prefix)))
    groups = [(content, list(rows)) for content, rows in groupby(rows, key=_content)]
    for index, (content, group) in enumerate(groups):
        if content is None:
            continue
        numbers = tuple(keys.read_u64(key[-8:]) for key, _ in group)
        following = groups[index + 1][1][0][0] if index + 1 < len(groups) else None
        last = keys.read_u64(following[-8:]) - 1 if following is not None else 0
        yield Span(parent, name, numbers[0], last, decode_entry(group[0][1]), numbers)


def _content(row: Row) -> tuple[Kind, bytes, bytes] | None:
    if row[1] == keys.TOMBSTONE:
        return None
    entry = decode_entry(row[1])
    return entry.kind, entry.digest, entry.target


def _span_at(reader: Reader, store: Store, parent: int, name: bytes, number: int) -> Span:
    return next(
        span
        for span in spans(reader, store, parent, name)
        if span.first <= number and (span.last == 0 or number <= span.last)
    )
