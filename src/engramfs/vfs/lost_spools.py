"""What a fresh start drops: bytes that were written, and not closed, when everything of engramfs was killed.

Found while the journal is replayed, before anything of that is sealed: then the trees have files that were
new as well. Which view an inode was of is known from the run directory, unless that is gone as well.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby

import msgspec

from engramfs.errors import EngramError
from engramfs.model.entry import NODE_BITS, NODE_MASK
from engramfs.model.names import printable
from engramfs.vfs.fork import Fork
from engramfs.vfs.live_store import LiveStore
from engramfs.vfs.losing import CLOSED, NOT_CLOSED, dropped
from engramfs.vfs.node import Node
from engramfs.vfs.spool import Spool
from engramfs.vfs.view_numbers import Key

StoreOf = Callable[[Key], LiveStore | None]  # the store, or fork, of a view that could be written to

_NAME = re.compile(r"([0-9a-f]+)-(?:[0-9a-f]{64})?-\d+")
_UNKNOWN = "a file whose name is not known any more"


class LostFile(msgspec.Struct, frozen=True, order=True):
    """`store` and `session` are empty where nothing is known of the view, and `path` of the file."""

    store: str
    session: str
    is_closed: bool  # there was no room to record what was closed
    path: str


def lost_files(directory: str, views: Mapping[int, Key], store_of: StoreOf) -> Iterator[LostFile]:
    """The files that have a name, and of which a spool in `directory` has bytes that are nowhere else."""
    for name in sorted(os.listdir(directory)):
        match = _NAME.fullmatch(name)
        if match is not None:
            inode = int(match[1], 16)
            key = views.get(inode >> NODE_BITS)
            yield from _lost(directory, name, key, store_of(key) if key else None, inode & NODE_MASK)


def _lost(
    directory: str, name: str, key: Key | None, store: LiveStore | None, number: int
) -> Iterator[LostFile]:
    spool = Spool.adopt(directory, name)
    try:
        node = _node(store, number) if store is not None else None
        is_kept = node is not None and (not node.places or spool.digest() == node.entry.digest)
        if not spool.dirty or is_kept:
            return
        named = store.below.store.name if isinstance(store, Fork) else store.store.name if store else ""
        path = printable(store.tree.path_of(node)) if store is not None and node is not None else ""
        yield LostFile(named, str(key[1]) if key else "", spool.is_closed, path)
    finally:
        os.close(spool.descriptor)


def _node(store: LiveStore, number: int) -> Node | None:
    try:
        store.tree.load(number)
    except EngramError:  # what is damaged is said when somebody reads it
        return None
    return store.tree.nodes.get(number)


def described(lost: Iterable[LostFile]) -> Iterator[tuple[str, str]]:
    """What `status` says of them: a store, and what its session has lost."""
    for (store, session, is_closed), files in groupby(sorted(lost), _whose):
        names = [one.path or _UNKNOWN for one in files]
        yield store, dropped(session, names, CLOSED if is_closed else NOT_CLOSED)


def _whose(file: LostFile) -> tuple[str, str, bool]:
    return file.store, file.session, file.is_closed
