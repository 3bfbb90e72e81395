"""What a redaction will do to the rows of a store and of its forks, and doing it: in one transaction.

It was found by reading, and holds as long as no head has moved.
"""

from collections.abc import Iterable

import msgspec

from engramfs.errors import Refused
from engramfs.history import catalog
from engramfs.history.change_edits import Edit, edit_changes
from engramfs.history.redaction_rows import Removed, add_redaction, encode, forget_name
from engramfs.history.redaction_target import Span
from engramfs.history.residue import leave_residue
from engramfs.history.tree import decode_entry, path_to, version_tree
from engramfs.history.waiting_redaction import take_out_rows, waiting_versions
from engramfs.model.entry import Entry
from engramfs.model.names import printable
from engramfs.model.redaction import Redaction
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer


class Part(msgspec.Struct, frozen=True):
    """What is to go out of one store, or fork."""

    store: Store
    head: int
    spans: tuple[Span, ...]
    further: tuple[tuple[int, Edit], ...] = ()  # to be done to changes, beside the ends of the spans
    mentions: tuple[int, ...] = ()  # further versions whose changes may name the digest

    def has_moved(self, reader: Reader) -> bool:
        return catalog.head(reader, self.store.id).number != self.head

    def carry_out(self, writer: Writer, content: Entry, redaction: Redaction, gone: bytes) -> Removed:
        """No change may name the digest `gone` any more, if there is one."""
        edits = self._edits(writer)
        rows = {number for span in self.spans for number in span.rows}
        versions, count = [], 0
        for number in sorted({*edits, *self.mentions}):
            lost, remaining = edit_changes(writer, self.store.id, number, edits.get(number, []), gone)
            if remaining or number in rows:
                versions.append(number)
                count += lost
                done = msgspec.structs.replace(redaction, changes=lost, remaining=remaining)
                add_redaction(writer, self.store.id, number, done)
        back = take_out_rows(writer, self.store, self.spans) if self.store.base else []
        self._redact_rows(writer)
        return Removed(self.store.id, content, self.spans, tuple(versions), count, given_back=tuple(back))

    def _redact_rows(self, writer: Writer) -> None:
        for span in self.spans:
            for number in span.rows:
                key = keys.history(self.store.id, span.parent, span.name, number)
                value = writer.get(Table.HISTORY, key)
                if value is not None:  # a collection may have removed it meanwhile
                    writer.put(Table.HISTORY, key, encode(decode_entry(value).redacted()))
        for parent, name in {(span.parent, span.name) for span in self.spans}:
            forget_name(writer, self.store.id, parent, name, waiting_versions(writer, self.store))

    def _edits(self, reader: Reader) -> dict[int, list[Edit]]:
        """What is to be done to the changes of each version at the ends of the spans."""
        edits: dict[int, list[Edit]] = {}
        for span in self.spans:
            paths = {number: self._path(reader, span, number) for number in (*span.rows, span.last)}
            for number in span.rows:
                edits.setdefault(number, []).append(Edit(span.entry, frozenset([paths[number]]), True))
            after = self._path(reader, span, span.last + 1)
            edit = Edit(span.entry, frozenset([paths[span.last], after]), False)
            edits.setdefault(span.last + 1, []).append(edit)
        for number, edit in self.further:
            edits.setdefault(number, []).append(edit)
        return edits

    def _path(self, reader: Reader, span: Span, number: int) -> bytes:
        return path_to(version_tree(reader, self.store, number), span.parent, span.name)


class Plan(msgspec.Struct, frozen=True):
    """The store's part first, those of its forks after it."""

    content: Entry
    parts: tuple[Part, ...]
    everywhere: bool = False

    def carry_out(self, writer: Writer, redaction: Redaction) -> Removed | None:
        """None when a head has moved."""
        if any(part.has_moved(writer) for part in self.parts) or self._has_new_fork(writer):
            return None
        leave_residue(writer)
        gone = self.content.digest if self.everywhere else b""
        first, *beside = (part.carry_out(writer, self.content, redaction, gone) for part in self.parts)
        lost = tuple(removed for removed in beside if removed.versions)
        return msgspec.structs.replace(first, beside=lost)

    def _has_new_fork(self, reader: Reader) -> bool:
        known = {part.store.id for part in self.parts}
        return self.everywhere and any(
            fork.id not in known for fork in catalog.forks(reader, self.parts[0].store.id)
        )


def require_past(reader: Reader, store: Store, spans: Iterable[Span]) -> None:
    """Raise `Refused` when one of the spans reaches up to the head."""
    for span in spans:
        if span.last == 0:
            head = catalog.head(reader, store.id).number
            path = printable(path_to(version_tree(reader, store, head), span.parent, span.name))
            raise Refused(
                f"{path} in {store.name} still has that content at the head; change or remove it first, "
                "so that there is a newer version, then redact the old one"
            )
