"""Whose a content is: who an author is, what they wrote, and which contents they were the first to write.

Whoever renames a file, or gives it another mode, has not written what is in it. Nor has whoever saves or
restores what somebody else wrote before. Generators hold a transaction for a while, functions none.
"""

from collections.abc import Iterator
from itertools import islice

import msgspec

from engramfs.history import catalog, log, pending
from engramfs.history.tree import Tree, fork_tree, resolve, version_tree
from engramfs.model.entry import EMPTY_DIGEST, Kind
from engramfs.model.store import Store
from engramfs.model.version import Change, ChangeKind, Version
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Table

_AT_ONCE = 2000  # versions in one read transaction


class Actor(msgspec.Struct, frozen=True):
    """An actor, as versions name them."""

    actor: str
    tenant: str | None

    def made(self, version: Version) -> bool:
        author = version.author
        return author.kind == "agent" and author.actor == self.actor and author.tenant == self.tenant

    def wrote(self, reader: Reader, store: Store, version: Version, change: Change) -> bool:
        """Whether what the change brought is theirs, and not only its name or its mode."""
        return self.made(version) and has_written(reader, store, version.number, change)


def brings_content(change: Change) -> bool:
    """Whether a file or a symlink is there after it that was not so before; not an empty file."""
    return (
        change.op is not ChangeKind.DELETED
        and change.kind is not Kind.DIRECTORY
        and not change.is_redacted
        and change.digest != EMPTY_DIGEST
    )


def has_written(reader: Reader, store: Store, number: int, change: Change) -> bool:
    """Whether a change that brings a content made it what it is. Where that is not known any more: yes."""
    if change.op is ChangeKind.MODIFIED:
        return change.digest != change.from_digest or change.kind is Kind.SYMLINK
    if change.op is not ChangeKind.RENAMED or not change.from_path:
        return True
    before = resolve(_before(reader, store, number), change.from_path)
    return before is None or before.kind is not change.kind or before.digest != change.digest


def _before(reader: Reader, store: Store, number: int) -> Tree:
    """The tree that a version of a store, or of a fork, was made from."""
    if not store.base:
        return version_tree(reader, store, number - 1)
    offered = pending.of_version(reader, store, number)
    return fork_tree(reader, store, number, offered.base if offered is not None else 0, without=True)


def written_first(engine: Engine, actor: Actor) -> dict[bytes, int]:
    """The contents that nobody wrote before the actor did, and when that was; of all stores and forks."""
    first: dict[bytes, int] = {}
    for store, reader, version in _all_versions(engine):
        if actor.made(version):
            for change in log.changes(reader, store.id, version.number):
                if change.digest and brings_content(change) and actor.wrote(reader, store, version, change):
                    first[change.digest] = min(version.time, first.get(change.digest, version.time))
    if first:
        for store, reader, version in _all_versions(engine):
            if not actor.made(version):
                for change in log.changes(reader, store.id, version.number):
                    if change.digest in first and version.time < first[change.digest]:
                        del first[change.digest]
    return first


def _all_versions(engine: Engine) -> Iterator[tuple[Store, Reader, Version]]:
    with engine.reading() as reader:
        stores = list(catalog.every(reader))
        stores += [fork for store in stores for fork in catalog.forks(reader, store.id)]
    for store in stores:
        for reader, version in versions_of(engine, store):
            yield store, reader, version


def versions_of(engine: Engine, store: Store) -> Iterator[tuple[Reader, Version]]:
    """Each version of a store or fork, oldest first, with a transaction to look at it."""
    start, stop = keys.version(store.id, 0), keys.version(store.id + 1, 0)
    while True:
        with engine.reading() as reader:
            rows = list(islice(reader.scan(Table.VERSIONS, start, stop), _AT_ONCE))
            for _, value in rows:
                yield reader, log.decode_version(value)
        if len(rows) < _AT_ONCE:
            return
        start = rows[-1][0] + b"\0"
