"""Content, named by its SHA-256 digest, kept in parts of at most `PART` bytes.

A row of the table `blobs` is: codec (1 byte), CRC-32 of the plain bytes (u32, big-endian), then the
bytes, raw or compressed. Parts let a large file be written and read without holding it in memory, and
the checksum finds a flipped byte in each part that is read; `verify` recomputes the digests as well.
The empty content has no row.

A content that is too large for one transaction is written from its second part on, and its first part
last: a content whose first part is there is there whole.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from enum import IntEnum

import zstandard

from engramfs.errors import Corrupt, Redacted
from engramfs.model.entry import EMPTY_DIGEST, REDACTED
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer

PART = 1 << 20
_WORTH = 0.9  # compress when the result is below this share of the original
_HEAD = 5  # bytes before the content: codec and checksum
_SMALL = 128  # bytes; below it compression is not tried


class Codec(IntEnum):
    RAW = 0
    ZSTD = 1


def pack(plain: bytes) -> bytes:
    """The row value of one part."""
    checksum = zlib.crc32(plain).to_bytes(4, "big")
    if len(plain) >= _SMALL:
        # A compressor is not safe to share between threads, and making one is cheap.
        squeezed = zstandard.ZstdCompressor(level=3).compress(plain)
        if len(squeezed) < len(plain) * _WORTH:
            return bytes([Codec.ZSTD]) + checksum + squeezed
    return bytes([Codec.RAW]) + checksum + plain


def unpack(digest: bytes, value: bytes) -> bytes:
    """The plain bytes of one part. Raises `Corrupt`."""
    try:
        if len(value) <= _HEAD:
            raise ValueError("the row is too short")
        codec, body = Codec(value[0]), value[_HEAD:]
        plain = body if codec is Codec.RAW else _decompress(body)
    except (ValueError, zstandard.ZstdError):
        raise Corrupt(f"blob {digest.hex()} cannot be unpacked; run engramfs verify") from None
    if zlib.crc32(plain) != int.from_bytes(value[1:_HEAD], "big"):
        raise Corrupt(f"blob {digest.hex()} has a wrong checksum; run engramfs verify")
    return plain


def _decompress(body: bytes) -> bytes:
    # The frame says how much memory to set aside, and one flipped bit can make that exabytes.
    if not 0 < zstandard.frame_content_size(body) <= PART:
        raise ValueError("the frame gives an impossible size")
    return zstandard.ZstdDecompressor().decompress(body, PART)


def exists(reader: Reader, digest: bytes) -> bool:
    return digest == EMPTY_DIGEST or reader.get(Table.BLOBS, keys.blob(digest, 0)) is not None


def put(writer: Writer, digest: bytes, parts: Iterable[bytes]) -> None:
    """Store a content under its digest, unless it is there. Each part but the last has `PART` bytes."""
    if exists(writer, digest):
        return
    for number, part in enumerate(parts):
        put_part(writer, digest, number, part)


def put_part(writer: Writer, digest: bytes, number: int, plain: bytes) -> None:
    """Store one part. The caller writes part 0 last, once it knows that the content has that digest."""
    writer.put(Table.BLOBS, keys.blob(digest, number), pack(plain))


def put_bytes(writer: Writer, digest: bytes, content: bytes) -> None:
    put(writer, digest, (content[start : start + PART] for start in range(0, len(content), PART)))


def part(reader: Reader, digest: bytes, number: int) -> bytes:
    """One part of a content. Raises `Corrupt` when it is missing or damaged, and `Redacted`."""
    if digest == REDACTED:
        raise Redacted("the content was redacted")
    value = reader.get(Table.BLOBS, keys.blob(digest, number))
    if value is None:
        raise Corrupt(f"blob {digest.hex()} is missing part {number}; run engramfs verify")
    return unpack(digest, value)


def count_parts(size: int) -> int:
    """How many parts a content of `size` bytes has."""
    return (size + PART - 1) // PART


def parts(reader: Reader, digest: bytes, size: int) -> Iterator[bytes]:
    """All parts of a content of `size` bytes, in order."""
    for number in range(count_parts(size)):
        yield part(reader, digest, number)


def read(reader: Reader, digest: bytes, size: int) -> bytes:
    """A whole content."""
    return b"".join(parts(reader, digest, size))


def damage(digest: bytes, size: int, parts: Iterable[bytes]) -> str | None:
    """What is wrong with a stored content, given its parts as `parts` reads them, or None."""
    found = hashlib.sha256()
    length = 0
    try:
        for piece in parts:
            found.update(piece)
            length += len(piece)
    except Corrupt as error:
        return error.message
    if length != size:
        return f"blob {digest.hex()} has {length:,} bytes instead of {size:,}"
    if found.digest() != digest:
        return f"blob {digest.hex()} holds another content ({found.hexdigest()})"
    return None
