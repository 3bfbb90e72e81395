"""Stores that a session needs, before it is opened: made when missing, claimed by their owner, seeded.

A memory belongs to whoever used it first: an actor, a tenant or the agent. Two of them whose names would
make the same store are kept apart here, before anything is mounted.
"""

import time
from collections.abc import Sequence
from functools import partial

import msgspec

from engramfs.daemon import seed
from engramfs.daemon.attachments import Attachment
from engramfs.errors import Refused
from engramfs.history import catalog, commit
from engramfs.history.commit import Commit
from engramfs.model.store import Limits, Store
from engramfs.model.version import Version
from engramfs.storage.protocol import Reader, Writer
from engramfs.vfs.filesystem import Filesystem

replace = msgspec.structs.replace
_NODES = 16  # ids set aside for a seed, of which it needs one


class _Ready(msgspec.Struct, frozen=True):
    """A store that was made or claimed, and its seed as far as it got one."""

    store: Store
    seeded: Commit | None
    version: Version | None


async def make_ready(
    filesystem: Filesystem, wanted: Sequence[Attachment], agent: str, limits: Limits
) -> list[str]:
    """Make, claim and seed what has not been used yet; the names of stores that are new.

    Raises `Refused` when a memory is somebody else's, `AlreadyExists` when its name lies in another store;
    then nothing was changed.
    """
    with filesystem.resources.engine.reading() as reader:
        needed = [each for each in wanted if _is_unused(reader, each)]
    if not needed:
        return []
    for each in needed:
        await _leave_room(filesystem, each.store)
    body = partial(_make_all, needed=needed, agent=agent, limits=limits, now=time.time_ns())
    made, ready = await filesystem.resources.writer.run(body)
    for one in ready:
        filesystem.describe(one.store)
        if one.seeded is not None:
            filesystem.absorb(one.seeded, one.version)
    return made


def _is_unused(reader: Reader, wanted: Attachment) -> bool:
    store = catalog.find(reader, wanted.store)
    if store is None:
        return wanted.create
    _check_owner(store, wanted)
    return wanted.owner is not None and not store.owner


def _check_owner(store: Store, wanted: Attachment) -> None:
    if wanted.owner is not None and store.owner not in ("", wanted.owner):
        raise Refused(
            f"store {store.name} is the memory of {store.owner}, and of {wanted.owner} it would be too; "
            "give one of them another id"
        )


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


def _make_all(
    writer: Writer, needed: list[Attachment], agent: str, limits: Limits, now: int
) -> tuple[list[str], list[_Ready]]:
    """In one transaction, so that a memory is never there and not seeded."""
    made = []
    ready = []
    for wanted in needed:
        store = catalog.find(writer, wanted.store)
        unused = store is None or not store.owner
        if store is None:
            store = catalog.create(writer, wanted.store, now=now, limits=limits, owner=wanted.owner or "")
            made.append(store.name)
        _check_owner(store, wanted)  # another may have claimed it meanwhile
        if wanted.owner is not None and unused:
            store = replace(store, owner=wanted.owner)
            catalog.put(writer, store)
            seeded = seed.plan(writer, store, agent, now)
            version = commit.apply(writer, seeded) if seeded is not None else None
            ready.append(_Ready(store, seeded, version))
    return made, ready
