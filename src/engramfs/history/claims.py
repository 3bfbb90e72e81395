"""What a session really wrote, path by path, so that what its agent says of it can be checked.

Functions take a transaction and hold none.
"""

from collections.abc import Iterator

import msgspec

from engramfs.history import catalog, log, pending
from engramfs.history.selection import Selection, select
from engramfs.history.tree import resolve, tree_at
from engramfs.model.entry import Entry
from engramfs.model.pending import PendingState
from engramfs.model.store import Store
from engramfs.model.version import Change, ChangeKind
from engramfs.storage.protocol import Reader


class Claim(msgspec.Struct, frozen=True):
    """The last that a session did to a path."""

    store: str
    version: int  # in which it did; with `pending`, the head that it was made from
    change: Change
    stands: bool  # whether the head still is what the session made of the path
    pending: int = 0  # its number, where it waited for a person
    state: PendingState | None = None  # of that


def claims(reader: Reader, session: str, since: int) -> Iterator[Claim]:
    """Of the session whose id begins with `session`, by store and path; versions before `since` are not read.

    What it made and took away again is there as deleted: it happened. What was redacted is left out.
    """
    wanted = Selection(session=session, since=since)
    for store in catalog.every(reader):
        yield from _in_log(reader, store, wanted)
        yield from _waiting(reader, store, wanted)


def _in_log(reader: Reader, store: Store, wanted: Selection) -> Iterator[Claim]:
    newest: dict[bytes, tuple[int, Change]] = {}
    for found in select(reader, store, wanted, catalog.head(reader, store.id).number):
        number = found.version.number
        for change in log.changes(reader, store.id, number):
            if change.is_redacted:
                continue
            newest.setdefault(change.path, (number, change))
            if change.from_path is not None:
                newest.setdefault(change.from_path, (number, change))
    head = tree_at(reader, store)
    for path in sorted(newest):
        number, change = newest[path]
        if path == change.path:  # an old name of what was renamed is told by its new one
            yield Claim(store.name, number, change, _stands(resolve(head, path), change))


def _stands(entry: Entry | None, change: Change) -> bool:
    if change.op is ChangeKind.DELETED:
        return entry is None
    return entry is not None and (entry.kind, entry.digest) == (change.kind, change.digest)


def _waiting(reader: Reader, store: Store, wanted: Selection) -> Iterator[Claim]:
    for offered in pending.every(reader, store.id):
        version = log.find_version(reader, offered.fork, offered.version)
        if version is None or version.time < (wanted.since or 0) or not wanted.takes(version):
            continue
        if offered.state == "approved" and not offered.unchanged:
            continue  # that version is its own author's in the log
        for change in log.changes(reader, offered.fork, offered.version):
            stands = offered.unchanged and _stands(resolve(tree_at(reader, store), change.path), change)
            yield Claim(store.name, offered.base, change, stands, offered.number, offered.state)
