"""What waits for a person: the rows of forks, and the rows of `pending` (invariants 10 and 11).

A fork may have names in a directory that the store below has lost since: they cannot be reached, and are no
damage.
"""

from collections.abc import Iterator

import msgspec

from engramfs.history import catalog, pending
from engramfs.history.fork_tree import VersionRows
from engramfs.history.redaction_rows import redactions
from engramfs.history.tree import decode_entry
from engramfs.history.verify.batches import in_batches
from engramfs.history.verify.contents import Contents, Reference
from engramfs.history.verify.report import Reporter
from engramfs.model.entry import Entry, Kind
from engramfs.model.pending import Pending
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Row, Table

_DIGEST = 32  # bytes


class ForkRows:
    """Checks the rows of one fork."""

    def __init__(self, engine: Engine, fork: Store, contents: Contents, reporter: Reporter) -> None:
        self._engine = engine
        self._fork = fork
        self._contents = contents
        self._reporter = reporter
        self._references: list[Reference] = []

    def check(self) -> None:
        prefix = keys.u32(self._fork.id)
        stop = keys.after(prefix)
        in_batches(self._engine, Table.LIVE, prefix, stop, self._live, self._between)
        in_batches(self._engine, Table.HISTORY, prefix, stop, self._history, self._between)

    def _between(self, rows: int) -> None:
        references, self._references = self._references, []
        self._contents.check(self._fork, references)
        self._reporter.checked(rows)

    def _live(self, reader: Reader, rows: list[Row]) -> None:
        head = catalog.head(reader, self._fork.id).number
        below = catalog.head(reader, self._fork.base).number
        recorded = VersionRows(reader, self._fork, head + 1, below)
        for key, value in rows:
            parent, name = keys.split_live(key)
            entry = self._checked(reader, None, parent, name, value)
            then = recorded.get(parent, name)
            if then is None:
                self._problem(name, "differs from the store below, and no version that counts says so")
            elif (entry is None) != (then == keys.TOMBSTONE) or (
                entry is not None and not entry.looks_like(decode_entry(then))
            ):
                self._problem(name, "is not at the head what the newest version says")

    def _history(self, reader: Reader, rows: list[Row]) -> None:
        head = catalog.head(reader, self._fork.id).number
        below = catalog.head(reader, self._fork.base).number
        recorded = VersionRows(reader, self._fork, head + 1, below)
        stem = b""
        for key, value in rows:
            parent, name, number = keys.split_history(key)
            if not 1 <= number <= head:
                self._problem(name, f"has a row of version {number}, which does not exist")
            self._checked(reader, number, parent, name, value)
            if key[:-8] != stem:
                stem = key[:-8]
                is_live = reader.get(Table.LIVE, keys.live(self._fork.id, parent, name)) is not None
                if recorded.get(parent, name) is not None and not is_live:
                    self._problem(name, "is missing at the head")

    def _checked(
        self, reader: Reader, number: int | None, parent: int, name: bytes, value: bytes
    ) -> Entry | None:
        """The entry of a row, looked at; None for a name that is gone, or an entry that cannot be read."""
        if value == keys.TOMBSTONE:
            return None
        try:
            entry = decode_entry(value)
        except msgspec.MsgspecError as error:
            self._problem(name, f"has an entry that cannot be read ({error})")
            return None
        for problem in self._problems(reader, number, parent, name, entry):
            self._problem(name, problem)
        if entry.kind is Kind.FILE and len(entry.digest) == _DIGEST:
            self._references.append(Reference(number, parent, name, entry.digest, entry.size))
        return entry

    def _problems(
        self, reader: Reader, number: int | None, parent: int, name: bytes, entry: Entry
    ) -> Iterator[str]:
        """Of a row of version `number`, or of `live`."""
        next_node = max(catalog.head(reader, store).next_node for store in (self._fork.id, self._fork.base))
        if name and reader.get(Table.NODES, keys.place(self._fork.id, entry.node, parent, name)) is None:
            yield f"is a name that node {entry.node} does not know of"
        if not entry.node < next_node:
            yield f"has the node id {entry.node}, which was never given out"
        is_redacted = number is not None and redactions(reader, self._fork.id, number) and entry.is_redacted
        if entry.kind is Kind.FILE and len(entry.digest) != _DIGEST and not is_redacted:
            yield "is a file without a digest"

    def _problem(self, name: bytes, problem: str) -> None:
        self._reporter.add(self._fork.name, f"{name.decode('utf-8', 'replace') or 'the root'} {problem}")


def check_pending(engine: Engine, store: Store, reporter: Reporter) -> None:
    """Each row names a version of a fork, each version of a fork has one, and what was approved is there."""
    with engine.reading() as reader:
        head = catalog.head(reader, store.id).number
        versions = {fork.id: catalog.head(reader, fork.id).number for fork in catalog.forks(reader, store.id)}
        offered = {fork: set(range(1, number + 1)) for fork, number in versions.items()}
        for number, each in enumerate(pending.every(reader, store.id), start=1):
            reporter.pending += 1
            for problem in _problems(reader, store.id, each, number, head, offered):
                reporter.add(store.name, f"pending {each.number} {problem}")
    for fork, missing in offered.items():
        for version in sorted(missing):
            reporter.add(store.name, f"version {version} of fork {fork} is offered by no pending version")


def _problems(
    reader: Reader, store: int, each: Pending, number: int, head: int, offered: dict[int, set[int]]
) -> Iterator[str]:
    if each.number != number:
        yield f"stands where {number} belongs"
    if each.version not in offered.get(each.fork, set()):
        yield f"names version {each.version} of fork {each.fork}, which does not exist or is offered twice"
    offered.get(each.fork, set()).discard(each.version)
    index = reader.get(Table.PENDING, keys.pending(each.fork, keys.OFFERED + each.version))
    if index is None or keys.read_u64(index) != each.number:
        yield "cannot be found by its version"
    is_marked = reader.get(Table.PENDING, keys.open_pending(store, each.number)) is not None
    if is_marked != (each.state == "open"):
        yield f"is {each.state}, and is {'' if is_marked else 'not '}among those that wait"
    if not each.base <= head:
        yield f"was made from version {each.base}, which does not exist"
    if each.state == "approved" and not each.result <= head:
        yield f"became version {each.result}, which does not exist"
