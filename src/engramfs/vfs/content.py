"""Reading content out of nodes and blobs.

The kernel keeps the pages of what it has read, so a small content is read from the log once and not kept
here. Large ones are asked for in pieces of at most 128 KiB: their unpacked parts are kept, up to
`CACHED_PARTS`, so that each is unpacked once.
"""

from collections import OrderedDict

from engramfs.errors import Corrupt
from engramfs.model.entry import Entry
from engramfs.storage import blobs
from engramfs.storage.protocol import Engine

CACHED_PARTS = 24  # of 1 MiB
_SMALL = 128 << 10


class Contents:
    """Bytes by entry."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._parts: OrderedDict[tuple[bytes, int], bytes] = OrderedDict()

    def read(self, entry: Entry, offset: int, size: int) -> bytes:
        """Up to `size` bytes of a file's recorded content. Raises `Corrupt`."""
        end = min(entry.size, offset + size)
        if offset >= end:
            return b""
        first, last = offset // blobs.PART, (end - 1) // blobs.PART
        pieces = [self._part(entry, number) for number in range(first, last + 1)]
        whole = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        start = offset - first * blobs.PART
        return whole if not start and len(whole) == end - offset else whole[start : start + end - offset]

    def forget(self, digest: bytes) -> None:
        """Keep nothing of a content."""
        for key in [key for key in self._parts if key[0] == digest]:
            del self._parts[key]

    def _part(self, entry: Entry, number: int) -> bytes:
        key = (entry.digest, number)
        part = self._parts.get(key)
        if part is not None:
            self._parts.move_to_end(key)
            return part
        with self._engine.reading() as reader:
            part = blobs.part(reader, entry.digest, number)
        expected = min(blobs.PART, entry.size - number * blobs.PART)
        if len(part) != expected:
            raise Corrupt(f"blob {entry.digest.hex()} has a part of {len(part)} bytes instead of {expected}")
        if entry.size > _SMALL:
            self._parts[key] = part
            if len(self._parts) > CACHED_PARTS:
                self._parts.popitem(last=False)
        return part
