"""States that would take hours to write through a mount, written through `history.commit` in seconds."""

import hashlib
import time
from collections.abc import Iterator

import msgspec
from tests.bench.daemon import STATE

from engramfs.history import catalog, commit
from engramfs.history.commit import Commit, RowChange
from engramfs.history.repository import Repository
from engramfs.history.tree import HeadTree, resolve
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


def with_long_log(state: str, versions: int) -> None:
    """A store `STATE` with one file, whose mode each version changed."""
    with Repository.open(state, write="the bench") as repository:
        store = repository.transact(lambda writer: catalog.create(writer, STATE, now=time.time_ns()))
        repository.transact(lambda writer: commit.apply(writer, _files(store, ROOT_NODE, 1)))
        name, made = _file(ROOT_NODE + 1, 0, b"note 0 of directory 1 of store 1\n")
        entries = [msgspec.structs.replace(made, mode=mode) for mode in (0o644, 0o600)]
        template = _changed_file(store, 2, 0, 1)
        commits = [
            msgspec.structs.replace(
                template,
                changes=[_change(ChangeKind.MODIFIED, name, entry)],
                rows=[RowChange(ROOT_NODE, name, entry)],
                contents={},
            )
            for entry in entries
        ]
        for first in range(2, versions + 1, _VERSIONS_A_TRANSACTION):
            last = min(first + _VERSIONS_A_TRANSACTION, versions + 1)

            def change(writer: Writer, numbers: range = range(first, last)) -> None:
                for number in numbers:
                    commit.apply(writer, commits[number % 2])

            repository.transact(change)


def with_edited_file(state: str, versions: int, lines: int) -> None:
    """A store `STATE` with one file, `file.md`, of `lines` lines, one of which each version changed."""
    with Repository.open(state, write="the bench") as repository:
        store = repository.transact(lambda writer: catalog.create(writer, STATE, now=time.time_ns()))

        def write(writer: Writer) -> None:
            for content in edited_versions(versions, lines):
                commit.apply(writer, _edited_file(store, content))

        repository.transact(write)


def edited_versions(versions: int, lines: int) -> Iterator[bytes]:
    """The contents of that file, one after the other."""
    text = [b"line %d as it was at first\n" % number for number in range(lines)]
    for version in range(versions):
        text[version * 37 % lines] = b"line %d as of version %d\n" % (version * 37 % lines, version)
        yield b"".join(text)


def _edited_file(store: Store, content: bytes) -> Commit:
    _, entry = _file(ROOT_NODE + 1, 0, content)
    return msgspec.structs.replace(
        _files(store, ROOT_NODE, 0),
        changes=[_change(ChangeKind.MODIFIED, b"file.md", entry)],
        rows=[RowChange(ROOT_NODE, b"file.md", entry)],
        next_node=ROOT_NODE + 2,
        contents={entry.digest: content},
    )


def with_few_changes(state: str, directories: int, files: int, changed: int) -> None:
    """A store `STATE` of very many files, and a newest version that changed `changed` of them."""
    with_stores(state, 0, 0, directories, files)
    with Repository.open(state, write="the bench") as repository:

        def change(writer: Writer) -> None:
            store = catalog.named(writer, STATE)
            tree = HeadTree(writer, store)
            changes, rows, contents = [], [], {}
            for path, content in (changed_note(*note) for note in wide_notes(directories, files)[:changed]):
                above, _, name = path.rpartition(b"/")
                parent, old = resolve(tree, above), resolve(tree, path)
                assert parent is not None
                assert old is not None
                digest = hashlib.sha256(content).digest()
                entry = msgspec.structs.replace(old, digest=digest, size=len(content))
                changes.append(_change(ChangeKind.MODIFIED, path, entry))
                rows.append(RowChange(parent.node, name, entry))
                contents[digest] = content
            template = _files(store, ROOT_NODE, 0)
            commit.apply(
                writer, msgspec.structs.replace(template, changes=changes, rows=rows, contents=contents)
            )

        repository.transact(change)


def wide_notes(directories: int, files: int) -> list[tuple[bytes, bytes]]:
    """(path, content) of the files of such a store, those that change first in the first directory."""
    return [
        (b"topic-%03d/note-%04d.md" % (directory, number), b"note %d of topic %d\n" % (number, directory))
        for directory in range(directories)
        for number in range(files)
    ]


def changed_note(path: bytes, content: bytes) -> tuple[bytes, bytes]:
    """What it holds afterwards."""
    return path, content + b"and one line more\n"


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
