"""The journal: what was appended is there after a crash, and a torn tail is not."""

import contextlib
import os
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engramfs.errors import Corrupt, Full, StorageError
from engramfs.model.author import SYSTEM, Author
from engramfs.model.entry import Entry, Kind
from engramfs.model.operation import Link, Operation, Rename, Unlink, Update
from engramfs.storage.journal import MAGIC, Journal, Record
from engramfs.storage.journal_scan import JournalScan, copy_journal

ENTRY = Entry(7, Kind.FILE, 0o640, 3, 1 << 60, 2, b"\x01" * 32, xattrs=((b"user.k", b"\xff"),), origin=5)
OPERATIONS: list[Operation] = [
    Link(1, b"name\xff", ENTRY),
    Unlink(1, b"name", 9),
    Rename(7, 1, b"a", 2, b"b", exchange=True, moved=ENTRY),
    Update(ENTRY),
]


def record(position: int, content: bytes | None = None) -> Record:
    operation = OPERATIONS[position % len(OPERATIONS)]
    return Record(
        position, 3, Author("agent", "a", "b", None, "s"), 12, operation, content, closed=True, overwrites=4
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@contextlib.contextmanager
def opened(path: Path, max_bytes: int = 1 << 20) -> Iterator[Journal]:
    with contextlib.closing(Journal(str(path), max_bytes)) as journal:
        yield journal


def filled(path: Path, *positions: int) -> list[Record]:
    records = [record(position, b"c" * position) for position in positions]
    with opened(path) as journal:
        for one in records:
            journal.append(one)
    return records


def positions(path: Path) -> list[int]:
    return [one.position for one in JournalScan(str(path))]


def test_every_kind_of_record_comes_back_as_it_was(path: Path) -> None:
    records = filled(path, 1, 2, 3, 4)
    with opened(path) as journal:
        assert list(journal.replay()) == records
        assert (journal.records, journal.position, journal.torn_bytes) == (4, 4, 0)


def test_what_was_appended_is_seen_by_another_opener_at_once(path: Path) -> None:
    with opened(path) as journal:
        journal.append(record(1))
        assert positions(path) == [1]


@pytest.mark.parametrize("cut", [1, 4, 8, 20])
def test_a_torn_tail_is_dropped_set_aside_and_reported(path: Path, cut: int) -> None:
    filled(path, 1, 2)
    whole = path.read_bytes()
    filled(path, 3)
    torn = path.read_bytes()[: len(whole) + cut]
    path.write_bytes(torn)
    with opened(path) as journal:
        assert [one.position for one in journal.replay()] == [1, 2]
        assert (journal.torn_bytes, journal.position) == (cut, 2)
        journal.append(record(3))
    assert Path(f"{path}.torn").read_bytes() == torn[len(whole) :]
    assert positions(path) == [1, 2, 3]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_wherever_the_file_is_cut_or_flipped_what_is_before_it_survives(
    path: Path, data: st.DataObject
) -> None:
    path.unlink(missing_ok=True)
    ends = [len(MAGIC)]
    for position in range(1, 6):
        filled(path, position)
        ends.append(path.stat().st_size)
    whole = bytearray(path.read_bytes())
    at = data.draw(st.integers(len(MAGIC), len(whole) - 1))
    if data.draw(st.booleans()):
        del whole[at:]
    else:
        whole[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(whole)
    survivors = sum(end <= at for end in ends[1:])
    assert positions(path) == list(range(1, survivors + 1))
    with opened(path) as journal:
        assert [one.position for one in journal.replay()] == list(range(1, survivors + 1))
        journal.append(record(9))
    assert positions(path)[-1] == 9


@pytest.mark.parametrize("size", [0, 3])
def test_a_file_cut_before_its_first_record_begins_anew(path: Path, size: int) -> None:
    path.write_bytes(MAGIC[:size])
    with opened(path) as journal:
        assert journal.torn_bytes == size
        journal.append(record(1))
    assert positions(path) == [1]


def test_a_file_that_is_no_journal_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"a letter to somebody")
    for open_it in (lambda: Journal(str(path), 1 << 20), lambda: list(JournalScan(str(path)))):
        with pytest.raises(Corrupt, match=f"{path} is not a journal of this version"):
            open_it()
    with pytest.raises(Corrupt):
        copy_journal(str(path), f"{path}.copy")
    assert path.read_bytes() == b"a letter to somebody"


def test_a_whole_record_that_cannot_be_understood_is_refused_and_left_alone(path: Path) -> None:
    filled(path, 1)
    payload = b"\x91\xc0"
    with path.open("ab") as file:
        file.write(len(payload).to_bytes(4, "big") + zlib.crc32(payload).to_bytes(4, "big") + payload)
    before = path.read_bytes()
    with pytest.raises(Corrupt, match=f"{path} holds a record at byte .* that this version cannot read"):
        Journal(str(path), 1 << 20)
    assert path.read_bytes() == before


def test_over_its_allowance_it_is_full_and_unchanged(path: Path) -> None:
    with opened(path, max_bytes=1000) as journal:
        journal.append(record(1))
        before = path.read_bytes()
        with pytest.raises(Full, match=r"has reached journal.max_bytes"):
            journal.append(record(2, b"x" * 1000))
        assert path.read_bytes() == before
        assert (journal.records, journal.position) == (1, 1)
        journal.append(record(2))
    assert positions(path) == [1, 2]


def test_clear_drops_every_record_and_positions_go_on(path: Path) -> None:
    filled(path, 1, 2)
    with opened(path) as journal:
        journal.clear()
        assert (journal.records, journal.size, journal.position) == (0, len(MAGIC), 2)
        journal.append(record(3))
    assert positions(path) == [3]


def test_compact_keeps_what_is_still_needed_in_order(path: Path) -> None:
    records = filled(path, 1, 2, 3, 4, 5)
    with opened(path) as journal:
        journal.compact(lambda one: one.position % 2 == 1)
        assert journal.records == 3
        journal.append(record(6))
        assert [one.position for one in journal.replay()] == [1, 3, 5, 6]
    with opened(path) as journal:
        assert list(journal.replay())[:3] == records[::2]
    assert os.listdir(path.parent) == ["journal"]


def test_a_sync_that_was_asked_for_survives_compaction(path: Path) -> None:
    filled(path, 1)
    with opened(path) as journal:
        sync = journal.syncing()
        journal.compact(lambda _one: True)
        sync()
    assert positions(path) == [1]


def test_what_an_earlier_process_may_have_failed_to_sync_goes_to_a_new_file_first(path: Path) -> None:
    filled(path, 1, 2)
    before = path.stat().st_ino
    with opened(path) as journal:
        journal.syncing()()
        after = path.stat().st_ino
        assert after != before
        journal.append(record(3))
        journal.syncing()()
    assert path.stat().st_ino == after
    assert positions(path) == [1, 2, 3]


def test_records_that_the_disk_has_lost_are_not_left_out_in_silence(path: Path) -> None:
    filled(path, 1)
    whole = path.stat().st_size
    filled(path, 2)
    with opened(path) as journal:
        with path.open("r+b") as file:
            file.seek(whole)
            file.write(bytes(20))
        with pytest.raises(StorageError, match="1 records cannot be read back"):
            journal.syncing()
        journal.clear()  # all of them are in the log
        journal.append(record(3))
        journal.syncing()()
    assert positions(path) == [3]


def test_a_place_where_no_journal_can_be_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=f"the journal {tmp_path}/missing/journal cannot be written"):
        Journal(str(tmp_path / "missing" / "journal"), 1 << 20)


def test_only_its_owner_can_read_it(path: Path) -> None:
    filled(path, 1)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_scan_changes_nothing_and_tells_the_torn_bytes(path: Path) -> None:
    filled(path, 1, 2)
    with path.open("ab") as file:
        file.write(b"torn")
    before = path.read_bytes()
    scan = JournalScan(str(path))
    assert [one.position for one in scan] == [1, 2]
    assert (scan.records, scan.torn_bytes, scan.overtaken) == (2, 4, False)
    assert path.read_bytes() == before


def test_a_journal_that_is_not_there_is_empty(path: Path) -> None:
    assert positions(path) == []
    copy_journal(str(path), f"{path}.copy")
    assert Path(f"{path}.copy").read_bytes() == MAGIC


def test_a_scan_notices_that_it_was_overtaken(path: Path) -> None:
    filled(path, *range(1, 6))
    with opened(path) as journal:
        scan = JournalScan(str(path))
        records = iter(scan)
        assert next(records).position == 1
        journal.clear()
        journal.append(record(6))
        list(records)
        assert scan.overtaken
        assert scan.torn_bytes == 0


def test_a_scan_of_a_journal_that_is_compacted_goes_on_in_what_it_opened(path: Path) -> None:
    filled(path, *range(1, 6))
    with opened(path) as journal:
        records = iter(JournalScan(str(path)))
        next(records)
        journal.compact(lambda one: one.position == 5)
        assert [one.position for one in records] == [2, 3, 4, 5]


def test_a_copy_ends_with_a_whole_record(path: Path) -> None:
    filled(path, 1, 2)
    with path.open("ab") as file:
        file.write(b"\0\0\0\x40torn")
    copy_journal(str(path), f"{path}.copy")
    with opened(Path(f"{path}.copy")) as copy:
        assert (copy.records, copy.torn_bytes) == (2, 0)


def test_a_copy_is_of_one_moment_while_the_journal_is_cleared_and_filled(path: Path) -> None:
    """Between two clearings positions have no gap, so a copy that mixed two moments would show one."""
    stop = threading.Event()

    def work() -> None:
        position = 0
        with opened(path) as journal:
            while not stop.is_set():
                for _ in range(position % 40 + 1):
                    position += 1
                    journal.append(
                        Record(position, 1, SYSTEM, 1, Unlink(1, b"n", 1), b"x" * (position % 5000))
                    )
                journal.clear()

    worker = threading.Thread(target=work)
    worker.start()
    seen = set()
    try:
        for number in range(150):
            copy = path.with_name(f"copy-{number % 3}")
            copy_journal(str(path), str(copy))
            found = positions(copy)
            assert found == list(range(found[0], found[0] + len(found))) if found else True
            seen.add(tuple(found[:1]))
    finally:
        stop.set()
        worker.join()
    assert len(seen) > 5
