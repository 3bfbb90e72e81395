"""What a collection must know of the contents that this worker has in memory, and no version yet.

Concurrency. On the event loop.
"""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import trio

from engramfs.history import pending
from engramfs.history.collection.in_use import InUse
from engramfs.model.operation import Link, Operation, Rename, Update
from engramfs.model.store import Store
from engramfs.storage.protocol import Reader
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
    """End the views of versions below `oldest`: their trees are not whole any more, except pinned ones.

    So are those of what was pending, made from such a version, unless it waits.
    """
    with filesystem.resources.engine.reading() as reader:
        waiting = pending.needed_bases(reader, store.id)
        for view in list(filesystem.views.values()):
            if not isinstance(view, PinnedView):
                continue
            is_own = view.store.id == store.id
            number = view.version if is_own else _made_from(reader, store, view)
            if 0 < number < oldest and number not in pinned and (is_own or number not in waiting):
                filesystem.revoke(view)


def _made_from(reader: Reader, store: Store, view: PinnedView) -> int:
    """The version of the store over which the view of something pending is; 0: it is none of the store."""
    offered = pending.of_version(reader, view.store, view.version) if view.store.base == store.id else None
    return offered.base if offered is not None else 0
