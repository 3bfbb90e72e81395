"""The names that an actor gave to directories of a store, or in what was pending for it, each of which is one
redaction to make.

They come in the order in which they can be redacted: what lies in a directory before the directory, since its
path leads through that name, and the newest first, since what lies there came later.
"""

from collections.abc import Iterator

import msgspec

from engramfs.errors import NotFound, Redacted, Refused
from engramfs.history import catalog, log, pending
from engramfs.history.authorship import Actor, versions_of
from engramfs.history.directory_target import find_directory, find_pending_directory
from engramfs.model.entry import Kind
from engramfs.model.store import Store
from engramfs.model.version import ChangeKind
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Table

replace = msgspec.structs.replace


class NamedDirectory(msgspec.Struct, frozen=True):
    """The first version of the actor's that gave this name in this directory.

    The head may have it (`at_head`), or what `waits` for a decision; `lost` when nothing leads to it.
    """

    number: int
    path: bytes
    pending: bool = False  # `number` is that of what was pending
    at_head: bool = False
    waits: bool = False
    lost: bool = False


def named_directories(engine: Engine, store: Store, actor: Actor) -> list[NamedDirectory]:
    """Those that are not redacted yet; first what only something pending has, which lies below the others."""
    seen: set[tuple[int, bytes]] = set()
    own = list(_of(engine, store, store, actor, seen))
    with engine.reading() as reader:
        forks = list(catalog.forks(reader, store.id))
    offered = [one for fork in forks for one in _of(engine, store, fork, actor, seen)]
    return _in_order(offered) + _in_order(own)


def _in_order(found: list[NamedDirectory]) -> list[NamedDirectory]:
    return sorted(found, key=lambda one: (one.number, one.path.count(b"/")), reverse=True)


def _of(
    engine: Engine, store: Store, log_of: Store, actor: Actor, seen: set[tuple[int, bytes]]
) -> Iterator[NamedDirectory]:
    """Those of `store`, or of one of its forks, which were not seen yet."""
    for reader, version in versions_of(engine, log_of):
        offered = pending.of_version(reader, log_of, version.number) if log_of.base else None
        if not actor.made(version) or (log_of.base and offered is None):
            continue
        number = offered.number if offered is not None else version.number
        for path in _paths(reader, log_of, version.number):
            one = NamedDirectory(number, path, pending=offered is not None)
            if (named := _looked_up(reader, store, one, seen)) is not None:
                yield named


def _paths(reader: Reader, store: Store, number: int) -> Iterator[bytes]:
    """The directories that a version made or renamed."""
    for change in log.changes(reader, store.id, number):
        gives_a_name = change.op in (ChangeKind.CREATED, ChangeKind.RENAMED)
        if change.kind is Kind.DIRECTORY and gives_a_name and change.path:
            yield change.path


def _looked_up(
    reader: Reader, store: Store, one: NamedDirectory, seen: set[tuple[int, bytes]]
) -> NamedDirectory | None:
    """With what stands against its redaction; None for one that was seen, or redacted."""
    find = find_pending_directory if one.pending else find_directory
    try:
        place = find(reader, store, one.number, one.path)
    except Redacted:
        return None
    except NotFound:
        return replace(one, lost=True)
    except Refused:
        return replace(one, at_head=True)
    if place is None:
        return one
    parent, name = place[0], one.path.rpartition(b"/")[2]
    if (parent, name) in seen:
        return None
    seen.add((parent, name))
    at_head, *waits = (
        reader.get(Table.LIVE, keys.live(each.id, parent, name)) is not None
        for each in (store, *catalog.forks(reader, store.id))
    )
    return replace(one, at_head=at_head, waits=any(waits))
