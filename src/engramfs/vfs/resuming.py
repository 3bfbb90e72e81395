"""Going on where a worker died: the journal, the spools, the files without a name, the last unanswered call.

Called once the views of the sessions exist again, under their old numbers, and before the connection is
taken over. Unlike `recovery`, which ends everything that was open, this keeps it open: files that were
created and not closed, transient names, and dirty bytes.
"""

import contextlib
import os

import structlog

from engramfs.errors import EngramError, NoEntry, NotFound
from engramfs.model.author import SYSTEM
from engramfs.model.entry import NODE_BITS, NODE_MASK
from engramfs.storage.journal import Record
from engramfs.vfs import orphans
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.node import Node
from engramfs.vfs.recovery import Recovered, described
from engramfs.vfs.spool import FILLING, Spool
from engramfs.vfs.writable_view import WritableView

log = structlog.get_logger("engramfs.resuming")


def resume(filesystem: Filesystem, answered: int, caller: int) -> Recovered:
    """Bring the live trees and open files back.

    `answered` is the last journal position known to be so, `caller` the thread whose call on a name was
    the last one to begin.
    """
    journal = filesystem.resources.journal
    replayed = 0
    skipped: list[str] = []
    found: set[int] = set()  # the inodes of spools
    for record in journal.replay():
        try:
            replayed += _replay(filesystem, record, answered, caller)
        except EngramError as error:
            skipped.append(described(record, error))
    filesystem.replayed()
    for orphan in orphans.left(filesystem.resources.spool_path):
        with contextlib.suppress(NotFound):
            _adopt_orphan(filesystem, orphan)
    for name in sorted(os.listdir(filesystem.resources.spool_path)):
        if name.startswith(FILLING):
            os.unlink(os.path.join(filesystem.resources.spool_path, name))
        elif not name.startswith(orphans.PREFIX):
            found.add(_adopt_spool(filesystem, name))
    _lose_the_rest(filesystem, found)
    for what in skipped:
        log.warning("journal record skipped", what=what)
    return Recovered(journal.records, replayed, 0, journal.torn_bytes, tuple(skipped))


def _replay(filesystem: Filesystem, record: Record, answered: int, caller: int) -> bool:
    store = filesystem.store_numbered(record.store)
    is_call = record.author != SYSTEM and record.view  # and not a state said again
    if record.position > answered and is_call:
        filesystem.resources.repeated.expect(record, caller)
    if record.position <= store.head.journal_position:
        return False
    store.replay(record)
    return True


def _adopt_orphan(filesystem: Filesystem, orphan: orphans.Orphan) -> None:
    store = filesystem.store_numbered(orphan.store)
    store.orphans.adopt(orphan.entry.node)
    store.tree.load(orphan.entry.node)
    if orphan.entry.node not in store.tree.nodes:
        node = store.tree.nodes[orphan.entry.node] = Node(orphan.entry, born=orphan.born)
        node.content = orphan.content


def _lose_the_rest(filesystem: Filesystem, found: set[int]) -> None:
    """Of the inodes that had a dirty spool, those without one have lost their bytes."""
    unrecorded = filesystem.resources.unrecorded
    dirty = {spool.inode for store in filesystem.stores.values() for spool in store.dirty}
    for inode in set(unrecorded) - dirty:
        view = filesystem.views.get(inode >> NODE_BITS)
        is_lost = False
        if inode not in found and isinstance(view, WritableView):
            with contextlib.suppress(NoEntry):
                view.lose(inode & NODE_MASK)
                is_lost = True
        if not is_lost:
            unrecorded.discard(inode)


def _adopt_spool(filesystem: Filesystem, name: str) -> int:
    """The inode that the spool is of."""
    spool = Spool.adopt(filesystem.resources.spool_path, name)
    try:
        view, node = filesystem.find(spool.inode)
        if not isinstance(view, WritableView):
            raise NotFound(f"view {view.number} is not writable")
        file = view.file(node)
    except EngramError as error:
        log.warning("a spool belongs to nothing any more", name=name, reason=error.message)
        filesystem.resources.failed("", f"the unrecorded bytes in {name} belong to no open file")
        spool.abandon()
        return spool.inode
    if file.spool is not None or not spool.dirty or spool.digest() == file.node.entry.digest:
        spool.close()  # it was recorded, so the next write begins with what is there now
        return spool.inode
    view.adopt(node, spool)
    return spool.inode
