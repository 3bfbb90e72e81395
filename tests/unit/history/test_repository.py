"""A state directory, opened."""

import os
from pathlib import Path

import pytest

from engramfs.errors import Busy, NotFound, StorageError, Unavailable
from engramfs.history import catalog
from engramfs.history.repository import Repository
from engramfs.storage import keys
from engramfs.storage.lmdb_engine import LmdbEngine
from engramfs.storage.protocol import Table, Writer


def test_writing_creates_what_is_missing_for_its_owner_alone(tmp_path: Path) -> None:
    state = tmp_path / "deep" / "state"
    with Repository.open(str(state), write="the test") as repository:
        assert os.path.isdir(repository.spool_path)
        for path in (state, state / "log", state / "spool", state / "log" / "data.mdb", state / "lock"):
            assert path.stat().st_mode & 0o077 == 0


def test_reading_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=f"{tmp_path}/state holds no stores yet"):
        Repository.open(str(tmp_path / "state"))
    assert os.listdir(tmp_path) == []


def test_only_one_writer_at_a_time(repository: Repository) -> None:
    with pytest.raises(Busy, match=rf"{repository.state} is in use by the tests \(pid {os.getpid()}\)"):
        Repository.open(repository.state, write="another")


def test_a_closed_repository_can_be_opened_again(tmp_path: Path) -> None:
    for number in range(3):
        with Repository.open(str(tmp_path), write="the test") as repository:
            name = f"contexts/{number}"
            repository.transact(lambda writer, name=name: catalog.create(writer, name, now=1))  # type: ignore[misc]
            repository.close()
    with Repository.open(str(tmp_path)) as repository, repository.engine.reading() as reader:
        assert [store.id for store in catalog.every(reader)] == [1, 2, 3]


def test_another_schema_is_refused_in_one_line(tmp_path: Path) -> None:
    with Repository.open(str(tmp_path), write="the test") as repository:
        repository.transact(lambda writer: writer.put(Table.META, keys.SCHEMA_KEY, keys.u32(99)))
    for write in (None, "the test"):
        with pytest.raises(StorageError, match="has schema 99, this engramfs reads 2; use the version"):
            Repository.open(str(tmp_path), write=write)


def test_a_state_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match=f"cannot create {tmp_path}/file/state: Not a directory"):
        Repository.open(str(tmp_path / "file" / "state"), write="the test")


def test_a_body_runs_again_when_the_map_had_to_grow(tmp_path: Path) -> None:
    with Repository(str(tmp_path), LmdbEngine(str(tmp_path), map_size=1 << 20), None) as repository:
        runs: list[int] = []

        def body(writer: Writer) -> int:
            runs.append(1)
            for number in range(100):
                writer.put(Table.META, keys.u64(number), b"x" * 50_000)
            return len(runs)

        assert repository.transact(body) == len(runs) > 1
        with repository.engine.reading() as reader:
            assert sum(1 for _ in reader.scan(Table.META, b"", b"\xff")) == 100
