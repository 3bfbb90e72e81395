"""Forks: a store's changes that wait for a person, as a store of their own without a name.

A fork is made for each attachment with the access `ask`, and for each content that was refused because
another author had changed the file. Its versions are ordinary ones, each offered as a Pending.
"""

from collections.abc import Iterator

import msgspec

from engramfs.history import catalog, commit, pending
from engramfs.history.commit import Commit
from engramfs.model.store import Head, Store
from engramfs.model.version import Version
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer

replace = msgspec.structs.replace


def owner_of(session: str) -> str:
    """What `Store.owner` of a fork says of the session that it belongs to."""
    return f"session {session}"


def create(writer: Writer, base: Store, now: int, owner: str) -> Store:
    """A fork of `base` in which nothing differs yet; `owner` says whose it is: see `owner_of`."""
    fork = Store(
        id=catalog.next_id(writer),
        name=base.name,
        kind=base.kind,
        description="",
        limits=base.limits,
        conflicts="keep",  # a person decides
        created=now,
        owner=owner,
        base=base.id,
    )
    catalog.put(writer, fork)
    catalog.put_head(writer, fork.id, Head())
    writer.put(Table.PENDING, keys.pending(base.id, keys.FORK + fork.id), b"")
    return fork


def as_base(reader: Reader, fork: Store) -> Store:
    """The fork with what it takes over from its base: limits, whether it is archived, and what of secrets."""
    base = catalog.get(reader, fork.base)
    return replace(fork, limits=base.limits, archived=base.archived, secrets=base.secrets)


def apply(writer: Writer, planned: Commit, base: int) -> Version | None:
    """Write a commit of a fork, and offer the version that it becomes.

    `base` is the version of the store below that it was made from. Node ids are that store's, so it gives
    none of them out again.
    """
    fork = catalog.get(writer, planned.store)
    version = commit.apply(writer, planned, tombstones=True)
    if version is not None:
        pending.offer(writer, fork, version.number, base)
    below = catalog.head(writer, fork.base)
    if below.next_node < planned.next_node:
        catalog.put_head(writer, fork.base, replace(below, next_node=planned.next_node))
    return version


def every(reader: Reader) -> Iterator[tuple[int, int]]:
    """(fork, store below) of all forks."""
    rows = reader.scan(Table.PENDING, keys.u32(1), b"\xff" * 4)
    for key, _ in rows:
        if keys.read_u64(key[4:]) >= keys.FORK:
            yield keys.read_u64(key[4:]) - keys.FORK, keys.read_u32(key[:4])


def drop_if_unused(writer: Writer, identifier: int) -> None:
    """Remove a fork that never got a version."""
    if writer.get(Table.STORES, keys.u32(identifier)) and not catalog.head(writer, identifier).number:
        catalog.delete(writer, catalog.get(writer, identifier))
