"""Names, stores and heads belong together, and the feed has each version once and in order."""

import msgspec

from engramfs.history import catalog
from engramfs.history.verify.batches import ROWS, in_batches
from engramfs.history.verify.report import Reporter
from engramfs.model.store import Head, Store
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Row, Table

_decode_feed = msgspec.msgpack.Decoder(tuple[int, int]).decode
_decode_store = msgspec.msgpack.Decoder(Store).decode
_decode_head = msgspec.msgpack.Decoder(Head).decode


def check_stores(engine: Engine, reporter: Reporter) -> None:
    """The tables `names`, `stores` and `heads`, and the counters in `meta`."""

    def check_rows(reader: Reader, rows: list[Row]) -> None:
        for key, value in rows:
            _check_store(reader, key, value, reporter)

    def check_names(reader: Reader, rows: list[Row]) -> None:
        for name, identifier in rows:
            if reader.get(Table.STORES, identifier) is None:
                reporter.add(name.decode("utf-8", "replace"), "the name has no store")

    in_batches(engine, Table.STORES, b"", b"\xff" * 5, check_rows, reporter.checked)
    in_batches(engine, Table.NAMES, b"", b"\xff", check_names, reporter.checked)
    with engine.reading() as reader:
        last = reader.at_or_before(Table.FEED, b"\xff" * 8)
        counter = reader.get(Table.META, keys.NEXT_FEED_KEY)
        if last is not None and (counter is None or keys.read_u64(counter) <= keys.read_u64(last[0])):
            reporter.add("", "the counter of the feed is not above its last entry")


def _check_store(reader: Reader, key: bytes, value: bytes, reporter: Reporter) -> None:
    try:
        store = _decode_store(value)
    except msgspec.MsgspecError as error:
        reporter.add("", f"the row of store number {keys.read_u32(key)} cannot be read ({error})")
        return
    if keys.u32(store.id) != key:
        reporter.add(store.name, f"store number {keys.read_u32(key)} says that it is {store.id}")
    if store.base:
        if reader.get(Table.PENDING, keys.pending(store.base, keys.FORK + store.id)) is None:
            reporter.add(store.name, f"fork {store.id} cannot be found by the store below it")
        if reader.get(Table.STORES, keys.u32(store.base)) is None:
            reporter.add(store.name, f"the store below fork {store.id} does not exist")
    elif reader.get(Table.NAMES, store.name.encode()) != key:
        reporter.add(store.name, "the store cannot be found by its name")
    head = reader.get(Table.HEADS, key)
    if head is None:
        reporter.add(store.name, "the store has no head")
    else:
        try:
            _decode_head(head)
        except msgspec.MsgspecError as error:
            reporter.add(store.name, f"its head cannot be read ({error})")
    counter = reader.get(Table.META, keys.NEXT_STORE_KEY)
    if counter is None or keys.read_u32(counter) <= store.id:
        reporter.add(store.name, "its number may be given out again: the counter of stores is too low")


def check_feed(engine: Engine, stores: list[Store], reporter: Reporter) -> None:
    """The feed has versions 1, 2, 3 … of each store in this order, up to its head.

    A store that came out of a backup has those alone that retention had left.
    """
    names = {store.id: store.name for store in stores}
    newest = dict.fromkeys(names, 0)

    def check(reader: Reader, rows: list[Row]) -> None:
        for key, value in rows:
            try:
                store, number = _decode_feed(value)
            except msgspec.MsgspecError as error:
                reporter.add("", f"entry {keys.read_u64(key)} of the feed cannot be read ({error})")
                continue
            if store in names:
                if number != newest[store] + 1 and not _may_follow(reader, store, newest[store], number):
                    reporter.add(names[store], f"the feed has version {number} after {newest[store]}")
                newest[store] = number
        if len(rows) < ROWS:
            _check_ends(reader, names, newest, reporter)

    in_batches(engine, Table.FEED, b"", b"\xff" * 9, check, reporter.checked)


def _may_follow(reader: Reader, store: int, before: int, number: int) -> bool:
    head = reader.get(Table.HEADS, keys.u32(store))
    return head is not None and before < number <= _decode_head(head).oldest


def _check_ends(reader: Reader, names: dict[int, str], newest: dict[int, int], reporter: Reporter) -> None:
    for store, name in names.items():
        if reader.get(Table.HEADS, keys.u32(store)) is None:
            continue  # deleted meanwhile, or reported by `check_stores`
        head = catalog.head(reader, store).number
        if newest[store] != head:
            reporter.add(name, f"the feed ends with version {newest[store]}, the head is version {head}")
