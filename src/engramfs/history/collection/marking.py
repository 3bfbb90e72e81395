"""Which contents are needed: those that a row of `history` or `live` names, of whatever store.

Rows that are added meanwhile are not seen; who writes the log notes what they name (`in_use`).
"""

from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from engramfs.model.entry import EMPTY_DIGEST
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Engine, Row, Table

Step = Callable[[int], None]  # gets how many rows were gone through since

_ROWS = 5000  # in one read transaction


class _Beginning(msgspec.Struct, array_like=True, gc=False):
    """The beginning of an entry, up to its digest: the rest need not be decoded."""

    node: int
    kind: int
    mode: int
    size: int
    mtime: int
    ctime: int
    digest: bytes = b""


_decode = msgspec.msgpack.Decoder(_Beginning).decode


class Marks(msgspec.Struct):
    """`whole` are those of `needed` that shall be no delta: what is live, and what a name held last."""

    needed: set[bytes]
    whole: set[bytes]


def mark(engine: Engine, step: Step) -> Marks:
    """Go through all trees and all history."""
    marks = Marks({EMPTY_DIGEST}, {EMPTY_DIGEST})
    last, stem = b"", b""
    for key, digest, size in named(engine, Table.HISTORY, step):
        if key[:-8] != stem:
            marks.whole.add(last)
            last, stem = b"", key[:-8]
        if digest:
            marks.needed.add(digest)
            last = digest if size >= blobs.SMALLEST_DELTA else last
    marks.whole.add(last)
    for _, digest, _ in named(engine, Table.LIVE, step):
        marks.needed.add(digest)
        marks.whole.add(digest)
    marks.needed.discard(b"")
    marks.whole.discard(b"")
    return marks


def named(engine: Engine, table: Table, step: Step) -> Iterator[tuple[bytes, bytes, int]]:
    """The key of each row, the digest of its content, empty where there is none, and its size."""
    start = b""
    while True:
        rows = _batch(engine, table, start)
        for key, value in rows:
            if value == keys.TOMBSTONE:
                yield key, b"", 0
            else:
                entry = _decode(value)
                yield key, entry.digest, entry.size
        step(len(rows))
        if len(rows) < _ROWS:
            return
        start = rows[-1][0] + b"\0"


def _batch(engine: Engine, table: Table, start: bytes) -> list[Row]:
    with engine.reading() as reader:
        return list(islice(reader.scan(table, start, b"\xff" * 5), _ROWS))


def unneeded(engine: Engine, marks: Marks, step: Step) -> list[bytes]:
    """The contents in the log that are not needed, those that were never finished included.

    A delta comes before its base, so that there is never one without.
    """
    found: dict[bytes, None] = {}
    start = b""
    while True:
        with engine.reading() as reader:
            batch = list(islice(reader.keys(Table.BLOBS, start, b"\xff" * 37), _ROWS))
        found |= dict.fromkeys(key[:-4] for key in batch if key[:-4] not in marks.needed)
        step(len(batch))
        if len(batch) < _ROWS:
            break
        start = batch[-1] + b"\0"
    bases: dict[bytes, set[bytes]] = {}
    for key, base in deltas(engine).items():
        if blobs.is_base(base):
            bases.setdefault(key[:-4], set()).add(base)
    return _dependents_first(found, bases)


def deltas(engine: Engine) -> dict[bytes, bytes]:
    """The table of that name."""
    found: dict[bytes, bytes] = {}
    start = b""
    while True:
        with engine.reading() as reader:
            rows = list(islice(reader.scan(Table.DELTAS, start, b"\xff" * 37), _ROWS))
        found |= dict(rows)
        if len(rows) < _ROWS:
            return found
        start = rows[-1][0] + b"\0"


def _dependents_first(found: dict[bytes, None], bases: dict[bytes, set[bytes]]) -> list[bytes]:
    ordered: list[bytes] = []
    dependents = dict.fromkeys(found, 0)
    for digest in found:
        for base in bases.get(digest, ()):
            if base in dependents:
                dependents[base] += 1
    free = [digest for digest, count in dependents.items() if not count]
    while free:
        digest = free.pop()
        ordered.append(digest)
        for base in bases.get(digest, ()):
            if base in dependents:
                dependents[base] -= 1
                if not dependents[base]:
                    free.append(base)
    return ordered
