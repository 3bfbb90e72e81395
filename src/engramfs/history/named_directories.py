"""The names that an actor gave to directories of a store, each of which is one redaction to make.

They come in the order in which they can be redacted: what lies in a directory before the directory, since its
path leads through that name, and the newest first, since what lies there came later.
"""

from collections.abc import Iterator

import msgspec

from engramfs.errors import NotFound, Redacted, Refused
from engramfs.history import catalog, log
from engramfs.history.authorship import Actor, versions_of
from engramfs.history.directory_target import find_directory
from engramfs.model.entry import Kind
from engramfs.model.store import Store
from engramfs.model.version import ChangeKind
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Table


class NamedDirectory(msgspec.Struct, frozen=True):
    """The first version of the actor's that gave this name in this directory.

    The head may have it (`at_head`), or what `waits` for a decision; `lost` when nothing leads to it.
    """

    number: int
    path: bytes
    at_head: bool = False
    waits: bool = False
    lost: bool = False


def named_directories(engine: Engine, store: Store, actor: Actor) -> list[NamedDirectory]:
    """Those that are not redacted yet."""
    seen: set[tuple[int, bytes]] = set()
    found: list[NamedDirectory] = []
    for reader, version in versions_of(engine, store):
        if not actor.made(version):
            continue
        named = (
            _named(reader, store, version.number, path, seen)
            for path in _paths(reader, store, version.number)
        )
        found += [one for one in named if one is not None]
    return sorted(found, key=lambda one: (one.number, one.path.count(b"/")), reverse=True)


def _paths(reader: Reader, store: Store, number: int) -> Iterator[bytes]:
    """The directories that a version made or renamed."""
    for change in log.changes(reader, store.id, number):
        gives_a_name = change.op in (ChangeKind.CREATED, ChangeKind.RENAMED)
        if change.kind is Kind.DIRECTORY and gives_a_name and change.path:
            yield change.path


def _named(
    reader: Reader, store: Store, number: int, path: bytes, seen: set[tuple[int, bytes]]
) -> NamedDirectory | None:
    """None for one that was seen, or redacted."""
    try:
        place = find_directory(reader, store, number, path)
    except Redacted:
        return None
    except NotFound:
        return NamedDirectory(number, path, lost=True)
    except Refused:
        return NamedDirectory(number, path, at_head=True)
    if place is None:
        return NamedDirectory(number, path)
    parent, name = place[0], path.rpartition(b"/")[2]
    if (parent, name) in seen:
        return None
    seen.add((parent, name))
    at_head, *waits = (
        reader.get(Table.LIVE, keys.live(one.id, parent, name)) is not None
        for one in (store, *catalog.forks(reader, store.id))
    )
    return NamedDirectory(number, path, at_head=at_head, waits=any(waits))
