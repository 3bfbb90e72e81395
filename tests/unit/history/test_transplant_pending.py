"""What waits for a person comes back with its store."""

import os
from pathlib import Path

import pytest

from engramfs.history import catalog, pending, transplant
from engramfs.history.backup import backup
from engramfs.history.backup_restore import bring_back
from engramfs.history.offered import differences
from engramfs.history.repository import Repository
from engramfs.history.transplant_pending import Replaced
from engramfs.history.verify import verify
from engramfs.model.pending import Pending
from engramfs.model.store import Store
from engramfs.storage import blobs

from .conftest import SECOND, Book, replace
from .forked import PERSON, Fork, content

NOW = 1_800_000_000 * 10**9


@pytest.fixture
def fork(book: Book) -> Fork:
    """Of a store with two files."""
    book.write(a=b"a\n", b=b"b\n")
    return Fork(book)


@pytest.fixture
def saved(tmp_path: Path) -> str:
    return str(tmp_path / "backup")


def everything(book: Book) -> list[Pending]:
    """All that was ever pending, but for the ids of forks."""
    with book.repository.engine.reading() as reader:
        return [replace(each, fork=0) for each in pending.every(reader, book.store.id)]


def waiting(book: Book) -> dict[int, dict[str, bytes | None]]:
    """What each open one would change: path → content, None for one that goes."""
    found = {}
    with book.repository.engine.reading() as reader:
        for _, each in pending.waiting(reader, book.store.id):
            found[each.number] = {
                one.path.decode(): blobs.read(reader, one.new.digest, one.new.size) if one.new else None
                for one in differences(reader, each)
            }
    return found


def restore(saved: str, book: Book) -> Replaced:
    with Repository.open(saved) as source:
        there = transplant.find(source, book.store.name, saved)
        transplant.copy_head(source, there, book.repository)
        done = book.repository.transact(
            lambda writer: transplant.restore(source, there, writer, book.store.name, PERSON, NOW, saved)
        )
    assert verify(book.repository).findings == []
    return done.pending


def fork_of(book: Book, number: int) -> Fork:
    """The fork that offers what has this number."""
    with book.repository.engine.reading() as reader:
        return Fork(book, catalog.get(reader, pending.get(reader, book.store, number).fork))


def test_a_whole_backup_brings_what_was_pending(fork: Fork, saved: str, tmp_path: Path) -> None:
    fork.write(a=b"mine\n", new=b"new\n", b=None)
    fork.write(more=b"more\n")
    fork.reject(2)
    backup(fork.book.repository, saved)
    fork.approve(1)
    bring_back(saved, str(tmp_path / "elsewhere"), NOW)
    with Repository.open(str(tmp_path / "elsewhere")) as repository:
        back = Book(repository, fork.book.store)
        assert waiting(back) == {1: {"a": b"mine\n", "new": b"new\n", "b": None}}
        assert [each.state for each in everything(back)] == ["open", "rejected"]
        assert verify(repository).findings == []


def test_a_store_that_is_not_there_brings_all_that_was_ever_pending(
    fork: Fork, saved: str, tmp_path: Path
) -> None:
    fork.write(a=b"mine\n", new=b"x\n")
    other = Fork(fork.book)
    other.write(b=None)
    other.write(b=b"B\n")
    fork.write(new=os.urandom(100_000))
    fork.approve(1)
    other.reject(2)
    backup(fork.book.repository, saved)
    with Repository.open(str(tmp_path / "other"), write="the test") as repository:
        repository.transact(lambda writer: catalog.create(writer, "contexts/first", now=1))
        with Repository.open(saved) as source:
            there = transplant.find(source, fork.book.store.name, saved)
            store: Store = transplant.adopt(source, there, repository)
        came = Book(repository, store)
        assert verify(repository).findings == []
        assert everything(came) == everything(fork.book)
        assert waiting(came) == waiting(fork.book)
        assert fork_of(came, 4).tree() == fork.tree()
        fork_of(came, 4).approve(4)
        assert len(content(came)["new"]) == 100_000
        assert verify(repository).findings == []


def test_what_still_waits_as_it_did_stays_what_it_is(fork: Fork, saved: str) -> None:
    fork.write(a=b"mine\n")
    backup(fork.book.repository, saved)
    fork.book.write(b=b"later\n")
    assert restore(saved, fork.book) == Replaced([], 0, 0)
    assert waiting(fork.book) == {1: {"a": b"mine\n"}}


def test_what_is_open_in_both_stays_when_another_of_its_session_was_decided(fork: Fork, saved: str) -> None:
    fork.write(a=b"mine\n")
    fork.write(b=b"too\n")
    backup(fork.book.repository, saved)
    fork.approve(1)
    assert restore(saved, fork.book) == Replaced([], 1, 0)
    assert waiting(fork.book) == {2: {"b": b"too\n"}, 3: {"a": b"mine\n"}}
    assert fork.tree() == {"a": b"a\n", "b": b"too\n"}, "its session sees it still"
    fork.approve(2)
    fork_of(fork.book, 3).approve(3)
    assert content(fork.book) == {"a": b"mine\n", "b": b"too\n"}
    assert verify(fork.book.repository).findings == []


def test_what_was_sealed_from_the_journal_of_the_copy_does_not_make_it_another_history(
    fork: Fork, saved: str
) -> None:
    fork.write(a=b"mine\n", new=b"new\n")
    fork.write(b=b"too\n")
    backup(fork.book.repository, saved)
    with Repository.open(saved, write="the test") as repository:
        copy = Book(repository, fork.book.store)
        copy.clock += 10 * SECOND
        copy.write(b=b"b, as sealed in the copy\n", late=b"late\n")
    fork.book.write(b=b"b, as sealed here\n", other=b"other\n")
    fork.reject(1)
    assert restore(saved, fork.book) == Replaced([], 1, 0)
    assert waiting(fork.book) == {2: {"b": b"too\n"}, 3: {"a": b"mine\n", "new": b"new\n"}}
    assert content(fork.book) == {"a": b"a\n", "b": b"b, as sealed in the copy\n", "late": b"late\n"}
    fork_of(fork.book, 3).approve(3)
    assert content(fork.book)["a"] == b"mine\n"
    assert verify(fork.book.repository).findings == []


def test_what_the_copy_sealed_from_its_journal_is_what_waits_here(fork: Fork, saved: str) -> None:
    fork.write(a=b"mine\n")
    backup(fork.book.repository, saved)
    with Repository.open(saved, write="the test") as repository:
        copied = Fork(Book(repository, fork.book.store), fork.store)
        copied.book.clock += 10 * SECOND
        copied.flags = ("recovered",)
        copied.write(b=b"too\n")
    fork.write(b=b"too\n")
    assert restore(saved, fork.book) == Replaced([], 0, 0)
    assert waiting(fork.book) == {1: {"a": b"mine\n"}, 2: {"b": b"too\n"}}


def test_what_was_made_from_a_version_that_is_not_here_cannot_come(fork: Fork, saved: str) -> None:
    fork.write(a=b"mine\n")
    backup(fork.book.repository, saved)
    with Repository.open(saved, write="the test") as repository:
        copied = Fork(Book(repository, fork.book.store), fork.store)
        copied.book.clock += 10 * SECOND
        copied.book.write(b=b"only there\n")
        copied.write(b=b"on that\n")
    assert restore(saved, fork.book) == Replaced([], 0, 1)
    assert waiting(fork.book) == {1: {"a": b"mine\n"}}


def test_what_waits_for_a_store_without_a_version_stays(book: Book, saved: str) -> None:
    fork = Fork(book)
    fork.write(a=b"first\n")
    fork.write(b=b"second\n")
    backup(book.repository, saved)
    fork.reject(1)
    assert restore(saved, book) == Replaced([], 1, 0)
    assert waiting(book) == {2: {"b": b"second\n"}, 3: {"a": b"first\n"}}


def test_what_was_decided_since_waits_again_and_what_came_since_is_rejected(fork: Fork, saved: str) -> None:
    fork.write(a=b"mine\n", new=b"new\n")
    fork.write(new=b"newer\n")
    other = Fork(fork.book)
    other.write(b=b"other\n")
    backup(fork.book.repository, saved)
    expected = list(waiting(fork.book).values())
    fork.approve(1)
    other.reject(3)
    other.write(late=b"late\n")
    fork.book.write(since=b"since\n")
    done = restore(saved, fork.book)
    assert (sorted(one.pending.number for one in done.rejected), done.offered, done.left) == ([2, 4], 3, 0)
    assert list(waiting(fork.book).values()) == expected
    assert content(fork.book) == {"a": b"a\n", "b": b"b\n"}
    late = everything(fork.book)[3]
    assert (late.state, late.reason) == (
        "rejected",
        f"restore of {fork.book.store.name}@1 from the backup {saved}",
    )
    assert restore(saved, fork.book).offered == 0, "again, nothing has to be done"
    for number in waiting(fork.book):
        fork_of(fork.book, number).approve(number)
    assert content(fork.book) == {"a": b"mine\n", "b": b"other\n", "new": b"newer\n"}
    assert verify(fork.book.repository).findings == []


def test_what_was_rejected_and_is_built_on_comes_too(fork: Fork, saved: str) -> None:
    fork.write(new=b"1\n")
    fork.write(new=b"2\n")
    fork.reject(1)
    before = fork.tree()
    backup(fork.book.repository, saved)
    fork.reject(2)
    assert restore(saved, fork.book).offered == 1
    assert [each.state for each in everything(fork.book)] == ["rejected", "rejected", "rejected", "open"]
    assert fork_of(fork.book, 4).tree() == before


def test_of_another_history_nothing_can_wait_and_that_is_said(fork: Fork, saved: str, tmp_path: Path) -> None:
    fork.write(a=b"mine\n")
    backup(fork.book.repository, saved)
    with Repository.open(str(tmp_path / "other"), write="the test") as repository:
        name = fork.book.store.name
        mine = Book(repository, repository.transact(lambda writer: catalog.create(writer, name, now=5)))
        mine.write(a=b"another\n")
        Fork(mine).write(a=b"asked\n")
        done = restore(saved, mine)
        assert (len(done.rejected), done.offered, done.left) == (1, 0, 1)
        assert waiting(mine) == {}
        assert content(mine) == {"a": b"a\n", "b": b"b\n"}
