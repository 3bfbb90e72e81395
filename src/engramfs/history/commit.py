"""One batch becomes one version, in one transaction.

Everything that makes a version, whether a sealed batch, an import or a restore, describes it as a
`Commit` and ends here, so that the invariants of `engramfs.storage.keys` are kept in one place.
"""

import msgspec

from engramfs.errors import Redacted
from engramfs.history import catalog, hygiene
from engramfs.model.author import Author
from engramfs.model.entry import Entry
from engramfs.model.store import Head
from engramfs.model.version import Change, Version, chain, digest_of_changes
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Table, Writer

encode = msgspec.msgpack.Encoder().encode
_decode_version = msgspec.msgpack.Decoder(Version).decode


class RowChange(msgspec.Struct, frozen=True, array_like=True):
    """What one name of the tree stands for afterwards."""

    parent: int
    name: bytes
    entry: Entry | None  # None: nothing
    recorded: bool = True  # False: times alone changed, which is no part of a version


class Commit(msgspec.Struct, frozen=True):
    """Everything that one version adds to the log.

    Without changes there is no version, but rows, contents and the journal position are still kept.
    """

    store: int
    author: Author
    via: str
    time: int  # nanoseconds since 1970
    changes: list[Change]
    rows: list[RowChange]
    next_node: int
    used_delta: int = 0  # bytes of live files more or fewer
    files_delta: int = 0  # live nodes more or fewer
    contents: dict[bytes, bytes] = {}  # digest → content, of what is not a blob yet
    message: str = ""
    flags: tuple[str, ...] = ()
    overwrites: tuple[int, ...] = ()
    journal_position: int = 0


def apply(writer: Writer, commit: Commit, *, tombstones: bool = False) -> Version | None:
    """Write `commit` into the log; the version that it became, or None when nothing changed.

    What looks like a secret in what it writes makes the version one with the flag `secret`.
    With `tombstones`, `live` says of a name that it is gone: in a fork, where the base may have it.
    A version is never earlier than the one before it, so a time finds a version by binary search: while a
    clock that was set back catches up, versions have equal times. Raises `Redacted` for what has no content.
    """
    if any(row.entry is not None and row.entry.is_redacted for row in commit.rows):
        raise Redacted("what was redacted has no content, so no version can bring it; nothing was done")
    head = catalog.head(writer, commit.store)
    for digest, content in commit.contents.items():
        blobs.put_bytes(writer, digest, content)
    secrets = hygiene.of_commit(writer, commit)
    if secrets:
        commit = msgspec.structs.replace(commit, flags=tuple(sorted({*commit.flags, hygiene.FLAG})))
    version = _put_version(writer, commit, head) if commit.changes else None
    number = version.number if version else head.number
    if secrets:
        hygiene.note(writer, commit.store, number, secrets)
    for row in commit.rows:
        _put_row(writer, commit.store, row, version, tombstones=tombstones)
        if row.entry is not None and row.entry.digest and row.entry.digest not in commit.contents:
            blobs.make_whole(writer, row.entry.digest)  # it may have been superseded until now
    catalog.put_head(
        writer,
        commit.store,
        msgspec.structs.replace(
            head,
            number=number,
            digest=version.digest if version else head.digest,
            next_node=max(head.next_node, commit.next_node),
            journal_position=max(head.journal_position, commit.journal_position),
            used=head.used + commit.used_delta,
            files=head.files + commit.files_delta,
        ),
    )
    return version


def _put_version(writer: Writer, commit: Commit, head: Head) -> Version:
    number = head.number + 1
    changes = sorted(commit.changes, key=lambda change: (change.path, change.op))
    packed = [
        encode(changes[start : start + keys.CHANGES_PER_PART])
        for start in range(0, len(changes), keys.CHANGES_PER_PART)
    ]
    for part, value in enumerate(packed):
        writer.put(Table.CHANGES, keys.changes(commit.store, number, part), value)
    version = Version(
        number=number,
        parent_digest=head.digest,
        time=max(commit.time, _time_of(writer, commit.store, head.number)),
        author=commit.author,
        via=commit.via,
        message=commit.message,
        change_count=len(changes),
        flags=commit.flags,
        overwrites=commit.overwrites,
        changes_digest=digest_of_changes(packed),
    )
    version = msgspec.structs.replace(version, digest=chain(version))
    writer.put(Table.VERSIONS, keys.version(commit.store, number), encode(version))
    counter = writer.get(Table.META, keys.NEXT_FEED_KEY)
    sequence = keys.read_u64(counter) if counter else 1
    writer.put(Table.FEED, keys.u64(sequence), encode((commit.store, number)))
    writer.put(Table.META, keys.NEXT_FEED_KEY, keys.u64(sequence + 1))
    return version


def _time_of(writer: Writer, store: int, number: int) -> int:
    value = writer.get(Table.VERSIONS, keys.version(store, number))
    return _decode_version(value).time if value is not None else 0


def _put_row(
    writer: Writer, store: int, row: RowChange, version: Version | None, *, tombstones: bool
) -> None:
    key = keys.live(store, row.parent, row.name)
    value = keys.TOMBSTONE if row.entry is None else encode(row.entry)
    if row.entry is None and not tombstones:
        writer.delete(Table.LIVE, key)
    else:
        writer.put(Table.LIVE, key, value)
    if not row.recorded:
        return
    if row.entry is not None:
        place = keys.place(store, row.entry.node, row.parent, row.name)
        if writer.get(Table.NODES, place) is None:  # putting it again would still write its pages again
            writer.put(Table.NODES, place, b"")
    if version is not None:
        writer.put(Table.HISTORY, keys.history(store, row.parent, row.name, version.number), value)
