"""Stores that a session needs, before it is opened: made when missing, claimed by their owner, seeded.

A memory belongs to whoever used it first: an actor, a tenant or the agent. Two of them whose names would
make the same store are kept apart here, before anything is mounted.
"""

from collections.abc import Sequence

import msgspec

from engramfs.daemon import seed
from engramfs.daemon.attachments import Attachment
from engramfs.errors import Refused
from engramfs.history import catalog, commit
from engramfs.history.commit import Commit
from engramfs.model.store import Limits, Store
from engramfs.model.version import Version
from engramfs.storage.protocol import Reader, Writer

replace = msgspec.structs.replace


class Ready(msgspec.Struct, frozen=True):
    """A store that was made or claimed, and its seed as far as it got one."""

    store: Store
    seeded: Commit | None
    version: Version | None


def unused(reader: Reader, wanted: Sequence[Attachment]) -> list[Attachment]:
    """Those whose stores are still to be made or claimed. Raises `Refused` for somebody else's memory."""
    return [each for each in wanted if _is_unused(reader, each)]


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


def claim(
    writer: Writer, needed: list[Attachment], agent: str, limits: Limits, now: int
) -> tuple[list[str], list[Ready]]:
    """Make, claim and seed the stores of `needed`: the names of those that are new, and what was claimed.

    In one transaction, so that a memory is never there and not seeded. Raises `Refused` when a memory is
    somebody else's, `AlreadyExists` when its name lies in another store.
    """
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
            ready.append(Ready(store, seeded, version))
    return made, ready
