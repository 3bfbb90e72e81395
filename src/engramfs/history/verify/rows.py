"""`live`, `history` and `nodes`: the tree is whole, and is what history says (invariants 1 to 3, 6, 7)."""

from collections.abc import Iterator

import msgspec

from engramfs.history import catalog
from engramfs.history.redaction_rows import redactions
from engramfs.history.tree import HeadTree, VersionTree, decode_entry, default_root, places
from engramfs.history.verify.batches import in_batches
from engramfs.history.verify.contents import Contents, Reference
from engramfs.history.verify.report import Reporter
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.store import Head, Store
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Row, Table

_DIGEST = 32  # bytes


class Rows:
    """Checks the rows of one store, batch by batch; contents are checked between batches."""

    def __init__(self, engine: Engine, store: Store, contents: Contents, reporter: Reporter) -> None:
        self._engine = engine
        self._store = store
        self._contents = contents
        self._reporter = reporter
        self._references: list[Reference] = []
        self._problems: list[tuple[Reference, str]] = []
        self._heads: set[Head] = set()
        self._used = 0
        self._files = 0
        self._linked: set[int] = set()  # nodes with several names that were counted

    def check(self) -> None:
        prefix = keys.u32(self._store.id)
        stop = keys.after(prefix)
        in_batches(self._engine, Table.LIVE, prefix, stop, self._live, self._between)
        self._check_totals()
        in_batches(self._engine, Table.HISTORY, prefix, stop, self._history, self._between)

    def _between(self, rows: int) -> None:
        references, self._references = self._references, []
        problems, self._problems = self._problems, []
        for reference, problem in problems:
            self._reporter.add(self._store.name, f"{self._contents.where(self._store, reference)}: {problem}")
        self._contents.check(self._store, references)
        self._reporter.checked(rows)

    # The tree at the head

    def _live(self, reader: Reader, rows: list[Row]) -> None:
        head = catalog.head(reader, self._store.id)
        self._heads.add(head)
        tree = HeadTree(reader, self._store)
        recorded = VersionTree(reader, self._store, head.number)
        directories = {keys.NO_PARENT: True, ROOT_NODE: True}
        for key, value in rows:
            parent, name = keys.split_live(key)
            entry = self._decode(None, parent, name, value)
            if entry is None:
                continue
            if parent not in directories:
                above = tree.node(parent)
                directories[parent] = above is not None and above[2].kind is Kind.DIRECTORY
            if not directories[parent]:
                self._problem(
                    None, parent, name, entry, f"directory {parent}, which holds it, does not exist"
                )
            for problem in self._entry_problems(reader, head, parent, name, entry):
                self._problem(None, parent, name, entry, problem)
            for problem in self._live_problems(reader, tree, recorded, parent, name, entry):
                self._problem(None, parent, name, entry, problem)
            self._count(entry)

    def _live_problems(
        self, reader: Reader, tree: HeadTree, recorded: VersionTree, parent: int, name: bytes, entry: Entry
    ) -> Iterator[str]:
        then = recorded.lookup(parent, name)
        if then is None and parent == keys.NO_PARENT:
            then = default_root(self._store.created)
        if not entry.looks_like(then):
            yield "the head is not what the newest version says"
        if entry.is_redacted:
            yield "it is a file without a digest"
        if entry.kind is not Kind.DIRECTORY:
            names = sum(1 for _ in places(reader, self._store.id, tree, entry.node))
            if names != entry.links:
                yield f"it has {names} names and says {entry.links}"

    def _count(self, entry: Entry) -> None:
        if entry.node == ROOT_NODE or entry.node in self._linked:
            return
        if entry.links > 1 and entry.kind is not Kind.DIRECTORY:
            self._linked.add(entry.node)
        self._files += 1
        self._used += entry.size if entry.kind is Kind.FILE else 0

    def _check_totals(self) -> None:
        if len(self._heads) != 1:
            return  # the store was written to meanwhile, so what was counted is no one moment
        head = self._heads.pop()
        if (head.used, head.files) != (self._used, self._files):
            self._reporter.add(
                self._store.name,
                f"the head says {head.files:,} entries with {head.used:,} bytes, "
                f"there are {self._files:,} with {self._used:,}",
            )

    # Every version

    def _history(self, reader: Reader, rows: list[Row]) -> None:
        head = catalog.head(reader, self._store.id)
        tree, newest = HeadTree(reader, self._store), VersionTree(reader, self._store, head.number)
        stem = b""
        for key, value in rows:
            parent, name, number = keys.split_history(key)
            if not 1 <= number <= head.number:
                self._problem(
                    number, parent, name, None, f"its row is of version {number}, which does not exist"
                )
            entry = self._decode(number, parent, name, value) if value != keys.TOMBSTONE else None
            if entry is not None:
                for problem in self._entry_problems(reader, head, parent, name, entry):
                    self._problem(number, parent, name, entry, problem)
                if entry.is_redacted and not self._may_be_redacted(reader, head, number):
                    self._problem(number, parent, name, entry, "it is a file without a digest")
            if key[:-8] != stem:
                stem = key[:-8]
                if newest.lookup(parent, name) is not None and tree.lookup(parent, name) is None:
                    self._problem(head.number, parent, name, None, "it is missing at the head")

    def _may_be_redacted(self, reader: Reader, head: Head, number: int) -> bool:
        """Of versions that retention removed, the redactions went too."""
        return number < head.oldest or bool(redactions(reader, self._store.id, number))

    # Every row

    def _decode(self, number: int | None, parent: int, name: bytes, value: bytes) -> Entry | None:
        try:
            entry = decode_entry(value)
        except msgspec.MsgspecError as error:
            self._problem(number, parent, name, None, f"its entry cannot be read ({error})")
            return None
        if entry.kind is Kind.FILE and len(entry.digest) == _DIGEST:
            self._references.append(Reference(number, parent, name, entry.digest, entry.size))
        return entry

    def _entry_problems(
        self, reader: Reader, head: Head, parent: int, name: bytes, entry: Entry
    ) -> Iterator[str]:
        if (parent == keys.NO_PARENT) != (name == b"") or (name == b"") != (entry.node == ROOT_NODE):
            yield "it is mistaken for the root"
        elif name in (b".", b"..") or b"/" in name or b"\0" in name:
            yield "its name is not allowed"
        elif name and reader.get(Table.NODES, keys.place(self._store.id, entry.node, parent, name)) is None:
            yield f"node {entry.node} does not know that it has this name"
        if not ROOT_NODE <= entry.node < head.next_node:
            yield f"its node id {entry.node} was never given out"
        if entry.kind is Kind.FILE and entry.digest and len(entry.digest) != _DIGEST:
            yield "it is a file with half a digest"

    def _problem(
        self, number: int | None, parent: int, name: bytes, entry: Entry | None, problem: str
    ) -> None:
        reference = Reference(number, parent, name, b"", entry.size if entry else 0)
        self._problems.append((reference, problem))
