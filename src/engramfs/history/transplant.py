"""A store of another state directory, a backup say, comes into this one.

A store that is not here comes with its whole history, under an id of its own: nothing in its rows but their
keys names the id, so its chain of digests goes on to prove itself. Of a store that is here the head of the
other comes, as a new version.

Contents go first, in transactions of bounded size; what names them comes last and in one transaction, so a
crash in between leaves at most contents that no version names.

Concurrency. The other repository is read in transactions of its own, and nobody may write to it meanwhile.
"""

from collections.abc import Iterable, Iterator

import msgspec

from engramfs.errors import NotFound
from engramfs.history import catalog, log
from engramfs.history.commit import Commit, encode
from engramfs.history.graft import Wanted, graft
from engramfs.history.repository import Repository
from engramfs.history.tree import HeadTree, decode_entry, walk
from engramfs.model.author import Author
from engramfs.model.entry import EMPTY_DIGEST, Entry, Kind
from engramfs.model.store import Head, Store
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Reader, Table, Writer

replace = msgspec.structs.replace
Content = tuple[bytes, int]  # digest and size

_ROWS = (Table.VERSIONS, Table.CHANGES, Table.LIVE, Table.HISTORY, Table.NODES, Table.REDACTED)
_BYTES = 8 * blobs.PART  # of contents in one transaction
_AT_ONCE = 5000  # rows that are read in one transaction


def find(source: Repository, name: str, shown: str) -> Store:
    """The store `name` of `source`, which people know as `shown`. Raises `NotFound` and `InvalidName`."""
    with source.engine.reading() as reader:
        store = catalog.find(reader, name)
        if store is None:
            known = ", ".join(each.name for each in catalog.every(reader)) or "none"
            raise NotFound(f"the backup {shown} has no store {name}; it has {known}")
        return store


def copy_head(source: Repository, there: Store, repository: Repository) -> None:
    """Store the contents that the head of `there` needs. Raises `Corrupt` for one that is damaged there."""
    with source.engine.reading() as reader:
        contents = [(entry.digest, entry.size) for _, entry in walk(HeadTree(reader, there))]
    _copy_contents(source, repository, contents)


def plan(
    source: Repository, there: Store, reader: Reader, store: Store, author: Author, now: int, shown: str
) -> Commit:
    """The commit that makes the head of `store` what the head of `there` is, once its contents are here.

    `reader` is the transaction that it is written in. `shown` is what the message calls the other place.
    Raises `QuotaExceeded`.
    """
    with source.engine.reading() as other:
        head = catalog.head(other, there.id)
        entries = list(walk(HeadTree(other, there)))
    is_kin = _is_kin(reader, store, head)
    wanted = [Wanted(path, _as_here(entry, now, is_kin), entry.node) for path, entry in entries]
    grafted = graft(reader, store, b"", keys.NO_PARENT, wanted, times=False)
    message = f"restore of {there.name}@{head.number} from the backup {shown}"
    return grafted.commit(store, author, "restore", now, message)


def _is_kin(reader: Reader, store: Store, head: Head) -> bool:
    """Whether the other head is a version of this very history, so that its node ids mean the same."""
    try:
        return log.version(reader, store, head.number).digest == head.digest
    except NotFound:
        return False


def _as_here(entry: Entry, now: int, is_kin: bool) -> Entry:
    return replace(entry, ctime=now) if is_kin else replace(entry, ctime=now, node=0, origin=0)


def adopt(source: Repository, there: Store, repository: Repository) -> Store:
    """The store that `there` becomes here, with its history. Raises `AlreadyExists`, `Corrupt`."""
    _copy_contents(source, repository, _every_content(source, there))

    def body(writer: Writer) -> Store:
        made = catalog.create(writer, there.name, now=there.created)
        store = replace(there, id=made.id, base=0)
        catalog.put(writer, store)
        with source.engine.reading() as reader:
            _copy_rows(reader, there.id, writer, store.id)
            catalog.put_head(writer, store.id, replace(catalog.head(reader, there.id), journal_position=0))
        return store

    return repository.transact(body)


def _copy_rows(reader: Reader, old: int, writer: Writer, new: int) -> None:
    prefix = keys.u32(old)
    for table in _ROWS:
        for key, value in reader.scan(table, prefix, keys.after(prefix)):
            writer.put(table, keys.u32(new) + key[4:], value)
    counter = writer.get(Table.META, keys.NEXT_FEED_KEY)
    sequence = keys.read_u64(counter) if counter else 1
    for key, _ in reader.scan(Table.VERSIONS, prefix, keys.after(prefix)):
        writer.put(Table.FEED, keys.u64(sequence), encode((new, keys.read_u64(key[4:]))))
        sequence += 1
    writer.put(Table.META, keys.NEXT_FEED_KEY, keys.u64(sequence))


def _every_content(source: Repository, store: Store) -> Iterator[Content]:
    """The contents that any row of the store names."""
    for table in (Table.LIVE, Table.HISTORY):
        start, stop = keys.u32(store.id), keys.after(keys.u32(store.id))
        while True:
            with source.engine.reading() as reader:
                rows = [row for row, _ in zip(reader.scan(table, start, stop), range(_AT_ONCE), strict=False)]
            for _, value in rows:
                if value != keys.TOMBSTONE:
                    entry = decode_entry(value)
                    if entry.kind is Kind.FILE and not entry.is_redacted:
                        yield entry.digest, entry.size
            if len(rows) < _AT_ONCE:
                break
            start = rows[-1][0] + b"\0"


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
