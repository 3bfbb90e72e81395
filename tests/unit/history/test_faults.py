"""What breaks the disk under a state directory: each gives a clear error, and what was sealed stays.

The disk is a small tmpfs in a mount namespace of the child process alone, so nothing is left mounted.
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from engramfs.errors import Corrupt
from engramfs.history import exporting
from engramfs.history.repository import Repository
from engramfs.history.verify import verify
from engramfs.storage import blobs

from .conftest import Book

PRELUDE = """
    import hashlib, os, sys
    from engramfs.errors import *
    from engramfs.history import backup, catalog, exporting, importing
    from engramfs.history.commit import Commit, RowChange, apply
    from engramfs.history.repository import Repository
    from engramfs.history.verify import verify
    from engramfs.model.author import SYSTEM
    from engramfs.model.entry import Entry, Kind
    from engramfs.model.operation import Unlink
    from engramfs.model.version import Change, ChangeKind
    from engramfs.storage.journal import Journal, Record
    from engramfs.storage.journal_scan import JournalScan

    disk = sys.argv[1]
    repository = Repository.open(disk + "/state", write="the test")
    store = repository.transact(lambda writer: catalog.create(writer, "contexts/handbook", now=1))

    def write(number, size=40_000):
        content = os.urandom(size)
        digest = hashlib.sha256(content).digest()
        name = b"f%d" % number
        entry = Entry(number + 2, Kind.FILE, 0o644, size, 1, 1, digest, origin=number + 2)
        change = Change(ChangeKind.CREATED, name, Kind.FILE, 0o644, size, digest, number + 2)
        repository.transact(lambda writer: apply(writer, Commit(
            store=store.id, author=SYSTEM, via="fs", time=1, changes=[change],
            rows=[RowChange(1, name, entry)], next_node=number + 3, contents={digest: content},
            used_delta=size, files_delta=1)))

    def fill(write, what):
        for number in range(100_000):
            try:
                write(number)
            except Full as error:
                print(what, error.message)
                return number
        raise AssertionError("never full")

    def head():
        with repository.engine.reading() as reader:
            return catalog.head(reader, store.id).number

    def free():
        os.unlink(disk + "/ballast")
"""


def run(script: str, disk: Path, *, megabytes: int = 0, file_limit: int = 0) -> str:
    """Run `script` in a child whose `disk` is a tmpfs of so many MiB, or whose files are limited."""
    body = textwrap.dedent(PRELUDE) + textwrap.dedent(script)
    if file_limit:
        limits = f"({file_limit}, resource.RLIM_INFINITY)"
        body = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, {limits})\n{body}"
    command = [sys.executable, "-c", body, str(disk)]
    if megabytes:
        if os.geteuid() != 0:
            pytest.skip("mounting a small disk needs root")
        shell = (
            f"mount -t tmpfs -o size={megabytes}m engramfs-test {disk} && "
            f'head -c 1000000 /dev/zero > {disk}/ballast && exec "$@"'
        )
        command = ["unshare", "-m", "sh", "-c", shell, "sh", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_full_disk_is_said_to_be_full_and_loses_nothing_sealed(tmp_path: Path) -> None:
    output = run(
        """
        sealed = fill(write, "the log:")
        assert head() == sealed > 20, (head(), sealed)
        report = verify(repository)
        assert report.findings == [] and report.versions == sealed, report
        for again in range(3):
            try:
                write(sealed, 400_000)
            except Full:
                pass
            else:
                raise AssertionError("a full disk took it")
        assert head() == sealed
        repository.close()
        repository = Repository.open(disk + "/state", write="the test")
        assert head() == sealed and verify(repository).findings == []
        free()
        write(sealed)
        assert head() == sealed + 1
        repository.close()
        repository = Repository.open(disk + "/state", write="the test")
        assert verify(repository).findings == [] and head() == sealed + 1
        """,
        tmp_path,
        megabytes=6,
    )
    assert output.startswith(f"the log: no space left for the log in {tmp_path}/state/log; free some")


def test_a_limit_on_file_sizes_is_a_lack_of_space_and_is_named(tmp_path: Path) -> None:
    output = run(
        """
        sealed = fill(write, "the log:")
        assert head() == sealed > 5
        assert verify(repository).findings == []
        """,
        tmp_path,
        file_limit=7 << 20,
    )
    assert re.match(f"the log: no space left for (the log in )?{tmp_path}/state/log", output), output
    assert "this process may write files of 7 MiB at most (RLIMIT_FSIZE); lift it: ulimit -f" in output


def test_a_full_disk_stops_the_journal_between_two_records(tmp_path: Path) -> None:
    output = run(
        """
        journal = Journal(repository.journal_path, 1 << 30)

        def append(number):
            journal.append(Record(number + 1, store.id, SYSTEM, 1, Unlink(1, b"n", 1), b"x" * 30_000))

        written = fill(append, "the journal:")
        assert written > 20
        scan = JournalScan(repository.journal_path)
        assert [record.position for record in scan] == list(range(1, written + 1)) and not scan.torn_bytes
        try:
            journal.compact(lambda record: True)
        except Full as error:
            assert os.listdir(disk + "/state").count("journal.new") == 0
        else:
            raise AssertionError("there was space to compact")
        free()
        append(written)
        journal.close()
        journal = Journal(repository.journal_path, 1 << 30)
        assert (journal.records, journal.torn_bytes) == (written + 1, 0)
        """,
        tmp_path,
        megabytes=6,
    )
    assert output.startswith(
        f"the journal: no space left for the journal {tmp_path}/state/journal; free some"
    )


def test_a_full_disk_stops_an_import_an_export_and_a_backup(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = tmp_path_factory.mktemp("source")
    for number in range(4):
        (source / f"large{number}").write_bytes(os.urandom(3 << 20))
    output = run(
        f"""
        write(0, 3 << 20)
        place = os.fsencode(disk)
        for attempt in (
            lambda: importing.plan(repository, store, {bytes(source)!r}, SYSTEM, 5),
            lambda: [exporting.export(repository, store, None, place + b"/out%d" % n) for n in (1, 2, 3)],
            lambda: backup.backup(repository, disk + "/backup"),
        ):
            try:
                attempt()
            except Full as error:
                print(error.message)
            else:
                raise AssertionError("there was space")
        assert head() == 1
        assert [finding.severity for finding in verify(repository).findings] in ([], ["note"])
        """,
        tmp_path,
        megabytes=10,
    )
    imported, exported, backed_up = output.splitlines()
    assert imported.startswith(f"no space left for the log in {tmp_path}/state/log")
    assert re.match(f"no space left to write {tmp_path}/out[123]/f0; free some, then export again", exported)
    assert backed_up.startswith(f"no space left for the backup in {tmp_path}/backup; free some")


def test_a_state_directory_cannot_be_made_on_a_full_disk_and_can_when_there_is_space(tmp_path: Path) -> None:
    run(
        """
        repository.close()
        with open(disk + "/filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(1_000)):
                    pass
            except OSError:
                pass
        for attempt in range(2):
            try:
                Repository.open(disk + "/other", write="the test")
            except (Full, Unavailable) as error:
                print(error.message)
            else:
                raise AssertionError("there was space")
        free()
        with Repository.open(disk + "/other", write="the test") as other:
            assert verify(other).findings == []
        """,
        tmp_path,
        megabytes=6,
    )


def flip_stored_byte(book: Book, content: bytes) -> None:
    """Flip a bit of `content` where it lies in data.mdb."""
    book.repository.close()
    path = Path(book.repository.state) / "log" / "data.mdb"
    data = bytearray(path.read_bytes())
    assert data.count(content) >= 1
    at = -1
    while (at := data.find(content, at + 1)) >= 0:
        data[at + len(content) // 2] ^= 1
    path.write_bytes(data)


def test_a_flipped_byte_in_a_content_is_found_by_verify_and_by_reading(book: Book, tmp_path: Path) -> None:
    content = os.urandom(3000)
    book.write(d__broken=content, fine=b"fine")
    flip_stored_byte(book, content)
    with Repository.open(book.repository.state) as repository:
        problems = [f"{one.store}: {one.problem}" for one in verify(repository).findings]
        digest = Book(repository, book.store).tree()[b"d/broken"].digest.hex()
        assert problems == [
            f"memory/digest/state: {place}: blob {digest} has a wrong checksum; run engramfs verify"
            for place in ("d/broken", "d/broken in version 1")
        ]
        with pytest.raises(Corrupt, match=r"store memory/digest/state, d/broken: blob .* wrong checksum"):
            exporting.export(repository, book.store, None, bytes(tmp_path / "out"))
        entry = Book(repository, book.store).tree()[b"fine"]
        with repository.engine.reading() as reader:
            assert blobs.read(reader, entry.digest, entry.size) == b"fine"


def test_a_truncated_log_is_refused_with_what_to_do_and_not_touched(book: Book) -> None:
    for number in range(40):
        book.write_paths({b"f%d" % number: os.urandom(20_000)})
    book.repository.close()
    path = Path(book.repository.state) / "log" / "data.mdb"
    whole = path.read_bytes()
    os.truncate(path, 300_000)
    for write in (None, "the test"):
        with pytest.raises(
            Corrupt, match=rf"{path} is truncated: .*the stores in it cannot be served; put a backup"
        ):
            Repository.open(book.repository.state, write=write)
    assert path.read_bytes() == whole[:300_000]
    path.write_bytes(whole)
    with Repository.open(book.repository.state) as repository:
        assert verify(repository).versions == 40


def test_a_log_that_is_cut_short_while_it_is_open_is_reported_and_not_touched(book: Book) -> None:
    book.write(a=b"1")
    os.truncate(Path(book.repository.state) / "log" / "data.mdb", 8192)
    report = verify(book.repository)
    assert len(report.findings) == 1
    assert "is truncated" in report.findings[0].problem
    assert not report.sound
