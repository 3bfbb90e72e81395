"""Files that an old version held under a name which a redaction took out: no tree has that name any more.

What is left of them is the origin, in the changes that lost their path. So a file that the head has can be
told from one that came later, and restoring does not delete it; nor one that was deleted
before that version and brought back since. Functions take a transaction.
"""

from collections.abc import Iterator

from engramfs.history import log
from engramfs.history.tree import Tree, resolve, walk
from engramfs.model.entry import Entry, Kind
from engramfs.model.store import Store
from engramfs.model.version import ChangeKind
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table


def forgotten_origins(reader: Reader, store: Store, number: int) -> set[int]:
    """The origins of files whose path was taken out of version `number`, or of one before it."""
    start, stop = keys.version(store.id, 0), keys.version(store.id, number + 1)
    return {
        change.origin
        for key, _ in reader.scan(Table.REDACTED, start, stop)
        for change in log.changes(reader, store.id, keys.read_u64(key[-8:]))
        if change.is_redacted and change.op is not ChangeKind.DELETED and change.origin
    }


def still_there(
    head: Tree, path: bytes, origins: set[int], wanted: dict[bytes, Entry]
) -> Iterator[tuple[bytes, Entry]]:
    """What the head has of such files at and below `path`, with the directories above that `wanted` lacks.

    Not those that `wanted` has, whatever it holds for them, nor those whose place it gives to something else.
    """
    nodes, known = {one.node for one in wanted.values()}, {one.origin for one in wanted.values()}
    placed = dict(wanted)
    for where, entry in walk(head, path) if origins else ():
        is_one = entry.kind is not Kind.DIRECTORY and entry.origin in origins
        if not is_one or entry.node in nodes or entry.origin in known or where in placed:
            continue
        above = _above(where, path)
        if any(one in placed and placed[one].kind is not Kind.DIRECTORY for one in above):
            continue
        for one in above:
            directory = resolve(head, one) if one not in placed else None
            if directory is not None:
                placed[one] = directory
                yield one, directory
        yield where, entry


def _above(where: bytes, scope: bytes) -> list[bytes]:
    """The directories below `scope` that lead to a path, topmost first."""
    found = []
    while len(where := where.rpartition(b"/")[0]) > len(scope):
        found.append(where)
    return found[::-1]
