"""To which newer content each superseded one is to be a delta.

The contents that a name held, one after the other, are a sequence; the last of it stays whole, and so does
whatever is live somewhere. Each other one is a delta to a newer one of its sequence. Which, is decided as in
a skip list: a content has a level, the number of zero bits at the end of its digest, and leads to the next
newer one of a higher level, or, where there is none, to the last.

So a chain has few links however long the sequence is (levels rise along it, and `LEVELS` bounds them), a
third of all contents lead to their direct successor, chains have no cycles across sequences, and when a newer
content comes only those few lead elsewhere that led to the last.
"""

from collections.abc import Iterator
from itertools import groupby

import msgspec

from engramfs.history.collection.marking import Marks, Step, named
from engramfs.storage import blobs
from engramfs.storage.protocol import Engine, Table

LEVELS = blobs.DELTAS - 1


class Wanted(msgspec.Struct, frozen=True):
    """The base that a content is to lead to, and how many parts the content has."""

    base: bytes
    parts: int


def level(digest: bytes) -> int:
    number = int.from_bytes(digest[-4:], "big") | 1 << (LEVELS - 1)
    return (number & -number).bit_length() - 1


def lay_out(engine: Engine, marks: Marks, step: Step) -> dict[bytes, Wanted]:
    """What is to be a delta, bases before what leads to them.

    Where a content is in several sequences, the first decides. What is small is left out.
    """
    wanted: dict[bytes, Wanted] = {}
    for _, rows in groupby(named(engine, Table.HISTORY, step), key=_stem):
        named_here = [(digest, size) for _, digest, size in rows if digest and size >= blobs.SMALLEST_DELTA]
        sizes = dict(named_here)
        for digest, base in _leading([digest for digest, _ in named_here]):
            # Rows that came or went since the marks were made must not let a chain go anywhere but up.
            ends = level(base) > level(digest) or base in marks.whole
            if ends and digest in marks.needed and digest not in marks.whole:
                wanted.setdefault(digest, Wanted(base, blobs.count_parts(sizes[digest])))
    return dict(sorted(wanted.items(), key=lambda item: -level(item[0])))


def _stem(row: tuple[bytes, bytes, int]) -> bytes:
    return row[0][:-8]


def _leading(sequence: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """(content, the one that it leads to), newest first; what came back stands where it was last."""
    newest_first = list(dict.fromkeys(reversed(sequence)))
    if not newest_first:
        return
    higher = [newest_first[0]]  # the last of the sequence, and those with a higher level than all after them
    for digest in newest_first[1:]:
        while len(higher) > 1 and level(higher[-1]) <= level(digest):
            higher.pop()
        yield digest, higher[-1]
        higher.append(digest)
