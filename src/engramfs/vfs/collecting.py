"""What a collection must know of the contents that this worker has in memory, and no version yet.

Concurrency. On the event loop.
"""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import trio

from engramfs.history.collection.in_use import InUse
from engramfs.model.operation import Link, Operation, Rename, Update
from engramfs.model.store import Store
from engramfs.vfs.pinned_view import PinnedView

if TYPE_CHECKING:
    from engramfs.vfs.filesystem import Filesystem
    from engramfs.vfs.live_store import LiveStore

_AT_ONCE = 5000  # nodes between two moments for others


def note_named(in_use: InUse, operation: Operation) -> None:
    """An operation was recorded: the journal names its content from now on."""
    if in_use.is_collected:
        match operation:
            case Link(entry=entry) | Update(entry=entry) | Rename(moved=entry):
                in_use.note(entry.digest)


async def note_unrecorded(filesystem: "Filesystem") -> None:
    """Note what is in memory, once everything else is sealed.

    What loses its name while this goes on had one that is recorded, or was noted when it was recorded.
    """
    in_use = filesystem.resources.in_use
    for store in list(filesystem.stores.values()):
        for digest in _unrecorded(store):
            in_use.note(digest)
        for view in list(store.views):
            known = list(view.lookups)
            for start in range(0, len(known), _AT_ONCE):
                for identifier in known[start : start + _AT_ONCE]:
                    node = store.tree.nodes.get(identifier)
                    if node is not None and not node.places:
                        in_use.note(node.entry.digest)
                await trio.lowlevel.checkpoint()


def _unrecorded(store: "LiveStore") -> Iterator[bytes]:
    """Of transient and unclosed files, of removed ones that are open, of what is on its way, of spools."""
    for place in store.accounting.left_out():
        directory = store.tree.nodes.get(place.parent)
        node = store.tree.find(directory, place.name, place.view) if directory is not None else None
        if node is not None:
            yield node.entry.digest
    for identifier in store.orphans:
        if identifier in store.tree.nodes:
            yield store.tree.nodes[identifier].entry.digest
    for cut in store.coming:
        yield from (row.entry.digest for row in cut.commit.rows if row.entry is not None)
    yield from (spool.base_digest for spool in store.dirty)


def end_removed(filesystem: "Filesystem", store: Store, oldest: int, pinned: Collection[int]) -> None:
    """End the views of versions below `oldest`: their trees are not whole any more, except pinned ones."""
    for view in list(filesystem.views.values()):
        if not isinstance(view, PinnedView) or view.store.id != store.id:
            continue
        if view.version < oldest and view.version not in pinned:
            filesystem.revoke(view)
