"""How far the index is, as it is kept in the index itself, in one commit with what it describes."""

import msgspec


class StoreState(msgspec.Struct, frozen=True, array_like=True):
    """What of a store's log tells that the index has missed something."""

    number: int  # of the head that is indexed
    oldest: int = 1  # as in the head: versions below it may be gone
    redactions: int = 0  # bytes of the store's rows in `redacted`


class IndexState(msgspec.Struct, frozen=True, array_like=True):
    """`position` is the sequence of the feed up to which everything is indexed.

    `last` is the row of the feed there and the chained digest of its version: the index is of this log, and
    not of one that was put in its place.
    """

    position: int = 0
    last: tuple[int, int, bytes] = (0, 0, b"")  # store, number, digest
    stores: dict[int, StoreState] = {}
    replaced: int = 0  # passages that are gone but whose terms may still be in the files
    must_forget: bool = False  # among them are some that have to go at once


encode_state = msgspec.msgpack.Encoder().encode
decode_state = msgspec.msgpack.Decoder(IndexState).decode
