"""A state directory of an older schema becomes one of the present schema, and a copy of it stays.

`data/schema-1.tar.xz` is one that the engramfs of schema 1 left when it was killed: a context with three
versions, and a file in the journal that no version has yet.
"""

import tarfile
from pathlib import Path

import pytest

from engramfs.errors import Full, StorageError
from engramfs.history import catalog, log, migration
from engramfs.history.repository import Repository
from engramfs.history.tree import resolve, tree_at
from engramfs.history.verify import verify
from engramfs.storage import keys
from engramfs.storage.protocol import Table, Writer
from engramfs.vfs.recovery import recover


@pytest.fixture
def old(tmp_path: Path) -> str:
    state = tmp_path / "state"
    with tarfile.open(Path(__file__).parent / "data" / "schema-1.tar.xz") as archive:
        archive.extractall(state, filter="data")
    return str(state)


def schema_of(state: str) -> int:
    with Repository.open(state) as repository, repository.engine.reading() as reader:
        return keys.read_u32(reader.get(Table.META, keys.SCHEMA_KEY) or b"")


def test_whoever_writes_first_migrates_and_nothing_is_lost(old: str) -> None:
    with Repository.open(old, write="the test") as repository:
        recovered = recover(repository)
        assert recovered.replayed > 0
        assert not recovered.skipped
        assert verify(repository).findings == []
        with repository.engine.reading() as reader:
            handbook = catalog.named(reader, "contexts/handbook")
            assert [version.number for version in log.versions(reader, handbook.id)] == [3, 2, 1]
            notes = catalog.named(reader, "memory/default/state")
            assert resolve(tree_at(reader, notes), b"later.md") is not None
    assert schema_of(old) == keys.SCHEMA


def test_the_copy_is_what_was_there_before(old: str) -> None:
    journal = (Path(old) / "journal").read_bytes()
    with Repository.open(old, write="the test"):
        pass
    copy = Path(old) / "schema-1"
    assert (copy / "journal").read_bytes() == journal
    with pytest.raises(StorageError, match=f"{copy} has schema 1, this engramfs reads 2; engramfs up"):
        Repository.open(str(copy))


def test_reading_migrates_nothing_and_says_who_does(old: str) -> None:
    with pytest.raises(StorageError, match=r"has schema 1, .*engramfs up or engramfs restart migrates it"):
        Repository.open(old)
    assert not (Path(old) / "schema-1").exists()


def test_without_a_copy_nothing_is_changed(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(repository: Repository, directory: str) -> None:
        raise Full("no space left for the backup")

    with monkeypatch.context() as patched:
        patched.setattr(migration, "backup", full)
        with pytest.raises(Full):
            Repository.open(old, write="the test")
    with pytest.raises(StorageError, match="has schema 1"):
        Repository.open(old)
    with Repository.open(old, write="the test"):  # and the next start does all of it
        pass
    assert (Path(old) / "schema-1" / "log" / "data.mdb").exists()


def test_a_crash_after_the_copy_begins_again(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(writer: Writer) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setitem(migration._STEPS, 1, crash)
        with pytest.raises(KeyboardInterrupt):
            Repository.open(old, write="the test")
    (Path(old) / "schema-1.partial").mkdir()  # what a crash while copying leaves
    with Repository.open(old, write="the test"):
        pass
    assert schema_of(old) == keys.SCHEMA
