"""The file of vectors: appended to, whole after any crash, and of one embedder."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from numpy.typing import NDArray

from engramfs.search.failures import IndexDamaged
from engramfs.search.vectors import VectorFile


def unit(*directions: int) -> NDArray[numpy.float32]:
    return numpy.eye(8, dtype=numpy.float32)[list(directions)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "vectors")


@pytest.fixture
def vectors(path: str) -> Iterator[VectorFile]:
    vectors = VectorFile(path, "model")
    vectors.append([7, 5], unit(0, 1))
    vectors.append([9], unit(2))
    yield vectors
    vectors.close()


def test_a_vector_is_found_by_its_key(vectors: VectorFile, path: str) -> None:
    for each in (vectors, VectorFile(path, "model")):
        rows = each.rows([5, 6, 7, 9])
        assert rows[1] == -1
        assert each.likeness(unit(1)[0], rows[[0, 2, 3]]).tolist() == [1, 0, 0]


def test_a_new_file_has_none(path: str) -> None:
    assert VectorFile(path, "model").rows([1, 2]).tolist() == [-1, -1]
    assert not os.path.exists(path)


def test_vectors_of_another_embedder_are_none(vectors: VectorFile, path: str) -> None:
    other = VectorFile(path, "another model")
    assert other.count == 0
    other.append([1], numpy.eye(4, dtype=numpy.float32)[:1])
    assert VectorFile(path, "another model").count == 1
    assert VectorFile(path, "model").count == 0
    assert vectors.count == 3, "who has the old file open goes on with it"
    vectors.follow()
    assert vectors.count == 0


def test_what_was_not_counted_yet_is_cut_off(vectors: VectorFile, path: str) -> None:
    """As a kill between writing records and counting them leaves it."""
    with open(path, "ab") as file:
        file.write(b"\1" * 57)
    again = VectorFile(path, "model")
    assert again.count == 3
    again.append([11], unit(3))
    assert VectorFile(path, "model").rows([11]).tolist() == [3]
    assert again.likeness(unit(3)[0], again.rows([11])).tolist() == [1]


def test_a_file_without_a_whole_header_is_none(path: str) -> None:
    Path(path).write_bytes(b"engramfs vectors 1\n")
    assert VectorFile(path, "model").count == 0


def test_a_file_that_lost_records_is_damaged(vectors: VectorFile, path: str) -> None:
    os.truncate(path, os.path.getsize(path) - 1)
    with pytest.raises(IndexDamaged, match="truncated"):
        VectorFile(path, "model")


def test_only_what_is_needed_is_copied(vectors: VectorFile, path: str) -> None:
    vectors.copy(f"{path}.2", [9, 5, 5, 1234])
    copied = VectorFile(f"{path}.2", "model")
    assert copied.count == 2
    assert copied.rows([7, 9, 5]).min() == -1
    assert copied.likeness(unit(2)[0], copied.rows([9])).tolist() == [1]
