"""The canonical schema: every key and value family, its sentinels and invariants.

All integers in keys are big-endian and unsigned, so that byte order is number order. Values are
MessagePack of the structs in `engramfs.model` unless said otherwise. LMDB keys end at 511 bytes; the
longest here is a row of `history`: 4 + 5 + 255 + 1 + 8 = 273.

    meta      b"schema"                        → u32 SCHEMA, the version of this page
              b"next_store"                    → u32, the next store id (ids are never given twice)
              b"next_feed"                     → u64
              b"collected"                     → u64, nanoseconds since 1970: the end of the last collection
              b"residue"                       → 8 bytes, new with each removal; until the file is wiped
              b"secrets"                       → see `engramfs.history.hygiene.newest`
    stores    store u32                        → Store
    names     name, UTF-8                      → store u32
    heads     store u32                        → Head
    versions  store u32, number u64            → Version (the header)
    changes   store u32, number u64, part u16  → list of up to CHANGES_PER_PART Change, sorted by path
    live      store u32, parent u40, name      → Entry: the tree at the head
    history   store u32, parent u40, name, NUL, number u64
                                               → Entry, or TOMBSTONE: what the name stood for from then on
    nodes     store u32, node u40, parent u40, name
                                               → b"": each place that the node has, or ever had
    blobs     digest (32 bytes), part u32      → see `engramfs.storage.blobs`
    deltas    digest, part u32                 → digest of the content to whose part the row in `blobs` is a
                                                 delta; with UNWORTHY after it, of one that was tried in vain
    feed      sequence u64                     → (store, number): each version of each store, as sealed
    pending   store u32, number u64            → Pending: what waits for a person, or was decided
              store u32, FORK + fork u64       → b"": a fork of the store
              fork u32, OFFERED + version u64  → number u64 of the Pending that offers that version
              0 u32, store u32, number u32     → b"": a Pending that is open
    redacted  store u32, number u64            → list of Redaction: what was taken out of that version

Invariants (what `engramfs verify` checks):

 1. A store's root directory is the row with parent 0 and an empty name; it may be missing while nobody
    changed the root's mode.
 2. `live` is `history` at the head, but for what makes no version: `live` may have newer times, another
    number of links, and, for a file that was saved anew with the same bytes, another node id. A row of
    `history` is of a version that exists, or of one below `Head.oldest`; of those, a name has the rows
    that the trees from there on are made of, and those of older versions that a session is pinned to.
 3. A name holds no NUL and no `/`, so in `history` all rows of a name stand together, and before those
    of a longer name.
 4. `versions` has the numbers `Head.oldest` to `Head.number` without a gap, each chained to the one before,
    the last with `Head.digest`; of lower ones, those that brought what is live, which prove themselves
    alone. The digest of the parts of `changes` is the header's `changes_digest`, or, of a version in
    `redacted`, what the last redaction there says; of one that lost its message, so is the digest of the
    header. `redacted-NODE` is a directory whose name was redacted.
 5. Each digest in `live` and `history` is in `blobs`, whole, but for the empty content, which has no row,
    and for redacted files, which have no digest and are in `history` alone. What is live is no delta; a
    delta leads to what is none over at most `engramfs.storage.blobs.DELTAS` others.
 6. Node ids in `live` and `history` are below `Head.next_node`.
 7. `nodes` has a row for each (node, parent, name) in `live` and `history`; the root needs none.
 8. A directory that holds a row of `live` is itself in `live`; `links` is the number of names of the node.
 9. `feed` has the versions of each store in order, each once. Those of deleted stores and removed versions
    stay.
10. A store with a `base` is a fork: it has the base's name and no row in `names`, its rows are only those
    in which it differs from the base, and a row of `live` may be TOMBSTONE, for a name of the base that is
    gone there. A name without a row is the base's: of `live` at its head, of a version at `Pending.base`.
    Node ids are the base's, so those of a fork are below the larger of both `Head.next_node`.
11. Each version of a fork has one Pending, of its base. Its rows count in later trees of the fork until it
    was approved (from the base `result` on they are the base's) or rejected (after `until`).

Schema 2 added `pending`, `redacted` and `deltas`, and fields at the end of Store and Head, whose defaults
are what schema 1 meant; `engramfs.history.migration` brings a state of schema 1 here.
"""

import struct

SCHEMA = 2
SCHEMA_KEY = b"schema"
NEXT_STORE_KEY = b"next_store"
NEXT_FEED_KEY = b"next_feed"
COLLECTED_KEY = b"collected"
RESIDUE_KEY = b"residue"
SECRETS_KEY = b"secrets"
TOMBSTONE = b""
UNWORTHY = b"-"
CHANGES_PER_PART = 256
NO_PARENT = 0  # the parent of a root directory
FORK, OFFERED = 1 << 63, 1 << 62  # above every number of a Pending

_U32 = struct.Struct(">I")
_U64 = struct.Struct(">Q")
_U32_U64 = struct.Struct(">IQ")
_U32_U64_U16 = struct.Struct(">IQH")


def u32(value: int) -> bytes:
    return _U32.pack(value)


def u64(value: int) -> bytes:
    return _U64.pack(value)


def read_u32(value: bytes) -> int:
    return int(_U32.unpack(value)[0])


def read_u64(value: bytes) -> int:
    return int(_U64.unpack(value)[0])


def version(store: int, number: int) -> bytes:
    return _U32_U64.pack(store, number)


def pending(store: int, number: int) -> bytes:
    return _U32_U64.pack(store, number)


def open_pending(store: int, number: int) -> bytes:
    return _U32.pack(0) + _U32.pack(store) + _U32.pack(number)


def split_open(key: bytes) -> tuple[int, int]:
    """(store, number) of the row of an open Pending."""
    return read_u32(key[4:8]), read_u32(key[8:])


def changes(store: int, number: int, part: int) -> bytes:
    return _U32_U64_U16.pack(store, number, part)


def directory(store: int, parent: int) -> bytes:
    """The prefix of a directory's rows in `live` and `history`."""
    return _U32.pack(store) + parent.to_bytes(5, "big")


def live(store: int, parent: int, name: bytes) -> bytes:
    return _U32.pack(store) + parent.to_bytes(5, "big") + name


def history(store: int, parent: int, name: bytes, number: int) -> bytes:
    return live(store, parent, name) + b"\0" + _U64.pack(number)


def split_history(key: bytes) -> tuple[int, bytes, int]:
    """(parent, name, number) of a row of `history`."""
    return int.from_bytes(key[4:9], "big"), key[9:-9], read_u64(key[-8:])


def split_live(key: bytes) -> tuple[int, bytes]:
    """(parent, name) of a row of `live`."""
    return int.from_bytes(key[4:9], "big"), key[9:]


def node(store: int, node_id: int) -> bytes:
    """The prefix of a node's rows in `nodes`."""
    return _U32.pack(store) + node_id.to_bytes(5, "big")


def place(store: int, node_id: int, parent: int, name: bytes) -> bytes:
    return node(store, node_id) + parent.to_bytes(5, "big") + name


def split_place(key: bytes) -> tuple[int, int, bytes]:
    """(node, parent, name) of a row of `nodes`."""
    return int.from_bytes(key[4:9], "big"), int.from_bytes(key[9:14], "big"), key[14:]


def blob(digest: bytes, part: int) -> bytes:
    return digest + _U32.pack(part)


def after(prefix: bytes) -> bytes:
    """The first key above all that begin with `prefix`."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else b"\xff" * 511
