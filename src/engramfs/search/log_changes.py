"""What the log has that the index has not.

The feed names the versions that came, and their changes the paths: of each, everything at and below it is
looked at. A store whose changes cannot be relied on any more, since versions were redacted or collected, is
looked at whole, and so is every store by an index that is new.

Forks are never indexed: they have no name, and a name is how a store is found here.
"""

import hashlib

import msgspec

from engramfs.errors import NotFound
from engramfs.history import catalog, log
from engramfs.model.entry import Kind
from engramfs.model.store import Head, Store
from engramfs.model.version import ChangeKind
from engramfs.search.index_state import IndexState, StoreState
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table

_decode_feed = msgspec.msgpack.Decoder(tuple[int, int]).decode
_MANY = 1000  # paths of one store; with more of them the whole store is looked at
WHOLE = b""
_UNKNOWN = b"?"  # what a path shows of a directory that could not be found


class LogChanges(msgspec.Struct, frozen=True):
    """`paths`: store → where to look, no path below another. `state` is the index's once that is done."""

    state: IndexState
    stores: dict[int, Store]
    paths: dict[int, list[bytes]]
    gone: list[int]  # stores that are no more

    @property
    def is_nothing(self) -> bool:
        return not self.paths and not self.gone


def fingerprint(reader: Reader) -> bytes:
    """Another one whenever there may be something to look at; it costs a microsecond for each store."""
    seen = hashlib.blake2b(digest_size=16)
    for table in (Table.HEADS, Table.REDACTED):
        for key, value in reader.scan(table, b"", b"\xff" * 16):
            seen.update(key)
            seen.update(value if table is Table.HEADS else len(value).to_bytes(4, "big"))
    return seen.digest()


def is_of_this_log(reader: Reader, state: IndexState) -> bool:
    """Whether the index was made from this log, and not from one that a backup has replaced since."""
    if state.position == 0:
        return True
    if state.position > newest_position(reader):
        return False
    row = reader.get(Table.FEED, keys.u64(state.position))
    store, number, digest = state.last
    if row is not None and _decode_feed(row) != (store, number):
        return False
    version = reader.get(Table.VERSIONS, keys.version(store, number))
    return version is None or log.decode_version(version).digest == digest


def newest_position(reader: Reader) -> int:
    """The sequence of the newest version of all; 0 when there is none."""
    counter = reader.get(Table.META, keys.NEXT_FEED_KEY)
    return keys.read_u64(counter) - 1 if counter else 0


def log_changes(reader: Reader, state: IndexState) -> LogChanges:
    """What to look at, given how far the index is."""
    position = newest_position(reader)
    stores = {store.id: store for store in catalog.every(reader)}
    now = {identifier: _store_state(reader, identifier) for identifier in stores}
    touched = _touched(reader, state, set(stores))
    must_forget = state.must_forget
    for identifier, present in now.items():
        known = state.stores.get(identifier)
        if known == present:
            continue
        if known is None or _is_unreliable(known, present):
            touched[identifier] = {WHOLE}
            must_forget = must_forget or known is not None
    gone = [identifier for identifier in state.stores if identifier not in stores]
    return LogChanges(
        state=IndexState(
            position=position,
            last=_last(reader, position),
            stores=now,
            replaced=state.replaced,
            must_forget=must_forget or bool(gone),
        ),
        stores=stores,
        paths={identifier: _outermost(paths) for identifier, paths in touched.items()},
        gone=gone,
    )


def _is_unreliable(known: StoreState, present: StoreState) -> bool:
    return (
        present.number < known.number
        or present.oldest != known.oldest
        or present.redactions != known.redactions
    )


def _store_state(reader: Reader, store: int) -> StoreState:
    head: Head = catalog.head(reader, store)
    prefix = keys.u32(store)
    redactions = sum(len(value) for _, value in reader.scan(Table.REDACTED, prefix, keys.after(prefix)))
    return StoreState(head.number, head.oldest, redactions)


def _last(reader: Reader, position: int) -> tuple[int, int, bytes]:
    row = reader.get(Table.FEED, keys.u64(position))
    if row is None:
        return (0, 0, b"")
    store, number = _decode_feed(row)
    version = reader.get(Table.VERSIONS, keys.version(store, number))
    return (store, number, log.decode_version(version).digest if version is not None else b"")


def _touched(reader: Reader, state: IndexState, stores: set[int]) -> dict[int, set[bytes]]:
    """store → the paths that versions changed which the index does not know yet."""
    found: dict[int, set[bytes]] = {}
    if state.position == 0:
        return found
    rows = reader.scan(Table.FEED, keys.u64(state.position + 1), b"\xff" * 8)
    for _, value in rows:
        store, number = _decode_feed(value)
        paths = found.setdefault(store, set())
        if store in stores and paths != {WHOLE}:
            paths |= _paths(reader, store, number)
            if len(paths) > _MANY or WHOLE in paths:
                found[store] = {WHOLE}
    return {store: paths for store, paths in found.items() if store in stores and paths}


def _paths(reader: Reader, store: int, number: int) -> set[bytes]:
    """Where a version may have changed what is found. The whole store when that is not known any more."""
    paths: set[bytes] = set()
    if reader.get(Table.VERSIONS, keys.version(store, number)) is None:
        return {WHOLE}
    for change in log.changes(reader, store, number):
        if change.kind is Kind.DIRECTORY and change.op is not ChangeKind.RENAMED:
            continue  # what is in it has changes of its own
        paths.add(change.path)
        if change.from_path is not None:
            paths.add(change.from_path)
    return paths if not any(_UNKNOWN in path.split(b"/") for path in paths) else {WHOLE}


def _outermost(paths: set[bytes]) -> list[bytes]:
    if WHOLE in paths:
        return [WHOLE]
    return sorted(path for path in paths if not any(above in paths for above in _above(path)))


def _above(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:end]) for end in range(1, len(parts))]


def position_of(reader: Reader, store: int, number: int) -> int:
    """The sequence of a version in the feed. Raises `NotFound`."""
    wanted = (store, number)
    for key, value in reader.scan(Table.FEED, keys.u64(1), b"\xff" * 8, reverse=True):
        if _decode_feed(value) == wanted:
            return keys.read_u64(key)
    raise NotFound(f"version {number} of store number {store} is in no feed")
