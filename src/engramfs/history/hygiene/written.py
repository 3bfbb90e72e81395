"""What a version writes, and what of it looks like a secret.

That is its message, and of each change the content, the name, where a symbolic link leads, and the extended
attributes: each as far as the version brought it. Of one version 64 MiB of contents are looked at, at most.
It needs the GIL, so a thread that looks at much pauses now and then, for the event loop's sake.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from engramfs.errors import Corrupt, Redacted
from engramfs.history import catalog, log
from engramfs.history.hygiene.detectors import is_available
from engramfs.history.hygiene.scanning import LOOKED_AT, Found, attribute_as_text, find, find_in_name
from engramfs.history.tree import decode_entry, resolve, version_tree
from engramfs.model.entry import EMPTY_DIGEST, Entry, Kind
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.model.version import Change, ChangeKind
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Reader, Table

if TYPE_CHECKING:
    from engramfs.history.commit import Commit

FLAG = "secret"
Where = Literal["content", "name", "target", "attribute", "message"]
_OF_A_VERSION = 64 << 20  # bytes of all contents of one version
_BETWEEN_PAUSES, _PAUSE = 64 << 10, 20e-6  # bytes, seconds


class FoundAt(msgspec.Struct, frozen=True):
    """Where in a version something looks like a secret. A message is at no path."""

    path: str
    line: int
    kind: str
    where: Where = "content"


class Suspects(msgspec.Struct, frozen=True):
    """How much of a commit looks like a secret; false when nothing does."""

    paths: int = 0  # with such a content, attribute or target, and files and links with such a name
    directories: int = 0  # with such a name
    message: bool = False

    def __bool__(self) -> bool:
        return bool(self.paths or self.directories or self.message)


def of_commit(reader: Reader, commit: "Commit") -> Suspects:
    """What looks like a secret in what is about to be a version."""
    if not commit.changes or not is_available():
        return Suspects()
    contents = _Contents(reader, commit.contents)
    paths: set[tuple[int, bytes]] = set()
    directories = 0
    for change in commit.changes:
        has_name = bool(_in_name_of(change))
        directories += has_name and change.kind is Kind.DIRECTORY
        if contents.of(change) or (has_name and change.kind is not Kind.DIRECTORY):
            paths.add((change.origin, change.path.rpartition(b"/")[2]))
    for row in commit.rows:
        if row.recorded and row.entry is not None and (row.entry.target or row.entry.xattrs):
            before = reader.get(Table.LIVE, keys.live(commit.store, row.parent, row.name))
            if any(_in_entry(row.entry, decode_entry(before) if before else None)):
                paths.add((row.entry.origin, row.name))
    return Suspects(len(paths), directories, bool(find_in_message(commit.message)))


def of_version(reader: Reader, store: Store, number: int) -> list[FoundAt]:
    """What looks like a secret in what a version wrote, as far as it is still there."""
    if not is_available():
        return []
    message = log.version(reader, store, number).message
    found = [FoundAt("", each.line, each.kind, "message") for each in find_in_message(message)]
    contents = _Contents(reader, {})
    for change in log.changes(reader, store.id, number):
        places: list[tuple[Where, list[Found]]] = [
            ("name", _in_name_of(change)),
            ("content", contents.of(change)),
            *_in_entry_of(reader, store, number, change),
        ]
        path = printable(change.path)
        found += [FoundAt(path, each.line, each.kind, where) for where, here in places for each in here]
    return found


def find_in_message(message: str) -> list[Found]:
    """What looks like a secret in what is said of a version, by line."""
    return find(message.encode("utf-8", "surrogatepass")) if message else []


def find_in_directories(changes: Iterable[Change]) -> bool:
    """Whether a name of a directory that was made or renamed looks like a secret."""
    return any(change.kind is Kind.DIRECTORY and _in_name_of(change) for change in changes)


def said_of(store: str, number: int) -> str:
    """What is said of a version with the flag."""
    return f"version {number} looks like it holds a secret; engramfs log {store} --flag {FLAG} says where"


class _Contents:
    """The contents that one version writes, each looked at once; those of `unsaved` are no blobs yet."""

    def __init__(self, reader: Reader, unsaved: Mapping[bytes, bytes]) -> None:
        self._reader = reader
        self._unsaved = unsaved
        self._known: dict[bytes, list[Found]] = {}
        self._left, self._since_pause = _OF_A_VERSION, 0

    def of(self, change: Change) -> list[Found]:
        if not _writes_content(change) or self._left <= 0:
            return []
        if change.digest not in self._known:
            content = self._unsaved.get(change.digest)
            content = _beginning(self._reader, change.digest) if content is None else content
            self._known[change.digest] = find(content)
            self._count(min(len(content), LOOKED_AT))
        return self._known[change.digest]

    def _count(self, size: int) -> None:
        self._left -= size
        self._since_pause += size
        if self._since_pause >= _BETWEEN_PAUSES:
            time.sleep(_PAUSE)
            self._since_pause = 0


def _writes_content(change: Change) -> bool:
    if change.op is ChangeKind.DELETED or change.kind is not Kind.FILE or change.is_redacted:
        return False
    return bool(change.digest) and change.digest not in (EMPTY_DIGEST, change.from_digest)


def _beginning(reader: Reader, digest: bytes) -> bytes:
    """The part of a blob that is looked at; nothing where the content is gone, which others report."""
    try:
        return blobs.part(reader, digest, 0)
    except (Corrupt, Redacted):
        return b""


def _in_name_of(change: Change) -> list[Found]:
    """In the name that something has from now on."""
    is_new = change.op in (ChangeKind.CREATED, ChangeKind.RENAMED)
    return find_in_name(change.path) if is_new and change.path else []


def _in_entry(entry: Entry, before: Entry | None) -> Iterator[tuple[Where, list[Found]]]:
    """In what the entry of a name holds, and that of `before` did not."""
    if entry.target and (before is None or entry.target != before.target) and (found := find(entry.target)):
        yield "target", found
    for attribute in entry.xattrs:
        is_new = before is None or attribute not in before.xattrs
        if is_new and (found := find(attribute_as_text(*attribute))):
            yield "attribute", found


def _in_entry_of(
    reader: Reader, store: Store, number: int, change: Change
) -> list[tuple[Where, list[Found]]]:
    """The same of a change. Of versions of which retention left only part, nothing is known of entries."""
    oldest = catalog.head(reader, store.id).oldest
    if change.op is ChangeKind.DELETED or change.is_redacted or number < oldest:
        return []
    entry = resolve(version_tree(reader, store, number), change.path)
    if entry is None or not (entry.target or entry.xattrs):
        return []
    before = resolve(version_tree(reader, store, number - 1), change.path) if number > oldest else None
    return list(_in_entry(entry, before))
