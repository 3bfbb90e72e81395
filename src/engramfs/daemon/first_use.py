"""The same as `claiming` in a running worker: stores that a session needs are there before it is opened."""

import time
from collections.abc import Sequence
from functools import partial

import msgspec

from engramfs.daemon.attachments import Attachment
from engramfs.daemon.claiming import claim, unused
from engramfs.history import catalog
from engramfs.model.store import Limits
from engramfs.storage.protocol import Writer
from engramfs.vfs.filesystem import Filesystem

replace = msgspec.structs.replace
_NODES = 16  # ids set aside for a seed, of which it needs one


async def make_ready(
    filesystem: Filesystem, wanted: Sequence[Attachment], agent: str, limits: Limits
) -> list[str]:
    """Make, claim and seed what has not been used yet; the names of stores that are new.

    Raises `Refused` when a memory is somebody else's, `AlreadyExists` when its name lies in another store;
    then nothing was changed.
    """
    with filesystem.resources.engine.reading() as reader:
        needed = unused(reader, wanted)
    if not needed:
        return []
    for each in needed:
        await _leave_room(filesystem, each.store)
    body = partial(claim, needed=needed, agent=agent, limits=limits, now=time.time_ns())
    made, ready = await filesystem.resources.writer.run(body)
    for one in ready:
        filesystem.describe(one.store)
        if one.seeded is not None:
            filesystem.absorb(one.seeded, one.version)
    return made


async def _leave_room(filesystem: Filesystem, name: str) -> None:
    """Node ids that the live tree gives out and those of the seed must differ."""
    with filesystem.resources.engine.reading() as reader:
        store = catalog.find(reader, name)
    live = filesystem.stores.get(store.id) if store is not None else None
    if live is None or store is None:
        return
    await live.sealed()
    first = live.tree.set_aside(_NODES)
    await filesystem.resources.writer.run(partial(_raise_next_node, identifier=store.id, first=first))


def _raise_next_node(writer: Writer, identifier: int, first: int) -> None:
    head = catalog.head(writer, identifier)
    catalog.put_head(writer, identifier, replace(head, next_node=max(head.next_node, first)))
