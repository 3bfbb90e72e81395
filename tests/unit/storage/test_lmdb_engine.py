"""The LMDB engine keeps the promises of `storage.protocol`."""

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engramfs.errors import Corrupt, StorageError
from engramfs.storage import keys
from engramfs.storage.lmdb_engine import SLACK, LmdbEngine, MapFull
from engramfs.storage.protocol import Table

TABLE = Table.META


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LmdbEngine]:
    with contextlib.closing(LmdbEngine(str(tmp_path / "log"))) as engine:
        yield engine


def fill(engine: LmdbEngine, *names: bytes) -> None:
    with engine.writing() as writer:
        for name in names:
            writer.put(TABLE, name, b"value of " + name)


def test_at_or_after_finds_the_row_itself_and_else_the_next(engine: LmdbEngine) -> None:
    fill(engine, b"b", b"d")
    with engine.reading() as reader:
        assert reader.at_or_after(TABLE, b"a") == (b"b", b"value of b")
        assert reader.at_or_after(TABLE, b"b") == (b"b", b"value of b")
        assert reader.at_or_after(TABLE, b"c") == (b"d", b"value of d")
        assert reader.at_or_after(TABLE, b"d\0") is None


def test_at_or_before_finds_the_row_itself_and_else_the_one_before(engine: LmdbEngine) -> None:
    fill(engine, b"b", b"d")
    with engine.reading() as reader:
        assert reader.at_or_before(TABLE, b"a\xff") is None
        assert reader.at_or_before(TABLE, b"b") == (b"b", b"value of b")
        assert reader.at_or_before(TABLE, b"c") == (b"b", b"value of b")
        assert reader.at_or_before(TABLE, b"\xff" * 511) == (b"d", b"value of d")


def test_an_empty_table_has_nothing_before_or_after(engine: LmdbEngine) -> None:
    with engine.reading() as reader:
        assert reader.at_or_after(TABLE, b"a") is None
        assert reader.at_or_before(TABLE, b"a") is None
        assert list(reader.scan(TABLE, b"a", b"z")) == []
        assert list(reader.scan(TABLE, b"a", b"z", reverse=True)) == []


@pytest.mark.parametrize(
    ("start", "stop", "found"),
    [
        (b"a", b"z", [b"b", b"c", b"d"]),
        (b"b", b"d", [b"b", b"c"]),
        (b"b\0", b"d\0", [b"c", b"d"]),
        (b"e", b"z", []),
        (b"a", b"b", []),
    ],
)
def test_scan_includes_its_start_and_excludes_its_stop_in_both_directions(
    engine: LmdbEngine, start: bytes, stop: bytes, found: list[bytes]
) -> None:
    fill(engine, b"b", b"c", b"d")
    with engine.reading() as reader:
        assert [key for key, _ in reader.scan(TABLE, start, stop)] == found
        assert [key for key, _ in reader.scan(TABLE, start, stop, reverse=True)] == found[::-1]


def test_two_scans_of_one_transaction_do_not_disturb_each_other(engine: LmdbEngine) -> None:
    fill(engine, b"a", b"b", b"c")
    with engine.reading() as reader:
        pairs = [
            (one, other)
            for one, _ in reader.scan(TABLE, b"a", b"z")
            for other, _ in reader.scan(TABLE, b"a", b"z")
        ]
    assert len(pairs) == 9


def test_delete_says_whether_there_was_such_a_row(engine: LmdbEngine) -> None:
    fill(engine, b"a")
    with engine.writing() as writer:
        assert writer.delete(TABLE, b"a")
        assert not writer.delete(TABLE, b"a")


def test_a_transaction_that_fails_leaves_nothing(engine: LmdbEngine) -> None:
    def fail_half_way() -> None:
        with engine.writing() as writer:
            writer.put(TABLE, b"half", b"")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    with engine.reading() as reader:
        assert reader.get(TABLE, b"half") is None


def test_a_reader_keeps_its_snapshot_while_another_thread_writes(engine: LmdbEngine) -> None:
    fill(engine, b"a")
    with engine.reading() as reader:
        writer = threading.Thread(target=fill, args=(engine, b"b"))
        writer.start()
        writer.join()
        assert reader.get(TABLE, b"b") is None
    with engine.reading() as reader:
        assert reader.get(TABLE, b"b") == b"value of b"


def test_a_full_map_is_grown_and_the_transaction_can_be_tried_again(tmp_path: Path) -> None:
    value = b"x" * 10_000
    with contextlib.closing(LmdbEngine(str(tmp_path), map_size=1 << 20)) as engine:
        grown = 0
        for number in range(500):
            while True:
                try:
                    with engine.writing() as writer:
                        writer.put(TABLE, keys.u64(number), value)
                    break
                except MapFull:
                    grown += 1
        assert grown >= 2
        with engine.reading() as reader:
            assert sum(1 for _ in reader.scan(TABLE, b"", b"\xff")) == 500


def test_growing_waits_for_readers_in_other_threads(tmp_path: Path) -> None:
    with contextlib.closing(LmdbEngine(str(tmp_path), map_size=1 << 20)) as engine:
        fill(engine, b"a")
        reading, ended = threading.Event(), []

        def read_slowly() -> None:
            with engine.reading() as reader:
                reading.set()
                time.sleep(0.2)
                ended.append(reader.get(TABLE, b"a"))

        thread = threading.Thread(target=read_slowly)
        thread.start()
        reading.wait()
        with pytest.raises(MapFull), engine.writing() as writer:
            writer.put(TABLE, b"big", b"x" * (2 << 20))
        assert ended == [b"value of a"]
        thread.join()


def test_a_reader_in_another_process_follows_a_map_that_grew(tmp_path: Path) -> None:
    with contextlib.closing(LmdbEngine(str(tmp_path), map_size=1 << 20)) as engine:
        fill(engine, b"before")
        context = multiprocessing.get_context("spawn")
        opened, grown, answers = context.Event(), context.Event(), context.Queue()
        process = context.Process(target=_read_when_grown, args=(str(tmp_path), opened, grown, answers))
        process.start()
        try:
            assert opened.wait(30)
            for number in range(300):
                with contextlib.suppress(MapFull), engine.writing() as writer:
                    writer.put(TABLE, keys.u64(number), b"x" * 10_000)
            fill(engine, b"after")
            grown.set()
            assert answers.get(timeout=30) == b"value of after"
        finally:
            grown.set()
            process.join(30)


def _read_when_grown(directory: str, opened, grown, answers) -> None:  # type: ignore[no-untyped-def]
    engine = LmdbEngine(directory, read_only=True, map_size=1 << 20)
    opened.set()
    grown.wait(30)
    with engine.reading() as reader:
        answers.put(reader.get(TABLE, b"after"))


def test_two_processes_read_consistent_snapshots_while_one_writes(engine: LmdbEngine) -> None:
    """Each transaction raises two counters together; no reader ever sees them apart."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    stop = context.Event()
    fill(engine, b"start")
    readers = [context.Process(target=_compare, args=(engine.directory, stop, answers)) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        ready = [answers.get(timeout=30) for _ in readers]
        assert ready == ["ready", "ready"]
        for number in range(300):
            with engine.writing() as writer:
                writer.put(TABLE, b"one", keys.u64(number))
                writer.put(TABLE, b"two", keys.u64(number))
        stop.set()
        seen = [answers.get(timeout=30) for _ in readers]
    finally:
        stop.set()
        for reader in readers:
            reader.join(30)
    assert all(torn == 0 and snapshots > 1 for torn, snapshots in seen), seen


def _compare(directory: str, stop, answers) -> None:  # type: ignore[no-untyped-def]
    engine = LmdbEngine(directory, read_only=True)
    answers.put("ready")
    torn, seen = 0, set[bytes | None]()
    while not stop.is_set() or not seen:
        with engine.reading() as reader:
            one, two = reader.get(TABLE, b"one"), reader.get(TABLE, b"two")
        torn += one != two
        seen.add(one)
    with engine.reading() as reader:
        seen.add(reader.get(TABLE, b"one"))
    answers.put((torn, len(seen)))


def test_the_file_stays_longer_than_its_pages_need(engine: LmdbEngine) -> None:
    """LMDB does not write pages that a transaction took and freed again; they must not look cut off."""
    path = Path(engine.directory) / "data.mdb"
    for size in (2_000, 200_000):
        with engine.writing() as writer:
            for number in range(60):
                writer.put(TABLE, keys.u64(number), b"x" * size)
            for number in range(60):
                writer.delete(TABLE, keys.u64(number))
        assert path.stat().st_size >= engine.usage().used + SLACK // 2
        assert engine.check() == []


def test_a_truncated_log_is_refused_at_the_start(tmp_path: Path) -> None:
    with contextlib.closing(LmdbEngine(str(tmp_path))) as engine, engine.writing() as writer:
        for number in range(200):
            writer.put(TABLE, keys.u64(number), b"x" * 4000)
    os.truncate(tmp_path / "data.mdb", 100_000)
    for read_only in (True, False):
        with pytest.raises(Corrupt, match=r"data\.mdb is truncated.*the stores in it cannot.*backup"):
            LmdbEngine(str(tmp_path), read_only=read_only)
    assert (tmp_path / "data.mdb").stat().st_size == 100_000


@pytest.mark.parametrize("size", [0, 100, 4096])
def test_a_log_without_its_first_pages_is_refused_and_not_begun_anew(tmp_path: Path, size: int) -> None:
    LmdbEngine(str(tmp_path)).close()
    os.truncate(tmp_path / "data.mdb", size)
    for read_only in (True, False):
        with pytest.raises(Corrupt, match="the stores in it cannot be served"):
            LmdbEngine(str(tmp_path), read_only=read_only)


def test_truncation_while_it_is_open_is_found_by_check(engine: LmdbEngine) -> None:
    fill(engine, b"a")
    os.truncate(Path(engine.directory) / "data.mdb", 8192)
    assert "truncated" in engine.check()[0]


def test_a_copy_holds_what_was_committed(engine: LmdbEngine, tmp_path: Path) -> None:
    fill(engine, b"a")
    (tmp_path / "copy").mkdir()
    engine.copy(str(tmp_path / "copy"))
    fill(engine, b"b")
    with (
        contextlib.closing(LmdbEngine(str(tmp_path / "copy"), read_only=True)) as copy,
        copy.reading() as reader,
    ):
        assert reader.get(TABLE, b"a") == b"value of a"
        assert reader.get(TABLE, b"b") is None


def test_a_directory_without_a_log_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=str(tmp_path)):
        LmdbEngine(str(tmp_path), read_only=True)
    assert os.listdir(tmp_path) in ([], ["lock.mdb"])
