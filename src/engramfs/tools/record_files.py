"""Where the records of an actor are: found by id, read and listed, in its store as of now."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from engramfs.client.drafts import pending_drafts
from engramfs.errors import NotFound, NotUnique, UsageError
from engramfs.history import catalog, log
from engramfs.history.tree import Tree, resolve, walk
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable, raw
from engramfs.model.record import DIRECTORY, Record, parse
from engramfs.model.times import format_time
from engramfs.search import Drafts
from engramfs.storage import blobs
from engramfs.storage.protocol import Reader
from engramfs.tools.reach import Reach

_CATEGORY = re.compile(r"\w[\w .+-]{0,63}")
_VERSIONS = 1000  # that are looked at one by one


def checked_category(category: str) -> str:
    """`category` if it can be a directory. Raises `UsageError`."""
    if not _CATEGORY.fullmatch(category) or category.endswith((".", " ")):
        raise UsageError(f"category {category!r} is not allowed; use up to 64 letters, digits, - and _")
    return category


class Kept(NamedTuple):
    """A record, with the path and the digest of its file."""

    record: Record
    path: str
    digest: str


class Changed(NamedTuple):
    """At the head `version` and a position of the feed; a record is None where it is gone."""

    version: int
    position: int
    records: dict[str, Record | None]


class RecordFiles:
    """The records in the memory of the session's actor."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self.attachment = reach.memory()

    @property
    def store(self) -> str:
        return self.attachment.store

    def get(self, identifier: str) -> Kept:
        """The record of that id: the name of its file. Raises `NotFound`, and `NotUnique` for several."""
        with self._reach.tree(self.attachment) as (reader, _, tree):
            found = _named(tree, identifier)
            if len(found) > 1:
                paths = ", ".join(sorted(found))
                raise NotUnique(f"there are several records {identifier}: {paths}; rename all but one")
            for path, entry in found.items():
                return Kept(_read(reader, entry, path), path, entry.digest.hex())
        raise NotFound(f"there is no record {identifier}; memory_search finds records")

    def at(self, path: str) -> Record | None:
        """The record whose file is at `path` in the log."""
        with self._reach.tree(self.attachment, sealed=False) as (reader, _, tree):
            return self._now(reader, tree, path)

    def every(self) -> Iterator[tuple[str, Record]]:
        """All of them, by their paths."""
        with self._reach.tree(self.attachment) as (reader, _, tree):
            for path, entry in walk(tree, DIRECTORY.encode()):
                if entry.kind is Kind.FILE and path.endswith(b".md"):
                    yield printable(path), _read(reader, entry, printable(path))

    def changed_since(self, position: int) -> Changed:
        """The records of versions that came into the log after that position of the feed, as they are now.

        Of many versions the newest are looked at.
        """
        with self._reach.tree(self.attachment) as (reader, head, tree):
            newest = log.feed_position(reader)
            store = catalog.named(reader, self.store).id
            paths: dict[str, None] = {}
            for store_id, number in log.feed(reader, max(position, newest - _VERSIONS) + 1, newest):
                if store_id == store:
                    paths |= dict.fromkeys(_touched(reader, store, number))
            return Changed(head, newest, {path: self._now(reader, tree, path) for path in paths})

    def _now(self, reader: Reader, tree: Tree, path: str) -> Record | None:
        entry = resolve(tree, raw(path))
        return _read(reader, entry, path) if entry is not None and entry.kind is Kind.FILE else None

    def waiting(self) -> Drafts:
        """The records that the session wrote and that wait for approval; nothing where it need not ask."""
        with self._reach.client.reading(sealed=False) as reader:
            return pending_drafts(reader, self.attachment, DIRECTORY)


def _touched(reader: Reader, store: int, number: int) -> Iterator[str]:
    """The paths of records that a version changed, or gave another name."""
    for change in log.changes(reader, store, number):
        for path in (change.path, change.from_path):
            if path and path.startswith(f"{DIRECTORY}/".encode()) and path.endswith(b".md"):
                yield printable(path)


def _named(tree: Tree, identifier: str) -> dict[str, Entry]:
    """The files that are the record of that id, by path: where tools put one, or where a person did."""
    try:
        name = raw(f"{identifier}.md")
    except UnicodeEncodeError:
        return {}
    if not identifier or b"/" in name or b"\0" in name:
        return {}
    at_hand = {
        f"{DIRECTORY}/{printable(category)}/{identifier}.md": tree.lookup(entry.node, name)
        for category, entry in _directories(tree)
    }
    found = {path: entry for path, entry in at_hand.items() if entry is not None and entry.kind is Kind.FILE}
    return found or {
        printable(path): entry
        for path, entry in walk(tree, DIRECTORY.encode())
        if entry.kind is Kind.FILE and path.rpartition(b"/")[2] == name
    }


def _directories(tree: Tree) -> list[tuple[bytes, Entry]]:
    records = resolve(tree, DIRECTORY.encode())
    if records is None or records.kind is not Kind.DIRECTORY:
        return []
    return [(name, entry) for name, entry in tree.children(records.node) if entry.kind is Kind.DIRECTORY]


def _read(reader: Reader, entry: Entry, path: str) -> Record:
    """Where a person wrote it without times, they are those of its file."""
    record = parse(blobs.read(reader, entry.digest, entry.size).decode(errors="replace"), path)
    created = record.created or record.updated or format_time(entry.mtime)
    return msgspec.structs.replace(record, created=created, updated=record.updated or created)
