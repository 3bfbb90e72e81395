"""States that would take hours to write through a mount, written through `history.commit` in seconds."""

import hashlib
import time

from tests.bench.daemon import STATE

from engramfs.history import catalog, commit
from engramfs.history.commit import Commit, RowChange
from engramfs.history.repository import Repository
from engramfs.model.author import Author
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.store import Store
from engramfs.model.version import Change, ChangeKind
from engramfs.storage.protocol import Writer

AUTHOR = Author("agent", agent="bench")
_VERSIONS_A_TRANSACTION = 10_000


def with_versions(state: str, files: int, versions: int) -> None:
    """A store `STATE` whose first version has `files` files, and each later one changed one of them."""
    with Repository.open(state, write="the bench") as repository:
        store = repository.transact(lambda writer: catalog.create(writer, STATE, now=time.time_ns()))
        repository.transact(lambda writer: commit.apply(writer, _files(store, ROOT_NODE, files)))
        for first in range(2, versions + 1, _VERSIONS_A_TRANSACTION):
            last = min(first + _VERSIONS_A_TRANSACTION, versions + 1)

            def change(writer: Writer, numbers: range = range(first, last)) -> None:
                for number in numbers:
                    commit.apply(writer, _changed_file(store, number, number % files, files))

            repository.transact(change)


def with_stores(state: str, stores: int, files: int, directories: int, files_in_each: int) -> None:
    """`stores` stores of `files` files each, and one with `directories` of `files_in_each` files each."""
    with Repository.open(state, write="the bench") as repository:

        def create(writer: Writer) -> None:
            for number in range(stores):
                store = catalog.create(writer, f"memories/actor-{number:04}", now=time.time_ns())
                commit.apply(writer, _files(store, ROOT_NODE, files))
            large = catalog.create(writer, STATE, now=time.time_ns())
            for number in range(directories):
                first = ROOT_NODE + 1 + number * (files_in_each + 1)
                directory = Entry(first, Kind.DIRECTORY, 0o755, 0, large.created, large.created, origin=first)
                _apply_directory(writer, large, b"topic-%03d" % number, directory, files_in_each)

        repository.transact(create)


def _apply_directory(writer: Writer, store: Store, name: bytes, directory: Entry, files: int) -> None:
    """One version that makes a directory with `files` files."""
    made = _files(store, directory.node, files, path=name + b"/")
    made.rows.append(RowChange(ROOT_NODE, name, directory))
    made.changes.append(_change(ChangeKind.CREATED, name, directory))
    commit.apply(writer, made)


def _files(store: Store, parent: int, files: int, path: bytes = b"") -> Commit:
    """One version with `files` new files in the directory `parent`, whose node ids follow its own."""
    changes, rows, contents, used = [], [], {}, 0
    for number in range(files):
        content = b"note %d of directory %d of store %d\n" % (number, parent, store.id)
        name, entry = _file(parent + 1 + number, number, content)
        rows.append(RowChange(parent, name, entry))
        changes.append(_change(ChangeKind.CREATED, path + name, entry))
        contents[entry.digest] = content
        used += entry.size
    return Commit(
        store=store.id,
        author=AUTHOR,
        via="fs",
        time=time.time_ns(),
        changes=changes,
        rows=rows,
        next_node=parent + 1 + files,
        used_delta=used,
        files_delta=files + (parent != ROOT_NODE),
        contents=contents,
    )


def _changed_file(store: Store, version: int, number: int, files: int) -> Commit:
    """File `number` of those that `_files` put into the root, with a new content of about the same size."""
    content = b"note %06d as of version %06d\n" % (number, version)
    name, entry = _file(ROOT_NODE + 1 + number, number, content)
    return Commit(
        store=store.id,
        author=AUTHOR,
        via="fs",
        time=time.time_ns(),
        changes=[_change(ChangeKind.MODIFIED, name, entry)],
        rows=[RowChange(ROOT_NODE, name, entry)],
        next_node=ROOT_NODE + 1 + files,
        contents={entry.digest: content},
    )


def _file(node: int, number: int, content: bytes) -> tuple[bytes, Entry]:
    """The name and the entry of a file."""
    now = time.time_ns()
    digest = hashlib.sha256(content).digest()
    return b"note-%04d.md" % number, Entry(
        node, Kind.FILE, 0o644, len(content), now, now, digest, origin=node
    )


def _change(op: ChangeKind, path: bytes, entry: Entry) -> Change:
    return Change(op, path, entry.kind, entry.mode, entry.size, entry.digest, entry.origin)
