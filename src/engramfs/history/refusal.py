"""A content that did not become the file it was written for waits as a pending version of its own.

Another author had changed the file meanwhile, in a store that refuses to overwrite; or had removed it. Each
is the only version of a fork, so that one can be approved without the others.
"""

import msgspec

from engramfs.errors import NotFound
from engramfs.history import catalog, forks, pending
from engramfs.history.changes import Name, Pair, changes_of
from engramfs.history.commit import Commit, RowChange
from engramfs.history.tree import HeadTree, VersionTree, decode_entry
from engramfs.model.author import Author
from engramfs.model.entry import Entry, Kind
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer

_LOOKED_AT = 1000  # versions of a file, when the one that was opened is searched for


class Refused(msgspec.Struct, frozen=True):
    """What was written, and where it belongs: `entry` is what each of `names` would stand for."""

    store: int
    author: Author
    names: list[Name]
    path: bytes
    entry: Entry
    content: bytes | None  # None: it is a blob already
    opened: bytes  # digest of the content that its writer had opened
    time: int
    message: str
    flags: tuple[str, ...]


def offer(writer: Writer, refused: Refused) -> int:
    """Let it wait; the number of the pending version, or 0 when the store is gone.

    It is made from the newest version in which the file was as its writer had opened it. Where the file is
    gone, it is made from the head: there it would come back.
    """
    try:
        store = catalog.get(writer, refused.store)
    except NotFound:  # deleted meanwhile
        return 0
    head = catalog.head(writer, store.id)
    names = refused.names
    is_gone = all(HeadTree(writer, store).lookup(*name) is None for name in names)
    number = head.number if is_gone else _opened(writer, store, names[0], refused.opened, head.number)
    before = VersionTree(writer, store, number)
    pairs = [Pair(name, before.lookup(*name), refused.entry) for name in names]
    fork = forks.create(writer, store, refused.time, forks.owner_of(refused.author.session or ""))
    content = {refused.entry.digest: refused.content} if refused.content is not None else {}
    planned = Commit(
        store=fork.id,
        author=refused.author,
        via="fs",
        time=refused.time,
        changes=changes_of(pairs, lambda _name: refused.path),
        rows=[RowChange(*name, refused.entry) for name in names],
        next_node=head.next_node,
        contents=content,
        message=refused.message,
        flags=refused.flags,
    )
    forks.apply(writer, planned, number)
    offered = pending.of_version(writer, fork, 1)
    return offered.number if offered is not None else 0


def _opened(reader: Reader, store: Store, name: Name, digest: bytes, newest: int) -> int:
    """The newest version in which the file had that content; else the one before its last change."""
    stem = keys.live(store.id, *name) + b"\0"
    number, last = newest, 0
    for _ in range(_LOOKED_AT):
        row = reader.at_or_before(Table.HISTORY, stem + keys.u64(number))
        if row is None or row[0][:-8] != stem:
            break
        entry = decode_entry(row[1]) if row[1] != keys.TOMBSTONE else None
        if entry is not None and entry.kind is Kind.FILE and entry.digest == digest:
            return number
        number = keys.read_u64(row[0][-8:]) - 1
        last = last or number
    return last
