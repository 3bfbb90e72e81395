"""A store of another state directory, a backup say, comes into this one.

A store that is not here comes with its whole history, under an id of its own, so its chain of digests goes
on to prove itself. Of a store that is here the head of the other comes, as a new version, and what is pending
there takes the place of what is pending here.

Contents go first, in transactions of bounded size; what names them comes last and in one transaction, so a
crash in between leaves at most contents that no version names.

Concurrency. The other repository is read in transactions of its own, and nobody may write to it meanwhile.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from engramfs.errors import NotFound
from engramfs.history import catalog, commit, log
from engramfs.history.commit import Commit
from engramfs.history.graft import Wanted, graft
from engramfs.history.repository import Repository
from engramfs.history.shared_history import had_node, shared_version
from engramfs.history.store_rows import Content, copy_rows, every_content
from engramfs.history.transplant_pending import Replaced, replace_open
from engramfs.history.transplant_pending import adopt as adopt_pending
from engramfs.history.tree import HeadTree, walk
from engramfs.model.author import Author
from engramfs.model.entry import EMPTY_DIGEST, Entry
from engramfs.model.store import Head, Store
from engramfs.model.version import Version
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Reader, Writer

replace = msgspec.structs.replace
_BYTES = 8 * blobs.PART  # of contents in one transaction


def find(source: Repository, name: str, shown: str) -> Store:
    """The store `name` of `source`, which people know as `shown`. Raises `NotFound` and `InvalidName`."""
    with source.engine.reading() as reader:
        store = catalog.find(reader, name)
        if store is None:
            known = ", ".join(each.name for each in catalog.every(reader)) or "none"
            raise NotFound(f"the backup {shown} has no store {name}; it has {known}")
        return store


def copy_head(source: Repository, there: Store, repository: Repository) -> None:
    """Store the contents that the head of `there` and its forks need.

    Raises `Corrupt` for one that is damaged there.
    """
    with source.engine.reading() as reader:
        contents = [(entry.digest, entry.size) for _, entry in walk(HeadTree(reader, there))]
        forks = list(catalog.forks(reader, there.id))
    _copy_contents(source, repository, chain(contents, *(every_content(source, fork) for fork in forks)))


class Restored(msgspec.Struct, frozen=True):
    """The commit of the head, the version that it became, and what became of what was pending."""

    commit: Commit
    version: Version | None
    pending: Replaced


def restore(
    source: Repository,
    there: Store,
    writer: Writer,
    name: str,
    author: Author,
    now: int,
    shown: str,
    first_node: int = 0,
) -> Restored:
    """Make the head of the store `name` what the head of `there` is, once its contents are here, and let
    what waits there wait here.

    `shown` is what messages call the other place. New nodes get ids from `first_node` on. Raises `NotFound`,
    `Archived` and `QuotaExceeded`.
    """
    store = catalog.writable(writer, name)
    catalog.set_aside(writer, store.id, first_node)
    with source.engine.reading() as reader:
        head = catalog.head(reader, there.id)
        shared = shared_version(reader, there, writer, store)
        as_here = partial(_as_here, reader, there, head, shared, now)
        message = f"restore of {there.name}@{head.number} from the backup {shown}"
        wanted = [Wanted(path, as_here(entry), entry.node) for path, entry in walk(HeadTree(reader, there))]
        grafted = graft(writer, store, b"", keys.NO_PARENT, wanted, times=False)
        planned = grafted.commit(store, author, "restore", now, message)
        version = commit.apply(writer, planned)
        replaced = replace_open(reader, there, writer, store, author, now, message, shared)
    return Restored(planned, version, replaced)


def describe(name: str, restored: Restored) -> dict[str, Any]:
    """What was restored, as JSON: of what is pending, how many were rejected here, wait again, and could not
    come since they were made from what is not here."""
    version, became = restored.version, restored.pending
    return {
        "store": name,
        "new": False,
        "version": log.describe(version, restored.commit.changes) if version is not None else None,
        "pending": {"rejected": len(became.rejected), "offered": became.offered, "left": became.left},
    }


def _as_here(reader: Reader, there: Store, head: Head, shared: int | None, now: int, entry: Entry) -> Entry:
    """With the nodes that it has here too; others are found by their path, or are new."""

    def here(node: int) -> int:
        is_same = shared is not None and (shared == head.number or had_node(reader, there, node, shared))
        return node if is_same else 0

    return replace(entry, ctime=now, node=here(entry.node), origin=here(entry.origin))


def adopt(source: Repository, there: Store, repository: Repository) -> Store:
    """The store that `there` becomes here, with its history. Raises `AlreadyExists`, `Corrupt`."""
    with source.engine.reading() as reader:
        stores = [there, *catalog.forks(reader, there.id)]
    _copy_contents(source, repository, chain.from_iterable(every_content(source, each) for each in stores))

    def body(writer: Writer) -> Store:
        made = catalog.create(writer, there.name, now=there.created)
        store = replace(there, id=made.id, base=0)
        catalog.put(writer, store)
        with source.engine.reading() as reader:
            copy_rows(reader, there.id, writer, store.id)
            catalog.put_head(writer, store.id, replace(catalog.head(reader, there.id), journal_position=0))
            adopt_pending(reader, there, writer, store)
        return store

    return repository.transact(body)


def _copy_contents(source: Repository, repository: Repository, contents: Iterable[Content]) -> None:
    """Store the contents that are not here, the first part of each last: only with it does one exist."""
    waiting: list[tuple[bytes, int, bytes]] = []
    size = 0

    def flush() -> None:
        def body(writer: Writer) -> None:
            for digest, number, part in waiting:
                blobs.put_part(writer, digest, number, part)

        if waiting:
            repository.transact(body)
            waiting.clear()

    for digest, length in _missing(repository, contents):
        count = blobs.count_parts(length)
        for number in (*range(1, count), 0):
            with source.engine.reading() as reader:
                part = blobs.part(reader, digest, number)
            waiting.append((digest, number, part))
            size += len(part)
            if size >= _BYTES:
                flush()
                size = 0
    flush()


def _missing(repository: Repository, contents: Iterable[Content]) -> Iterator[Content]:
    seen = {b"", EMPTY_DIGEST}
    for digest, size in contents:
        if digest in seen:
            continue
        seen.add(digest)
        with repository.engine.reading() as reader:
            is_here = blobs.is_whole(reader, digest)
        if not is_here:
            yield digest, size
