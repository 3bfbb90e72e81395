"""Content, named by its SHA-256 digest, kept in parts of at most `PART` bytes.

A row of the table `blobs` is: codec (1 byte), CRC-32 of the plain bytes (u32, big-endian), then the
bytes, raw, compressed, or as a delta. Parts let a large file be written and read without holding it in
memory, and the checksum finds a flipped byte in each part that is read; `verify` recomputes the digests as
well. The empty content has no row.

A delta is compressed with the part of another content, its base, as the dictionary. The table `deltas`
names the base, which may be a delta itself, at most `DELTAS` deep. A collection makes deltas of what was
superseded, and of nothing else; what a commit makes live again is made whole with it.

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
_DIGEST = 32  # bytes
_SMALL = 128  # bytes; below it compression is not tried
DELTAS = 32  # on the way from a content to one that is whole
SMALLEST_DELTA = 256  # bytes of a content that is worth to be one, or to be the base of one
_FAR_TOO_MANY = 1000  # while a collection lays them out anew, there may be more


class Codec(IntEnum):
    RAW = 0
    ZSTD = 1
    DELTA = 2


_IS_DELTA = bytes([Codec.DELTA])


def pack(plain: bytes) -> bytes:
    """The row value of one part."""
    checksum = zlib.crc32(plain).to_bytes(4, "big")
    if len(plain) >= _SMALL:
        # A compressor is not safe to share between threads, and making one is cheap.
        squeezed = zstandard.ZstdCompressor(level=3).compress(plain)
        if len(squeezed) < len(plain) * _WORTH:
            return bytes([Codec.ZSTD]) + checksum + squeezed
    return bytes([Codec.RAW]) + checksum + plain


def pack_delta(plain: bytes, base: bytes) -> bytes:
    """The row value of one part as a delta to a part of another content."""
    compressor = zstandard.ZstdCompressor(level=3, dict_data=_dictionary(base))
    return bytes([Codec.DELTA]) + zlib.crc32(plain).to_bytes(4, "big") + compressor.compress(plain)


def _dictionary(base: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def unpack(digest: bytes, value: bytes, base: bytes | None = None) -> bytes:
    """The plain bytes of one part; of a delta, given those of its base. Raises `Corrupt`."""
    try:
        if len(value) <= _HEAD:
            raise ValueError("the row is too short")
        codec, body = Codec(value[0]), value[_HEAD:]
        if (codec is Codec.DELTA) != (base is not None):
            raise ValueError("the row is a delta or it is none")
        plain = body if codec is Codec.RAW else _decompress(body, base)
    except (ValueError, zstandard.ZstdError):
        raise Corrupt(f"blob {digest.hex()} cannot be unpacked; run engramfs verify") from None
    if zlib.crc32(plain) != int.from_bytes(value[1:_HEAD], "big"):
        raise Corrupt(f"blob {digest.hex()} has a wrong checksum; run engramfs verify")
    return plain


def _decompress(body: bytes, base: bytes | None) -> bytes:
    # The frame says how much memory to set aside, and one flipped bit can make that exabytes.
    if not 0 < zstandard.frame_content_size(body) <= PART:
        raise ValueError("the frame gives an impossible size")
    decompressor = (
        zstandard.ZstdDecompressor()
        if base is None
        else zstandard.ZstdDecompressor(dict_data=_dictionary(base))
    )
    return decompressor.decompress(body, PART)


def exists(reader: Reader, digest: bytes) -> bool:
    return digest == EMPTY_DIGEST or reader.get(Table.BLOBS, keys.blob(digest, 0)) is not None


def is_whole(reader: Reader, digest: bytes) -> bool:
    """Whether it exists, and no part of it is a delta."""
    return exists(reader, digest) and next(_deltas(reader, digest), None) is None


def put(writer: Writer, digest: bytes, parts: Iterable[bytes]) -> None:
    """Store a content under its digest, unless it is there whole. Each part but the last has `PART` bytes."""
    if is_whole(writer, digest):
        return
    for number, part in enumerate(parts):
        put_part(writer, digest, number, part)


def put_part(writer: Writer, digest: bytes, number: int, plain: bytes) -> None:
    """Store one part. The caller writes part 0 last, once it knows that the content has that digest."""
    writer.put(Table.BLOBS, keys.blob(digest, number), pack(plain))
    writer.delete(Table.DELTAS, keys.blob(digest, number))


def put_bytes(writer: Writer, digest: bytes, content: bytes) -> None:
    put(writer, digest, (content[start : start + PART] for start in range(0, len(content), PART)))


def part(reader: Reader, digest: bytes, number: int) -> bytes:
    """One part of a content. Raises `Corrupt` when it is missing or damaged, and `Redacted`."""
    if digest == REDACTED:
        raise Redacted("the content was redacted")
    value = _row(reader, digest, number)
    deltas = []
    while value[:1] == _IS_DELTA:
        deltas.append((digest, value))
        digest, value = _base(reader, digest, number)
        if len(deltas) > _FAR_TOO_MANY:
            raise Corrupt(f"blob {deltas[0][0].hex()} is a delta without an end; run engramfs verify")
    plain = unpack(digest, value)
    for digest, value in reversed(deltas):
        plain = unpack(digest, value, plain)
    return plain


def _row(reader: Reader, digest: bytes, number: int) -> bytes:
    value = reader.get(Table.BLOBS, keys.blob(digest, number))
    if value is None:
        raise Corrupt(f"blob {digest.hex()} is missing part {number}; run engramfs verify")
    return value


def _base(reader: Reader, digest: bytes, number: int) -> tuple[bytes, bytes]:
    """The content that a delta leads to, and its row."""
    base = reader.get(Table.DELTAS, keys.blob(digest, number))
    if base is None or not is_base(base):
        raise Corrupt(f"blob {digest.hex()} is a delta, and to what is not known; run engramfs verify")
    value = reader.get(Table.BLOBS, keys.blob(base, number))
    if value is None:
        raise Corrupt(
            f"blob {digest.hex()} is a delta to blob {base.hex()}, which is missing; run engramfs verify"
        )
    return base, value


def _deltas(reader: Reader, digest: bytes) -> Iterator[int]:
    """The numbers of the parts of a content that are deltas."""
    for key, base in reader.scan(Table.DELTAS, digest, keys.after(digest)):
        if is_base(base):
            yield keys.read_u32(key[-4:])


def is_base(value: bytes) -> bool:
    """Whether a row of `deltas` names a base, or else one that was tried in vain."""
    return len(value) == _DIGEST


def make_whole(writer: Writer, digest: bytes) -> None:
    """Let no part of a content be a delta."""
    for number in list(_deltas(writer, digest)):
        make_part_whole(writer, digest, number)


def make_part_whole(writer: Writer, digest: bytes, number: int) -> None:
    """Let one part of a content be no delta."""
    put_part(writer, digest, number, part(writer, digest, number))


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
