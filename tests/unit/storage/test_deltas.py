"""A content that is stored as a delta to another reads as it was written, and damage to either is found."""

import hashlib
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from engramfs.errors import Corrupt, Redacted
from engramfs.model.entry import REDACTED
from engramfs.storage import blobs, keys
from engramfs.storage.lmdb_engine import LmdbEngine
from engramfs.storage.protocol import Reader, Table, Writer

OLD, NEW = os.urandom(100_000), os.urandom(80)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LmdbEngine]:
    engine = LmdbEngine(str(tmp_path))
    yield engine
    engine.close()


def digest_of(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def put_delta(writer: Writer, content: bytes, base: bytes) -> bytes:
    """`content` is there as a delta to `base`, which is there."""
    digest = digest_of(content)
    writer.put(Table.BLOBS, keys.blob(digest, 0), blobs.pack_delta(content, base))
    writer.put(Table.DELTAS, keys.blob(digest, 0), digest_of(base))
    return digest


def put(writer: Writer, content: bytes) -> bytes:
    blobs.put_bytes(writer, digest_of(content), content)
    return digest_of(content)


def size_of(reader: Reader, digest: bytes) -> int:
    return len(reader.get(Table.BLOBS, keys.blob(digest, 0)) or b"")


def test_a_delta_to_a_content_that_begins_the_same_takes_a_few_bytes(engine: LmdbEngine) -> None:
    with engine.writing() as writer:
        put(writer, OLD + NEW)
        digest = put_delta(writer, OLD, OLD + NEW)
        assert size_of(writer, digest) < 50
        assert blobs.read(writer, digest, len(OLD)) == OLD
        assert not blobs.is_whole(writer, digest)


def test_a_chain_of_deltas_is_followed_to_its_end(engine: LmdbEngine) -> None:
    contents = [OLD + NEW * count for count in range(33)]
    with engine.writing() as writer:
        put(writer, contents[-1])
        for older, newer in pairwise(contents):
            put_delta(writer, older, newer)
        for content in contents:
            assert blobs.read(writer, digest_of(content), len(content)) == content


def test_putting_a_content_again_makes_it_whole(engine: LmdbEngine) -> None:
    with engine.writing() as writer:
        put(writer, OLD + NEW)
        digest = put_delta(writer, OLD, OLD + NEW)
        put(writer, OLD)
        assert blobs.is_whole(writer, digest)
        assert size_of(writer, digest) > len(OLD)
        assert next(writer.keys(Table.DELTAS, b"", b"\xff" * 40), None) is None


def test_a_content_can_be_made_whole_without_its_bytes(engine: LmdbEngine) -> None:
    with engine.writing() as writer:
        put(writer, OLD + NEW)
        digest = put_delta(writer, OLD, OLD + NEW)
        blobs.make_whole(writer, digest)
        blobs.make_whole(writer, digest_of(OLD + NEW))
        writer.delete(Table.BLOBS, keys.blob(digest_of(OLD + NEW), 0))
        assert blobs.read(writer, digest, len(OLD)) == OLD


def test_a_base_that_is_missing_is_named(engine: LmdbEngine) -> None:
    with engine.writing() as writer:
        base = put(writer, OLD + NEW)
        digest = put_delta(writer, OLD, OLD + NEW)
        writer.delete(Table.BLOBS, keys.blob(base, 0))
        missing = f"blob {digest.hex()} is a delta to blob {base.hex()}, which is missing"
        with pytest.raises(Corrupt, match=missing):
            blobs.read(writer, digest, len(OLD))
        assert missing in str(blobs.damage(digest, len(OLD), blobs.parts(writer, digest, len(OLD))))
        writer.delete(Table.DELTAS, keys.blob(digest, 0))
        with pytest.raises(Corrupt, match="a delta, and to what is not known"):
            blobs.read(writer, digest, len(OLD))


def test_a_delta_with_another_base_than_its_own_is_found(engine: LmdbEngine) -> None:
    with engine.writing() as writer:
        put(writer, OLD + NEW)
        other = put(writer, os.urandom(100_080))
        digest = put_delta(writer, OLD, OLD + NEW)
        writer.put(Table.DELTAS, keys.blob(digest, 0), other)
        with pytest.raises(Corrupt, match=r"wrong checksum|cannot be unpacked"):
            blobs.read(writer, digest, len(OLD))


def test_deltas_that_lead_in_a_circle_are_damage_and_no_endless_loop(engine: LmdbEngine) -> None:
    with engine.writing() as writer:
        put(writer, OLD + NEW)
        digest = put_delta(writer, OLD, OLD + NEW)
        put_delta(writer, OLD + NEW, OLD)
        with pytest.raises(Corrupt, match="a delta without an end"):
            blobs.read(writer, digest, len(OLD))


def test_what_was_redacted_says_so_instead_of_being_empty(engine: LmdbEngine) -> None:
    with engine.reading() as reader, pytest.raises(Redacted):
        blobs.read(reader, REDACTED, 5)
