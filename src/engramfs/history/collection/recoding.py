"""Superseded contents become deltas, and what is to be whole becomes so.

Compressing is done here, in the process that collects; a slice only puts the result in its place. Contents
are gone through bases first, so that at each moment every chain ends.
"""

from collections.abc import Callable, Iterator

from engramfs.errors import Corrupt
from engramfs.history.collection.layout import Wanted
from engramfs.history.collection.marking import Marks, Step, deltas
from engramfs.history.collection.slices import Recode
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Engine, Reader, Table

_WORTH = 0.5  # of what the row takes now
_BYTES = 256 << 10  # of one slice
_WHOLE = 4  # parts that are made whole by one slice, by whoever writes the log


def recodings(
    engine: Engine, marks: Marks, wanted: dict[bytes, Wanted], size: Callable[[], int], step: Step
) -> Iterator[list[Recode]]:
    """Slices of at most `size()` rows. `step` gets how many contents were gone through since."""
    known = deltas(engine)
    whole = [
        Recode(key[:-4], keys.read_u32(key[-4:]))
        for key, base in known.items()
        if blobs.is_base(base) and key[:-4] in marks.needed and key[:-4] not in wanted
    ]
    for start in range(0, len(whole), _WHOLE):
        yield whole[start : start + _WHOLE]
    waiting: list[Recode] = []
    for digest, want in wanted.items():
        for number in range(want.parts):
            present = known.get(keys.blob(digest, number), b"")
            if present not in (want.base, want.base + keys.UNWORTHY):
                waiting.append(_recode(engine, digest, number, want.base, is_delta=blobs.is_base(present)))
            if len(waiting) >= size() or sum(len(row.value) for row in waiting) >= _BYTES:
                yield waiting
                waiting = []
        step(1)
    if waiting:
        yield waiting


def _recode(engine: Engine, digest: bytes, number: int, base: bytes, *, is_delta: bool) -> Recode:
    """A part as a delta to that part of `base`, if that is worth it."""
    unworthy = Recode(digest, number, base)
    with engine.reading() as reader:
        plain, newer = _part(reader, digest, number), _part(reader, base, number)
        stored = len(reader.get(Table.BLOBS, keys.blob(digest, number)) or b"")
    if plain is None or newer is None:
        return unworthy
    value = blobs.pack_delta(plain, newer)
    present = len(blobs.pack(plain)) if is_delta else stored
    return Recode(digest, number, base, value) if len(value) <= present * _WORTH else unworthy


def _part(reader: Reader, digest: bytes, number: int) -> bytes | None:
    """None when there is no such part, or it is damaged: that is for `engramfs verify` to say."""
    try:
        return blobs.part(reader, digest, number)
    except Corrupt:
        return None
