"""Forks of a store that a test writes as plain values."""

import hashlib

from engramfs.history import approval, catalog, forks, pending
from engramfs.history.changes import Pair, changes_of
from engramfs.history.commit import Commit, RowChange
from engramfs.history.tree import tree_at, walk
from engramfs.model.author import Author
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.store import Store
from engramfs.storage import blobs
from engramfs.storage.protocol import Writer

from .conftest import AUTHOR, SECOND, Book, replace

PERSON = Author("person", actor="pat")


class Fork:
    """A fork of a book, written one version at a time; names are those of the root."""

    def __init__(self, book: Book, store: Store | None = None) -> None:
        """A new one, or one that is there."""
        self.book = book
        self.message = ""  # of what is written from now on
        self.flags: tuple[str, ...] = ()
        self.transact = book.repository.transact
        self.store = store or self.transact(lambda writer: forks.create(writer, book.store, book.clock, "x"))

    def write(self, **files: bytes | None) -> int:
        """Files with these contents, None for one that goes; the number under which it waits."""

        def body(writer: Writer) -> int:
            base = catalog.head(writer, self.book.store.id)
            tree = tree_at(writer, self.store)
            pairs: list[Pair] = []
            for name, content in files.items():
                old = tree.lookup(ROOT_NODE, name.encode())
                entry = None if content is None else self._entry(base.next_node + len(pairs), old, content)
                pairs.append(Pair((ROOT_NODE, name.encode()), old, entry))
            return self._offer(writer, pairs, *(each for each in files.values() if each))

        return self.transact(body)

    def rename(self, source: str, target: str) -> int:
        """Give what `source` is a free name; the number under which it waits."""

        def body(writer: Writer) -> int:
            old = tree_at(writer, self.store).lookup(ROOT_NODE, source.encode())
            return self._offer(
                writer,
                [
                    Pair((ROOT_NODE, source.encode()), old, None),
                    Pair((ROOT_NODE, target.encode()), None, old),
                ],
            )

        return self.transact(body)

    def _offer(self, writer: Writer, pairs: list[Pair], *contents: bytes) -> int:
        base = catalog.head(writer, self.book.store.id)
        self.book.clock += SECOND
        planned = Commit(
            store=self.store.id,
            author=AUTHOR,
            via="fs",
            time=self.book.clock,
            changes=changes_of(pairs, lambda name: name[1]),
            rows=[RowChange(*pair.name, pair.new) for pair in pairs],
            next_node=base.next_node + len(pairs),
            contents={hashlib.sha256(each).digest(): each for each in contents},
            message=self.message,
            flags=self.flags,
        )
        version = forks.apply(writer, planned, base.number)
        assert version is not None
        offered = pending.of_version(writer, self.store, version.number)
        assert offered is not None
        return offered.number

    def _entry(self, node: int, old: Entry | None, content: bytes) -> Entry:
        digest = hashlib.sha256(content).digest()
        if old is not None:
            return replace(old, digest=digest, size=len(content), mtime=old.mtime + 1)
        return Entry(node, Kind.FILE, 0o644, len(content), 1, 1, digest, origin=node)

    def tree(self, number: int | None = None) -> dict[str, bytes]:
        with self.book.repository.engine.reading() as reader:
            return {
                path.decode(): blobs.read(reader, entry.digest, entry.size)
                for path, entry in walk(tree_at(reader, self.store, number))
                if entry.kind is Kind.FILE
            }

    def approve(self, number: int, *, merge: bool = False) -> None:
        self.transact(
            lambda writer: approval.approve(
                writer, self.book.store, number, PERSON, self.book.clock, merge=merge
            )
        )

    def reject(self, number: int) -> None:
        self.transact(
            lambda writer: approval.reject(writer, self.book.store, number, PERSON, self.book.clock, "no")
        )


def content(book: Book) -> dict[str, bytes]:
    """The files at the head of a store."""
    with book.repository.engine.reading() as reader:
        return {
            path.decode(): blobs.read(reader, entry.digest, entry.size)
            for path, entry in walk(tree_at(reader, book.store))
            if entry.kind is Kind.FILE
        }
