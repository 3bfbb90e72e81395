"""What a redaction does to the changes of versions."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from engramfs.history.log import decode_changes
from engramfs.model.entry import Entry
from engramfs.model.version import Change, ChangeKind, digest_of_changes
from engramfs.storage import keys
from engramfs.storage.protocol import Table, Writer

_encode = msgspec.msgpack.Encoder().encode


class ChangeEdit(Protocol):
    """What is done to the changes of one version, or to some of them."""

    def of(self, changes: list[Change]) -> list[Change]:
        """As many, in the same order."""


class Edit(msgspec.Struct, frozen=True):
    """`entry` was at one of `paths`: it came there in this version (`began`), or went away in it."""

    entry: Entry
    paths: frozenset[bytes]
    began: bool

    def of(self, changes: list[Change]) -> list[Change]:
        if not self.began:
            return [self._ended(change) for change in changes]
        brought = [change for change in changes if self._brought(change)]
        exact = [change for change in brought if change.path in self.paths]
        gone = exact or brought  # a batch may have moved a directory above it meanwhile
        return [change.redacted() if change in gone else change for change in changes]

    def _brought(self, change: Change) -> bool:
        return (
            change.op is not ChangeKind.DELETED
            and change.kind is self.entry.kind
            and change.digest == self.entry.digest
            and (change.origin == self.entry.origin or change.path in self.paths)
        )

    def _ended(self, change: Change) -> Change:
        if change.op is ChangeKind.DELETED:
            is_it = change.digest == self.entry.digest and change.kind is self.entry.kind
            here = change.path in self.paths or change.origin == self.entry.origin
            return change.redacted() if is_it and here else change
        if change.from_path is not None and change.from_path in self.paths:
            change = msgspec.structs.replace(change, from_path=b"")
        if self.entry.digest and change.from_digest == self.entry.digest and change.path in self.paths:
            change = msgspec.structs.replace(change, from_digest=b"")
        return change


def edit_changes(
    writer: Writer, store: int, number: int, edits: Sequence[ChangeEdit], gone: bytes
) -> tuple[int, bytes]:
    """How many changes of a version lost their path, and the digest of what is left, if that is less."""
    start, stop = keys.changes(store, number, 0), keys.changes(store, number + 1, 0)
    rows = list(writer.scan(Table.CHANGES, start, stop))
    count, edited, packed = 0, False, []
    for key, value in rows:
        before = decode_changes(value)
        after = before
        for edit in edits:
            after = edit.of(after)
        after = [_without(change, gone) for change in after] if gone else after
        pairs = list(zip(before, after, strict=True))
        count += sum(new.path != old.path for old, new in pairs)
        if after != before:
            edited, value = True, _encode(after)
            writer.put(Table.CHANGES, key, value)
        packed.append(value)
    return count, digest_of_changes(packed) if edited else b""


def _without(change: Change, gone: bytes) -> Change:
    if change.digest == gone:
        return change.redacted()
    return msgspec.structs.replace(change, from_digest=b"") if change.from_digest == gone else change
