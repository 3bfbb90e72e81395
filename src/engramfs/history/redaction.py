"""Taking a content out of the history of a store: content, path and digest go, who and when stay.

What is done to the rows of a store, all in one transaction:

 1. `history`: the row that holds the content becomes one that says so and cannot be read
    (`Entry.redacted`), for as long as other versions use its name. Otherwise every row of the name goes,
    and so do its rows in `nodes`: then the name is gone as well.
 2. `changes`: the change that brought the content loses path and digest. What came after in that place
    loses what it says of it: the digest from before, or, of a deletion, everything.
 3. `redacted`: each version that lost something says who did it, when and why, and has the digest of what
    is left of its changes. Headers stay as they are, so the chain still proves itself.

The blob goes when a collection finds that nothing needs it. The head is never redacted: it is what the
mounts show, so there has to be a newer version first.
"""

from collections.abc import Iterator

import msgspec

from engramfs.errors import Conflict, Refused, UsageError
from engramfs.history import catalog
from engramfs.history.change_edits import Edit, edit_changes
from engramfs.history.occurrences import occurrences
from engramfs.history.redaction_target import Span, spans, target
from engramfs.history.repository import Repository
from engramfs.history.residue import leave_residue
from engramfs.history.tree import VersionTree, decode_entry, path_to
from engramfs.model.author import Author
from engramfs.model.entry import EMPTY_DIGEST, ROOT_NODE, Entry
from engramfs.model.names import printable
from engramfs.model.redaction import Redaction
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer

encode = msgspec.msgpack.Encoder().encode
_decode_redactions = msgspec.msgpack.Decoder(list[Redaction]).decode
_ATTEMPTS = 100


class Removed(msgspec.Struct, frozen=True):
    """What a redaction took out."""

    store: int
    content: Entry
    spans: tuple[Span, ...]
    versions: tuple[int, ...]  # that lost something, oldest first
    changes: int  # that lost path and content


def redactions(reader: Reader, store: int, number: int) -> list[Redaction]:
    """What was taken out of a version, oldest first."""
    value = reader.get(Table.REDACTED, keys.version(store, number))
    return _decode_redactions(value) if value is not None else []


def redact(
    repository: Repository,
    name: str,
    number: int,
    path: bytes,
    author: Author,
    reason: str,
    now: int,
    *,
    everywhere: bool = False,
) -> Removed:
    """Take what `path` holds in version `number` out of the store `name`.

    That is: out of every version that shows it there, up to the next change of the path. With `everywhere`,
    out of each path and version of the store that holds the same content. Nothing may be unsealed.

    Raises `NotFound` for an unknown store, version or path, `Redacted` when that was done before,
    `UsageError` for a directory, and `Refused` when the head holds the content.
    """
    for _ in range(_ATTEMPTS):
        plan = _plan(repository, name, number, path, everywhere=everywhere)
        redaction = Redaction(now, author, reason, 0)

        def body(writer: Writer, plan: _Plan = plan, redaction: Redaction = redaction) -> Removed | None:
            return plan.carry_out(writer, redaction)

        removed = repository.transact(body)
        if removed is not None:
            return removed
    raise Conflict(f"store {name} is being written to all the time; redact again when fewer programs write")


class _Plan(msgspec.Struct, frozen=True):
    """What is to go. It holds as long as the head is version `head`."""

    store: Store
    head: int
    content: Entry
    spans: tuple[Span, ...]
    further: tuple[tuple[int, Edit], ...]  # to be done to changes of versions, beside the ends of the spans
    mentions: tuple[int, ...]  # further versions whose changes may name the digest
    everywhere: bool

    def carry_out(self, writer: Writer, redaction: Redaction) -> Removed | None:
        """None when the head has moved."""
        if catalog.head(writer, self.store.id).number != self.head:
            return None
        leave_residue(writer)
        edits, gone = self._edits(writer), self._gone()
        rows = {number for span in self.spans for number in span.rows}
        versions, count = [], 0
        for number in sorted({*edits, *self.mentions}):
            lost, remaining = edit_changes(writer, self.store.id, number, edits.get(number, []), gone)
            if remaining or number in rows:
                versions.append(number)
                count += lost
                done = msgspec.structs.replace(redaction, changes=lost, remaining=remaining)
                add_redaction(writer, self.store.id, number, done)
        for span in self.spans:
            for number in span.rows:
                key = keys.history(self.store.id, span.parent, span.name, number)
                value = writer.get(Table.HISTORY, key)
                if value is not None:  # a collection may have removed it meanwhile
                    writer.put(Table.HISTORY, key, encode(decode_entry(value).redacted()))
        for parent, name in {(span.parent, span.name) for span in self.spans}:
            forget_name(writer, self.store.id, parent, name)
        return Removed(self.store.id, self.content, self.spans, tuple(versions), count)

    def _gone(self) -> bytes:
        """The digest that no change of the store may name any more, if there is one."""
        return self.content.digest if self.everywhere else b""

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
        return path_to(VersionTree(reader, self.store, number), span.parent, span.name)


def _plan(repository: Repository, name: str, number: int, path: bytes, *, everywhere: bool) -> _Plan:
    with repository.engine.reading() as reader:
        store = catalog.named(reader, name)
        head = catalog.head(reader, store.id).number
        aim = target(reader, store, number, path)
    entry, found = aim.content, [aim.span] if aim.span is not None else []
    mentions: set[int] = set()
    if everywhere:
        if entry.digest == EMPTY_DIGEST:
            raise UsageError(
                f"{printable(path)} is empty in {store.name}@{number}; redact it without --everywhere"
            )
        places = {(one.parent, one.name): None for one in occurrences(repository.engine, entry, store.id)}
        with repository.engine.reading() as reader:
            found = [
                span for place in places for span in spans(reader, store, *place) if span.entry.holds(entry)
            ]
        mentions = set(_mentions(repository, store.id, entry.digest)) if entry.digest else set()
    with repository.engine.reading() as reader:
        _require_past(reader, store, found, head)
    return _Plan(store, head, entry, tuple(found), aim.edits, tuple(mentions), everywhere)


def _mentions(repository: Repository, store: int, digest: bytes) -> Iterator[int]:
    """The versions whose changes name a digest."""
    start, stop = keys.u32(store), keys.after(keys.u32(store))
    while True:
        with repository.engine.reading() as reader:
            rows = reader.scan(Table.CHANGES, start, stop)
            found = [(key, digest in value) for (key, value), _ in zip(rows, range(2000), strict=False)]
        yield from (keys.read_u64(key[4:12]) for key, mentions in found if mentions)
        if len(found) < 2000:
            return
        start = found[-1][0] + b"\0"


def _require_past(reader: Reader, store: Store, spans: list[Span], head: int) -> None:
    """Raise `Refused` when one of the spans reaches up to the head."""
    for span in spans:
        if span.last == 0:
            path = printable(path_to(VersionTree(reader, store, head), span.parent, span.name))
            raise Refused(
                f"{path} in {store.name} still has that content at the head; change or remove it first, "
                "so that there is a newer version, then redact the old one"
            )


def add_redaction(writer: Writer, store: int, number: int, redaction: Redaction) -> None:
    """Without a digest of its own, when no change was altered, it goes on with the one from before."""
    if writer.get(Table.VERSIONS, keys.version(store, number)) is None:
        return  # of a version that retention removed, no more than the row was left
    known = redactions(writer, store, number)
    if not redaction.remaining and known:
        redaction = msgspec.structs.replace(redaction, remaining=known[-1].remaining)
    writer.put(Table.REDACTED, keys.version(store, number), encode([*known, redaction]))


def forget_name(writer: Writer, store: int, parent: int, name: bytes) -> None:
    """Remove the rows of a name of which nothing but redacted rows is left."""
    prefix = keys.live(store, parent, name) + b"\0"
    rows = list(writer.scan(Table.HISTORY, prefix, keys.after(prefix)))
    entries = [decode_entry(value) for _, value in rows if value != keys.TOMBSTONE]
    if any(not entry.is_redacted for entry in entries):
        return
    for key, _ in rows:
        writer.delete(Table.HISTORY, key)
    for node in {entry.node for entry in entries} - {ROOT_NODE}:
        writer.delete(Table.NODES, keys.place(store, node, parent, name))
