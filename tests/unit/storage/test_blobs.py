"""Contents by digest: whole or said to be damaged, compressed when that helps."""

import contextlib
import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engramfs.errors import Corrupt
from engramfs.model.entry import EMPTY_DIGEST
from engramfs.storage import blobs, keys
from engramfs.storage.lmdb_engine import LmdbEngine
from engramfs.storage.protocol import Table


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LmdbEngine]:
    with contextlib.closing(LmdbEngine(str(tmp_path / "log"))) as engine:
        yield engine


def stored(engine: LmdbEngine, content: bytes) -> bytes:
    digest = hashlib.sha256(content).digest()
    with engine.writing() as writer:
        blobs.put_bytes(writer, digest, content)
    return digest


@pytest.mark.parametrize(
    "size", [1, 127, 128, 5000, blobs.PART - 1, blobs.PART, blobs.PART + 1, 3 * blobs.PART]
)
@pytest.mark.parametrize("kind", ["random", "text"])
def test_a_content_comes_back_as_it_was(engine: LmdbEngine, size: int, kind: str) -> None:
    content = os.urandom(size) if kind == "random" else (b"some words. " * (size // 12 + 1))[:size]
    digest = stored(engine, content)
    with engine.reading() as reader:
        assert blobs.exists(reader, digest)
        assert blobs.read(reader, digest, size) == content
        assert blobs.part(reader, digest, 0) == content[: blobs.PART]
        parts = blobs.parts(reader, digest, size)
        assert blobs.damage(digest, size, parts) is None


def test_the_empty_content_is_always_there_and_has_no_row(engine: LmdbEngine) -> None:
    assert stored(engine, b"") == EMPTY_DIGEST
    with engine.reading() as reader:
        assert blobs.exists(reader, EMPTY_DIGEST)
        assert blobs.read(reader, EMPTY_DIGEST, 0) == b""
        assert list(reader.scan(Table.BLOBS, b"", b"\xff" * 40)) == []


def test_it_is_compressed_when_that_helps_and_only_then() -> None:
    text, noise = b"the same words again. " * 200, os.urandom(4400)
    assert blobs.pack(text)[0] == blobs.Codec.ZSTD
    assert len(blobs.pack(text)) < len(text) / 10
    assert blobs.pack(noise)[0] == blobs.Codec.RAW
    assert len(blobs.pack(noise)) == len(noise) + 5
    assert blobs.pack(b"short " * 10)[0] == blobs.Codec.RAW


def test_a_content_that_is_there_is_not_written_again(engine: LmdbEngine) -> None:
    digest = stored(engine, b"content")

    unread = iter([b"another content"])
    with engine.writing() as writer:
        blobs.put(writer, digest, unread)
    assert list(unread) == [b"another content"]


def test_a_content_written_part_by_part_exists_once_its_first_part_is_there(engine: LmdbEngine) -> None:
    content = os.urandom(2 * blobs.PART + 7)
    digest = hashlib.sha256(content).digest()
    parts = [content[start : start + blobs.PART] for start in range(0, len(content), blobs.PART)]
    for number in (1, 2):
        with engine.writing() as writer:
            blobs.put_part(writer, digest, number, parts[number])
            assert not blobs.exists(writer, digest)
    with engine.writing() as writer:
        blobs.put_part(writer, digest, 0, parts[0])
    with engine.reading() as reader:
        assert blobs.read(reader, digest, len(content)) == content


CONTENTS = st.one_of(
    st.binary(min_size=1, max_size=600), st.binary(min_size=1, max_size=20).map(lambda one: one * 60)
)


@settings(deadline=None)
@given(CONTENTS, st.data())
def test_no_flipped_bit_gives_another_content(content: bytes, data: st.DataObject) -> None:
    """Some bits of a zstd frame carry nothing; all others are found."""
    value = bytearray(blobs.pack(content))
    value[data.draw(st.integers(0, len(value) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with contextlib.suppress(Corrupt):
        assert blobs.unpack(bytes(32), bytes(value)) == content


@settings(deadline=None)
@given(CONTENTS, st.data())
def test_every_flipped_bit_of_a_raw_content_is_found(content: bytes, data: st.DataObject) -> None:
    checksum = zlib.crc32(content).to_bytes(4, "big")
    value = bytearray(bytes([blobs.Codec.RAW]) + checksum + content)
    value[data.draw(st.integers(1, len(value) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(Corrupt, match=r"blob 0{64} has a wrong checksum"):
        blobs.unpack(bytes(32), bytes(value))


def test_a_flipped_bit_that_asks_for_exabytes_is_found_and_not_obeyed() -> None:
    value = bytearray(blobs.pack(bytes(360)))
    assert value[0] == blobs.Codec.ZSTD
    value[9] |= 0xC0  # the frame's descriptor: an eight-byte content size
    with pytest.raises(Corrupt, match="cannot be unpacked"):
        blobs.unpack(bytes(32), bytes(value))


def test_a_missing_part_is_named(engine: LmdbEngine) -> None:
    content = os.urandom(2 * blobs.PART)
    digest = stored(engine, content)
    with engine.writing() as writer:
        writer.delete(Table.BLOBS, keys.blob(digest, 1))
    with engine.reading() as reader:
        with pytest.raises(Corrupt, match=f"blob {digest.hex()} is missing part 1"):
            blobs.read(reader, digest, len(content))
        parts = blobs.parts(reader, digest, len(content))
        assert blobs.damage(digest, len(content), parts) == (
            f"blob {digest.hex()} is missing part 1; run engramfs verify"
        )


@pytest.mark.parametrize("value", [b"", b"\x00", b"\x07\x00\x00\x00\x00x", b"\x01\x00\x00\x00\x00not zstd"])
def test_a_row_that_is_no_part_is_corrupt(value: bytes) -> None:
    with pytest.raises(Corrupt, match="00" * 32):
        blobs.unpack(bytes(32), value)
