"""Each content has its digest (invariant 5): read once, however many names and versions it has."""

import hashlib
from collections.abc import Iterator

import msgspec

from engramfs.errors import Corrupt
from engramfs.history.tree import head_tree, path_to, version_tree
from engramfs.history.verify.report import Reporter
from engramfs.model.entry import EMPTY_DIGEST
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Engine, Table

_PARTS = 16  # read in one transaction


class Reference(msgspec.Struct, frozen=True):
    """Where a content is named: a row of `live` (number None) or of `history`."""

    number: int | None
    parent: int
    name: bytes
    digest: bytes
    size: int


class Contents:
    """Checks contents, and remembers which it has seen."""

    def __init__(self, engine: Engine, reporter: Reporter) -> None:
        self._engine = engine
        self._reporter = reporter
        self._sizes: dict[bytes, int] = {EMPTY_DIGEST: 0}
        self._damaged: dict[bytes, str] = {}

    def check(self, store: Store, references: list[Reference]) -> None:
        """Report damage under each name of the content. No transaction may be open."""
        for reference in references:
            digest = reference.digest
            if digest not in self._sizes:
                self._examine(digest, reference.size)
            if digest in self._damaged:
                self._reporter.add(store.name, f"{self.where(store, reference)}: {self._damaged[digest]}")
            elif self._sizes[digest] != reference.size:
                self._reporter.add(
                    store.name,
                    f"{self.where(store, reference)}: its size is given as {reference.size:,} bytes, "
                    f"its content has {self._sizes[digest]:,}",
                )

    def _examine(self, digest: bytes, size: int) -> None:
        problem = blobs.damage(digest, size, self._parts(digest, blobs.count_parts(size)))
        self._sizes[digest] = size
        if problem is not None:
            self._damaged[digest] = problem
        self._reporter.blobs += 1
        self._reporter.bytes += size

    def _parts(self, digest: bytes, count: int) -> Iterator[bytes]:
        """In short transactions: a content never changes, so they need not be one."""
        for start in range(0, count, _PARTS):
            with self._engine.reading() as reader:
                parts = [
                    blobs.part(reader, digest, number) for number in range(start, min(start + _PARTS, count))
                ]
            yield from parts

    def where(self, store: Store, reference: Reference) -> str:
        """The path of a name, in the version that the row belongs to."""
        with self._engine.reading() as reader:
            number = reference.number
            tree = head_tree(reader, store) if number is None else version_tree(reader, store, number)
            path = printable(path_to(tree, reference.parent, reference.name)) or "the root"
        return path if number is None else f"{path} in version {number}"

    def check_unused(self) -> None:
        """The contents that no row names: damaged, they would be damaged when they are named again."""
        key = b""
        while True:
            with self._engine.reading() as reader:
                row = reader.at_or_after(Table.BLOBS, key)
            if row is None:
                return
            digest, part = row[0][:-4], keys.read_u32(row[0][-4:])
            key = digest + b"\xff" * 5
            if digest in self._sizes:
                continue
            if part != 0:
                self._reporter.add("", f"blob {digest.hex()} was never finished; no version names it", "note")
                continue
            problem = self._damage_of_unused(digest)
            if problem is not None:
                self._reporter.add("", f"{problem} (no version names it)")

    def _damage_of_unused(self, digest: bytes) -> str | None:
        found, number = hashlib.sha256(), 0
        while True:
            try:
                with self._engine.reading() as reader:
                    if reader.get(Table.BLOBS, keys.blob(digest, number)) is None:
                        break
                    part = blobs.part(reader, digest, number)
            except Corrupt as error:
                return error.message
            found.update(part)
            self._reporter.bytes += len(part)
            number += 1
        self._reporter.blobs += 1
        return None if found.digest() == digest else f"blob {digest.hex()} holds another content"
