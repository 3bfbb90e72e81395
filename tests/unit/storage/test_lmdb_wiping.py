"""What was removed from LMDB's file is not in it any more, and nothing else is gone."""

import contextlib
import hashlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from engramfs.errors import Unavailable
from engramfs.storage import lmdb_wiping
from engramfs.storage.lmdb_engine import LmdbEngine
from engramfs.storage.lmdb_pages import Meta, Pages
from engramfs.storage.lmdb_wiping import SETTLING, Wiping
from engramfs.storage.protocol import Table

from . import beside_wiping

SECRET = b"SECRET-hunter2-"
SIZES = (1, 5, 100, 130, 260, 400, 3000)  # of values, in secrets: in a leaf, in one page, in many


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@contextlib.contextmanager
def opened(log: Path) -> Iterator[LmdbEngine]:
    engine = LmdbEngine(str(log))
    try:
        yield engine
    finally:
        engine.close()


def put_and_remove(engine: LmdbEngine, seed: int = 1) -> None:
    """Many values with the secret come and go, between others that stay."""
    chance, known = random.Random(seed), []
    for number in range(120):
        with engine.writing() as writer:
            writer.put(Table.HISTORY, b"kept %05d" % number, hashlib.sha256(b"%d" % number).digest() * 9)
            for _ in range(30):
                known.append(chance.randbytes(8))
                writer.put(Table.BLOBS, known[-1], SECRET * chance.choice(SIZES))
            chance.shuffle(known)
            for _ in range(15):
                writer.delete(Table.BLOBS, known.pop())
    with engine.writing() as writer:
        for key in known:
            writer.delete(Table.BLOBS, key)


def age(engine: LmdbEngine) -> None:
    for number in range(SETTLING):
        with engine.writing() as writer:
            writer.put(Table.META, b"age", b"%d" % number)


def found(log: Path) -> int:
    return (log / "data.mdb").read_bytes().count(SECRET)


def wipe(log: Path) -> None:
    with Wiping(str(log)) as wiping:
        wiping.wipe_gaps()
    with opened(log) as engine:
        age(engine)
    with Wiping(str(log)) as wiping:
        wiping.wipe_free_pages()


def check_kept(log: Path, count: int) -> None:
    with opened(log) as engine, engine.reading() as reader:
        kept = list(reader.scan(Table.HISTORY, b"", b"\xff"))
    assert kept == [
        (b"kept %05d" % number, hashlib.sha256(b"%d" % number).digest() * 9) for number in range(count)
    ]


def test_nothing_of_what_was_removed_is_in_the_file_and_its_space_is_the_disks_again(log: Path) -> None:
    with opened(log) as engine:
        put_and_remove(engine)
    assert found(log) > 100_000
    wipe(log)
    assert found(log) == 0
    with Wiping(str(log)) as wiping:
        size = wiping.measure()
    assert size.free > 10 << 20
    assert size.disk < size.used + (1 << 20)
    check_kept(log, 120)


def test_the_space_can_be_used_again(log: Path) -> None:
    for seed in range(3):
        with opened(log) as engine:
            put_and_remove(engine, seed)
        wipe(log)
        assert found(log) == 0
    check_kept(log, 120)


def test_where_the_disk_makes_no_holes_zeros_are_written(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(log) as engine:
        put_and_remove(engine)
    monkeypatch.setattr(lmdb_wiping, "_HOLE", 0x7F)  # which no disk knows
    wipe(log)
    assert found(log) == 0
    check_kept(log, 120)


def test_what_a_reader_sees_stays_until_it_ends(log: Path) -> None:
    with opened(log) as engine, engine.writing() as writer:
        writer.put(Table.BLOBS, b"key", SECRET * 3000)
    reader = beside("read", log)
    try:
        with opened(log) as engine:
            with engine.writing() as writer:
                writer.delete(Table.BLOBS, b"key")
            age(engine)
        with Wiping(str(log)) as wiping:
            wiping.wipe_free_pages()
            assert wiping.held() > 40_000
        assert found(log) >= 3000
        reader.communicate(timeout=20)
        assert reader.returncode == 0
        with Wiping(str(log)) as wiping:
            wiping.wipe_free_pages()
            assert wiping.held() == 0
        assert found(log) == 0
    finally:
        end(reader)


def beside(role: str, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, beside_wiping.__file__, role, str(log)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def check_written(log: Path) -> int:
    """Every key has the value of the last transaction that set it; how many there were."""
    with opened(log) as engine, engine.reading() as reader:
        count = int(reader.get(Table.META, beside_wiping.COUNT) or b"0")
        rows = dict(reader.scan(Table.BLOBS, b"", b"\xff"))
    newest = range(max(1, count - beside_wiping.KEYS + 1), count + 1)
    assert rows == {b"%d" % (each % beside_wiping.KEYS): beside_wiping.value(each) for each in newest}
    return count


@pytest.mark.parametrize("rounds", [4, pytest.param(150, marks=pytest.mark.soak)])
def test_who_writes_beside_it_loses_nothing_and_either_may_be_killed(log: Path, rounds: int) -> None:
    chance, count = random.Random(rounds), 0
    with opened(log):
        pass
    for _ in range(rounds):
        writer, wiper = beside("write", log), beside("wipe", log)
        try:
            time.sleep(chance.uniform(0.1, 0.6))
            first, second = chance.sample([writer, wiper], 2)
            end(first)
            time.sleep(chance.uniform(0, 0.2))
            assert second.poll() is None
        finally:
            end(writer)
            end(wiper)
        now = check_written(log)
        assert now > count
        count = now
    with opened(log) as engine:
        age(engine)
    with Wiping(str(log)) as wiping:
        wiping.wipe_free_pages()
    free = what_free_pages_hold(log)
    assert free
    assert free.count(0) == len(free)


def what_free_pages_hold(log: Path) -> bytes:
    """All bytes of the pages that are free for good."""
    with open(log / "data.mdb", "rb") as file:
        pages = Pages(file.fileno(), os.sysconf("SC_PAGESIZE"))
        meta = max(pages.metas(), key=lambda each: each.transaction)
        free = [number for freed, some in pages.free(meta) if freed < meta.transaction - 1 for number in some]
        return b"".join(os.pread(file.fileno(), pages.size, number * pages.size) for number in free)


def test_pages_that_do_not_add_up_are_not_touched(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(log) as engine:
        put_and_remove(engine)
    before = found(log)
    everything = Pages.free

    def one_is_missing(pages: Pages, meta: Meta) -> Iterator[tuple[int, Sequence[int]]]:
        for number, (transaction, numbers) in enumerate(everything(pages, meta)):
            yield transaction, numbers[1:] if number == 0 else numbers

    monkeypatch.setattr(Pages, "free", one_is_missing)
    with Wiping(str(log)) as wiping, pytest.raises(Unavailable, match="do not add up"):
        wiping.wipe_free_pages()
    assert found(log) == before


def test_a_file_of_another_format_is_refused(log: Path) -> None:
    with opened(log) as engine:
        put_and_remove(engine)
    with Wiping(str(log)) as wiping:
        with open(log / "data.mdb", "r+b") as file:
            for page in range(2):
                file.seek(page * 4096 + 16 + 4)
                file.write(b"\x02")
        with pytest.raises(Unavailable, match="another LMDB"):
            wiping.wipe_free_pages()
