"""Where the head and the index differ, file by file, below the paths that were touched.

Only the head is compared, never what a version says of a file, so that the same work done twice does no
harm: what an interrupted run has indexed is equal by now.
"""

import msgspec

from engramfs.history.tree import HeadTree, path_to, places, walk
from engramfs.model.entry import Entry, Kind
from engramfs.model.store import Store
from engramfs.search.log_changes import LogChanges
from engramfs.search.snapshot import Snapshot
from engramfs.storage.protocol import Reader


class NewFile(msgspec.Struct, frozen=True):
    """A file of a head whose content is not indexed."""

    store: int
    path: bytes
    entry: Entry
    replaces: int  # passages of an older content


class Differences(msgspec.Struct, frozen=True):
    new: list[NewFile]
    removed: list[tuple[int, bytes, int]]  # store, path, number of passages


def differences(reader: Reader, snapshot: Snapshot, changes: LogChanges) -> Differences:
    new: list[NewFile] = []
    removed: list[tuple[int, bytes, int]] = []
    for identifier, paths in changes.paths.items():
        store = changes.stores[identifier]
        files = _files(reader, store, paths)
        indexed: dict[bytes, tuple[bytes, int]] = {}
        for path in {*paths, *_linked(files)}:
            indexed |= snapshot.digests(identifier, path)
        for path, entry in files.items():
            digest, count = indexed.pop(path, (None, 0))
            if digest != entry.digest:
                new.append(NewFile(identifier, path, entry, count))
        removed += [(identifier, path, count) for path, (_, count) in indexed.items()]
    return Differences(new, removed)


def _linked(files: dict[bytes, Entry]) -> list[bytes]:
    return [path for path, entry in files.items() if entry.links > 1]


def _files(reader: Reader, store: Store, paths: list[bytes]) -> dict[bytes, Entry]:
    """The files of the head at and below `paths`, and what else their nodes are called."""
    tree = HeadTree(reader, store)
    found: dict[bytes, Entry] = {}
    for path in paths:
        for where, entry in walk(tree, path):
            if entry.kind is not Kind.FILE:
                continue
            found[where] = entry
            if entry.links > 1:
                for parent, name, same in places(reader, store.id, tree, entry.node):
                    found[path_to(tree, parent, name)] = same
    return found
