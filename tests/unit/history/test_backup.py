"""A consistent copy while others read and write."""

import contextlib
import multiprocessing
import os
import threading
from pathlib import Path

import pytest

from engramfs.errors import Conflict, NotFound, UsageError
from engramfs.history import catalog, log
from engramfs.history.backup import backup
from engramfs.history.repository import Repository
from engramfs.history.tree import resolve, tree_at
from engramfs.history.verify import verify
from engramfs.model.author import SYSTEM
from engramfs.model.operation import Unlink
from engramfs.storage import blobs
from engramfs.storage.journal import Journal, Record
from engramfs.storage.journal_scan import JournalScan

from .conftest import Book


def record(position: int, store: int = 1) -> Record:
    return Record(position, store, SYSTEM, 1, Unlink(1, b"n%d" % position, position), b"x" * (position % 300))


def test_a_backup_is_a_state_directory_with_everything(book: Book, tmp_path: Path) -> None:
    book.write(a=b"1", d__b=b"2")
    book.write(a=b"3")
    journal = Journal(book.repository.journal_path, 1 << 20)
    for position in (1, 2):
        journal.append(record(position, book.store.id))
    backup(book.repository, str(tmp_path / "backup"))
    book.write(a=b"later")
    with Repository.open(str(tmp_path / "backup"), write="the test") as copy:
        assert verify(copy).findings == []
        restored = Book(copy, book.store)
        assert restored.tree() == book.tree(2)
        assert [one.position for one in JournalScan(copy.journal_path)] == [1, 2]
        assert os.path.isdir(copy.spool_path)
        restored.write(a=b"goes on")
    journal.close()
    assert book.tree()[b"a"].size == 5


def test_a_backup_does_not_need_the_lock_nor_a_journal(book: Book, tmp_path: Path) -> None:
    book.write(a=b"1")
    book.repository.close()
    with Repository.open(book.repository.state) as reader:
        backup(reader, str(tmp_path / "backup"))
    with Repository.open(str(tmp_path / "backup")) as copy:
        assert verify(copy).findings == []


def test_a_place_that_is_not_free_is_refused_and_left_alone(book: Book, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("x")
    with pytest.raises(Conflict, match="full is not empty"):
        backup(book.repository, str(tmp_path / "full"))
    assert os.listdir(tmp_path / "full") == ["mine"]
    with pytest.raises(UsageError, match="mine is not a directory"):
        backup(book.repository, str(tmp_path / "full" / "mine"))
    with pytest.raises(NotFound, match=f"there is no directory {tmp_path}/missing"):
        backup(book.repository, str(tmp_path / "missing" / "backup"))


def test_what_was_acknowledged_before_is_in_the_copy_while_a_worker_seals_and_clears(
    book: Book, tmp_path: Path
) -> None:
    """A worker appends, commits a version that says up to where, and clears, all the time.

    In each copy, the newest version and the journal together reach at least as far as what had been
    acknowledged when the backup began, and no record between them is missing.
    """
    journal = Journal(book.repository.journal_path, 64 << 20)
    acknowledged, stop = [0], threading.Event()

    def work() -> None:
        position = 0
        while not stop.is_set():
            for _ in range(1 + position % 7):
                position += 1
                journal.append(record(position, book.store.id))
                acknowledged[0] = position
            book.write(upto=b"%d" % position)
            if position % 3:
                journal.clear()
            else:
                journal.compact(lambda one, upto=position: one.position > upto)  # type: ignore[misc]

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for number in range(25):
            before = acknowledged[0]
            backup(book.repository, str(tmp_path / f"backup-{number}"))
            _check(tmp_path / f"backup-{number}", book, before)
    finally:
        stop.set()
        worker.join()
        journal.close()


def _check(directory: Path, book: Book, before: int) -> None:
    with Repository.open(str(directory)) as copy, copy.engine.reading() as reader:
        entry = resolve(tree_at(reader, book.store), b"upto")
        sealed = int(blobs.read(reader, entry.digest, entry.size)) if entry else 0
        scan = JournalScan(copy.journal_path)
        positions = [one.position for one in scan]
        head = catalog.head(reader, book.store.id).number
        assert head == 0 or log.version(reader, book.store, head).number == head
    assert scan.torn_bytes == 0
    assert positions == list(range(positions[0], positions[-1] + 1)) if positions else True
    assert max([sealed, *positions]) >= before
    assert not positions or positions[0] <= sealed + 1


def test_a_copy_taken_from_another_process_is_sound(book: Book, tmp_path: Path) -> None:
    for number in range(50):
        book.write_paths({b"f%d" % number: os.urandom(2000)})
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_back_up, args=(book.repository.state, str(tmp_path / "backup")))
    process.start()
    with contextlib.closing(Journal(book.repository.journal_path, 1 << 20)):
        while process.is_alive():
            book.write_paths({b"busy": os.urandom(2000)})
    process.join()
    assert process.exitcode == 0
    with Repository.open(str(tmp_path / "backup")) as copy:
        assert verify(copy).findings == []


def _back_up(state: str, directory: str) -> None:
    with Repository.open(state) as repository:
        backup(repository, directory)
