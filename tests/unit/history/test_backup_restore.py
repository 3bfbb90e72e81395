"""What a backup holds comes back: all of it, or single stores."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from engramfs.errors import AlreadyExists, Busy, Corrupt, NotFound, QuotaExceeded, UsageError
from engramfs.history import catalog, log, transplant
from engramfs.history.backup import backup
from engramfs.history.backup_restore import bring_back
from engramfs.history.repository import Repository
from engramfs.history.tree import resolve, tree_at
from engramfs.history.verify import verify
from engramfs.model.author import SYSTEM, Author
from engramfs.model.entry import Kind
from engramfs.model.operation import Unlink
from engramfs.model.store import Limits, Retention, Store
from engramfs.storage import blobs, keys
from engramfs.storage.journal import Journal, Record
from engramfs.storage.journal_scan import JournalScan
from engramfs.storage.protocol import Table

from .conftest import Book, Shelf

ROOT = Author("person", actor="root")
NOW = 1_800_000_000 * 10**9


@pytest.fixture
def saved(book: Book, tmp_path: Path) -> str:
    """A backup of a store with three versions, a hard link, a large file, and a record in the journal."""
    book.write(a=b"1", d__b=os.urandom(3 << 20))
    book.write(a=b"2")
    book.link("a", "other")
    journal = Journal(book.repository.journal_path, 1 << 20)
    journal.append(Record(1, book.store.id, SYSTEM, 1, Unlink(1, b"a", 1)))
    backup(book.repository, str(tmp_path / "backup"))
    journal.clear()
    journal.close()
    return str(tmp_path / "backup")


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Repository]:
    with Repository.open(str(tmp_path / "other"), write="the tests") as repository:
        yield repository


def test_an_empty_place_becomes_what_was_saved(saved: str, book: Book, tmp_path: Path) -> None:
    state = str(tmp_path / "new/state")
    done = bring_back(saved, state, NOW)
    assert (done.stores, done.versions, done.aside) == (1, 3, None)
    with Repository.open(state, write="the test") as repository:
        assert verify(repository).findings == []
        assert Book(repository, book.store).tree() == book.tree()
        assert [one.position for one in JournalScan(repository.journal_path)] == [1]
    assert sorted(os.listdir(state)) == ["journal", "lock", "log", "spool"]


def test_stores_that_are_there_are_moved_aside_only_when_that_is_meant(
    saved: str, book: Book, tmp_path: Path
) -> None:
    state = book.repository.state
    book.write(later=b"x")
    book.repository.close()
    with pytest.raises(AlreadyExists, match="has stores; --over moves them aside"):
        bring_back(saved, state, NOW)
    with Repository.open(state) as repository:
        assert b"later" in Book(repository, book.store).tree()
    done = bring_back(saved, state, NOW, over=True)
    assert done.aside == f"{state}/before-restore-2027-01-15T08-00-00Z"
    with Repository.open(state) as repository:
        assert b"later" not in Book(repository, book.store).tree()
    with Repository.open(done.aside) as repository:
        assert b"later" in Book(repository, book.store).tree()
        assert verify(repository).findings == []


def test_a_damaged_backup_changes_nothing(saved: str, book: Book) -> None:
    state = book.repository.state
    book.repository.close()
    with Repository.open(saved, write="the test") as repository:
        digest = Book(repository, book.store).tree()[b"d/b"].digest
        repository.transact(lambda writer: writer.delete(Table.BLOBS, keys.blob(digest, 1)))
    before = sorted(os.listdir(state))
    with pytest.raises(Corrupt, match=r"is damaged, nothing was changed .* memory/digest/state: d/b: blob"):
        bring_back(saved, state, NOW, over=True)
    assert sorted(os.listdir(state)) == before
    with Repository.open(state) as repository:
        assert verify(repository).findings == []


def test_what_is_no_backup_or_is_in_use_is_refused(saved: str, book: Book, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="is no backup"):
        bring_back(str(tmp_path), str(tmp_path / "x"), NOW)
    with pytest.raises(UsageError, match="is the state directory itself"):
        bring_back(book.repository.state, book.repository.state, NOW, over=True)
    with pytest.raises(Busy, match="in use by the tests"):
        bring_back(saved, book.repository.state, NOW, over=True)


def test_one_that_was_cut_short_begins_again(saved: str, book: Book, tmp_path: Path) -> None:
    state = tmp_path / "new"
    (state / "restoring/log").mkdir(parents=True)
    (state / "restoring/log/data.mdb").write_bytes(b"half")
    assert bring_back(saved, str(state), NOW).versions == 3


def test_a_backup_of_an_older_schema_is_brought_to_the_present_one(
    saved: str, book: Book, tmp_path: Path
) -> None:
    with Repository.open(saved, write="the test") as repository:
        repository.transact(lambda writer: writer.put(Table.META, keys.SCHEMA_KEY, keys.u32(1)))
    state = str(tmp_path / "new")
    bring_back(saved, state, NOW)
    with Repository.open(state) as repository:
        assert Book(repository, book.store).tree() == book.tree()


# Single stores


def take(source_path: str, name: str, repository: Repository) -> Store:
    with Repository.open(source_path) as source:
        there = transplant.find(source, name, source_path)
        return transplant.adopt(source, there, repository)


def restore(source_path: str, book: Book) -> int:
    """The number of the version, 0 when nothing changed."""
    with Repository.open(source_path) as source:
        there = transplant.find(source, book.store.name, source_path)
        transplant.copy_head(source, there, book.repository)
        version = book.repository.transact(
            lambda writer: (
                transplant.restore(source, there, writer, book.store.name, ROOT, NOW, source_path).version
            )
        )
    assert verify(book.repository).findings == []
    return version.number if version is not None else 0


def test_a_store_that_is_not_there_comes_with_its_history(saved: str, book: Book, other: Repository) -> None:
    other.transact(lambda writer: catalog.create(writer, "contexts/first", now=1))
    Book(other, take_first(other)).write(x=b"1")
    store = take(saved, book.store.name, other)
    assert verify(other).findings == []
    assert msgspec.structs.replace(store, id=book.store.id) == book.store
    came = Book(other, store)
    for number in range(4):
        assert came.tree(number) == book.tree(number)
    with other.engine.reading() as reader, book.repository.engine.reading() as there:
        assert list(log.versions(reader, store.id)) == list(log.versions(there, book.store.id))
        entry = came.tree()[b"d/b"]
        assert blobs.read(reader, entry.digest, entry.size) == blobs.read(there, entry.digest, entry.size)
    came.write(goes_on=b"1")
    assert verify(other).findings == []


def take_first(repository: Repository) -> Store:
    with repository.engine.reading() as reader:
        return catalog.named(reader, "contexts/first")


def test_a_store_that_is_there_gets_the_saved_head_as_a_new_version(saved: str, book: Book) -> None:
    book.write(a=b"3", new=b"4")
    book.remove("d")
    number = restore(saved, book)
    assert number == 6
    assert {path: entry.digest for path, entry in book.tree().items()} == {
        path: entry.digest for path, entry in book.tree(3).items()
    }
    assert book.tree()[b"a"].node == book.tree()[b"other"].node == book.tree(3)[b"a"].node
    with book.repository.engine.reading() as reader:
        version = log.version(reader, book.store, number)
    assert (version.via, version.author) == ("restore", ROOT)
    assert version.message == f"restore of memory/digest/state@3 from the backup {saved}"
    assert restore(saved, book) == 0


def test_a_store_of_another_history_under_the_same_name_keeps_its_own_nodes(
    saved: str, book: Book, other: Repository
) -> None:
    store = other.transact(lambda writer: catalog.create(writer, book.store.name, now=5))
    came = Book(other, store)
    came.write(a=b"mine")
    assert restore(saved, came) == 2
    assert came.tree().keys() == book.tree().keys()
    assert came.tree()[b"a"].node == came.tree()[b"other"].node
    assert came.tree(1).keys() == {b"", b"a"}
    kinds = {path: entry.kind for path, entry in came.tree().items()}
    assert kinds[b"d"] is Kind.DIRECTORY


def test_limits_and_names_are_those_of_here(saved: str, book: Book, other: Repository) -> None:
    small = other.transact(
        lambda writer: catalog.create(writer, book.store.name, now=5, limits=Limits(quota=100))
    )
    with pytest.raises(QuotaExceeded, match="over its quota of 100 B"):
        restore(saved, Book(other, small))
    with pytest.raises(AlreadyExists):
        take(saved, book.store.name, other)
    with pytest.raises(NotFound, match="has no store contexts/x; it has memory/digest/state"):
        take(saved, "contexts/x", other)


def test_what_a_store_says_of_itself_comes_along(
    book: Book, shelf: Shelf, tmp_path: Path, other: Repository
) -> None:
    kept = msgspec.structs.replace(
        book.store, description="d", archived=True, owner="actor alice", retention=Retention(7, 3)
    )
    book.repository.transact(lambda writer: catalog.put(writer, kept))
    shelf("contexts/else").write(x=b"not asked for")
    backup(book.repository, str(tmp_path / "backup"))
    store = take(str(tmp_path / "backup"), book.store.name, other)
    assert msgspec.structs.replace(store, id=kept.id) == kept
    with other.engine.reading() as reader:
        assert [each.name for each in catalog.every(reader)] == [book.store.name]
        assert resolve(tree_at(reader, store), b"") is not None
    shutil.rmtree(tmp_path / "backup")
