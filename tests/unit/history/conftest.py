"""A state directory, and a store whose tree a test writes as plain values."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
import pytest

from engramfs.history import catalog
from engramfs.history.commit import Commit, RowChange, apply
from engramfs.history.repository import Repository
from engramfs.history.tree import HeadTree, tree_at, walk
from engramfs.model.author import Author
from engramfs.model.entry import EMPTY_DIGEST, ROOT_NODE, Entry, Kind
from engramfs.model.store import Head, Limits, Store
from engramfs.model.version import Change, ChangeKind, Version
from engramfs.storage.protocol import Writer

if TYPE_CHECKING:
    from .git_work import Importing

replace = msgspec.structs.replace
SECOND = 10**9
AUTHOR = Author("agent", agent="digest", actor="alice", session="s1")


class Book:
    """A store, written one version at a time: `write(a=b"…")`, `remove("a")`, `rename("a", "b")`.

    It keeps the tree by itself, so that what the log says can be compared with it.
    """

    def __init__(self, repository: Repository, store: Store) -> None:
        self.repository = repository
        self.store = store
        self.clock = store.created
        self.message, self.via = "", "fs"  # of the versions that are written from now on
        self.author = AUTHOR

    def commit(
        self, *rows: RowChange, changes: list[Change], contents: dict[bytes, bytes], message: str = ""
    ) -> Version:
        """One version that has these rows and changes, with the counts of the head kept right."""
        self.clock += SECOND

        def body(writer: Writer) -> Version | None:
            head = catalog.head(writer, self.store.id)
            made = [row.entry.node for row in rows if row.entry is not None]
            before = _counts(writer, self.store)
            planned = Commit(
                store=self.store.id,
                author=self.author,
                via=self.via,
                time=self.clock,
                changes=changes,
                rows=list(rows),
                next_node=max([head.next_node - 1, *made]) + 1,
                contents=contents,
                message=message or self.message,
            )
            version = apply(writer, planned)
            used, files = (
                after - then for after, then in zip(_counts(writer, self.store), before, strict=True)
            )
            apply(writer, replace(planned, changes=[], rows=[], used_delta=used, files_delta=files))
            return version

        version = self.repository.transact(body)
        assert version is not None
        return version

    def write(self, *, mode: int = 0o644, message: str = "", **files: bytes) -> Version:
        """Create or replace files; `__` in a name is `/`, and directories on the way are made."""
        return self.write_paths(
            {name.replace("__", "/").encode(): content for name, content in files.items()}, mode, message
        )

    def write_paths(self, files: dict[bytes, bytes], mode: int = 0o644, message: str = "") -> Version:
        now = self.clock + SECOND
        known = self.tree()
        next_node = self.head().next_node
        rows, changes, contents = [], [], {}
        for path, content in files.items():
            names = path.split(b"/")
            for depth in range(1, len(names) + 1):
                where = b"/".join(names[:depth])
                above = known[b"/".join(names[: depth - 1])]
                old = known.get(where)
                if depth < len(names):
                    if old is not None:
                        continue
                    entry = Entry(next_node, Kind.DIRECTORY, 0o755, 0, now, now, origin=next_node)
                else:
                    digest = hashlib.sha256(content).digest()
                    node, origin = (old.node, old.origin) if old else (next_node, next_node)
                    links = old.links if old else 1
                    entry = Entry(
                        node, Kind.FILE, mode, len(content), now, now, digest, origin=origin, links=links
                    )
                    if digest != EMPTY_DIGEST:
                        contents[digest] = content
                next_node += old is None
                known[where] = entry
                rows.append(RowChange(above.node, names[depth - 1], entry))
                made = change(ChangeKind.MODIFIED if old else ChangeKind.CREATED, where, entry)
                changes.append(replace(made, from_digest=old.digest if old else b""))
        return self.commit(*rows, changes=changes, contents=contents, message=message)

    def remove(self, *paths: str) -> Version:
        """Remove files, or directories with everything in them."""
        known = self.tree()
        gone = [path for path in known if any(_covers(os.fsencode(one), path) for one in paths)]
        rows = [
            RowChange(known[path.rpartition(b"/")[0]].node, path.rpartition(b"/")[2], None) for path in gone
        ]
        changes = [change(ChangeKind.DELETED, path, known[path]) for path in gone]
        return self.commit(*rows, changes=changes, contents={})

    def rename(self, source: str, target: str) -> Version:
        """A rename to a free name of the same or another directory."""
        known = self.tree()
        before, after = os.fsencode(source), os.fsencode(target)
        entry, here, there = (
            known[before],
            known[before.rpartition(b"/")[0]],
            known[after.rpartition(b"/")[0]],
        )
        rows = (
            RowChange(here.node, before.rpartition(b"/")[2], None),
            RowChange(there.node, after.rpartition(b"/")[2], entry),
        )
        moved = change(ChangeKind.RENAMED, after, entry)
        return self.commit(*rows, changes=[replace(moved, from_path=before)], contents={})

    def link(self, source: str, target: str) -> Version:
        """A second name in the same directory."""
        known = self.tree()
        above = known[source.rpartition("/")[0].encode()].node
        entry = replace(known[source.encode()], links=known[source.encode()].links + 1)
        rows = [RowChange(above, one.rpartition("/")[2].encode(), entry) for one in (source, target)]
        return self.commit(*rows, changes=[change(ChangeKind.CREATED, target.encode(), entry)], contents={})

    def symlink(self, path: str, target: str) -> Version:
        """A symbolic link at the root, or another target for one."""
        old, now = self.tree().get(path.encode()), self.clock + SECOND
        node = old.node if old is not None else self.head().next_node
        size, aim = len(target), target.encode()
        entry = Entry(node, Kind.SYMLINK, 0o777, size, now, now, target=aim, origin=node)
        made = [change(ChangeKind.MODIFIED if old else ChangeKind.CREATED, path.encode(), entry)]
        return self.commit(RowChange(ROOT_NODE, path.encode(), entry), changes=made, contents={})

    def tree(self, number: int | None = None) -> dict[bytes, Entry]:
        """The whole tree by path, as the log says it."""
        with self.repository.engine.reading() as reader:
            return dict(walk(tree_at(reader, self.store, number)))

    def head(self) -> Head:
        with self.repository.engine.reading() as reader:
            return catalog.head(reader, self.store.id)


def change(op: ChangeKind, path: bytes, entry: Entry) -> Change:
    return Change(op, path, entry.kind, entry.mode, entry.size, entry.digest, entry.origin)


def _covers(one: bytes, path: bytes) -> bool:
    return path == one or path.startswith(one + b"/")


def _counts(writer: Writer, store: Store) -> tuple[int, int]:
    """Bytes of files and number of nodes, each node once, the root not counted."""
    nodes = {entry.node: entry for path, entry in walk(HeadTree(writer, store)) if path}
    return sum(entry.size for entry in nodes.values() if entry.kind is Kind.FILE), len(nodes)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def repository(state: Path) -> Iterator[Repository]:
    with Repository.open(str(state), write="the tests") as repository:
        yield repository


class Shelf(Protocol):
    def __call__(self, name: str, limits: Limits | None = None) -> Book: ...


@pytest.fixture
def shelf(repository: Repository) -> Shelf:
    """Makes stores."""

    def make(name: str, limits: Limits | None = None) -> Book:
        store = repository.transact(
            lambda writer: catalog.create(writer, name, now=1_700_000_000 * SECOND, limits=limits)
        )
        return Book(repository, store)

    return make


@pytest.fixture
def book(shelf: Shelf) -> Book:
    return shelf("memory/digest/state")


@pytest.fixture
def importing(book: Book, tmp_path: Path) -> "Importing":
    """The store `book`, and a repository that is imported into it."""
    from .git_work import Importing, Work

    return Importing(Work(tmp_path / "work"), book)
