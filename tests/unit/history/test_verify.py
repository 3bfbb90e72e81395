"""`verify` finds each kind of damage, names the store and the path, and changes nothing."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from engramfs.errors import NotFound
from engramfs.history import catalog
from engramfs.history.log import decode_version
from engramfs.history.repository import Repository
from engramfs.history.tree import decode_entry
from engramfs.history.verify import Finding, verify
from engramfs.model.author import SYSTEM
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.operation import Link, Update
from engramfs.storage import blobs, keys
from engramfs.storage.journal import Journal, Record
from engramfs.storage.protocol import Table, Writer

from .conftest import Book, Shelf, replace

encode = msgspec.msgpack.encode


@pytest.fixture
def written(book: Book, shelf: Shelf) -> Book:
    """Three versions of a store, beside another store that shares a content with it."""
    book.write(a=b"one", d__b=b"two")
    book.write(a=b"three")
    book.write(c=b"four")
    shelf("contexts/other").write(z=b"two")
    return book


def found(book: Book) -> list[str]:
    findings = verify(book.repository).findings
    return [f"{one.store}: {one.problem}" for one in findings if one.severity == "error"]


def test_what_is_sound_has_no_findings(written: Book) -> None:
    report = verify(written.repository)
    assert report.findings == []
    assert report.sound
    assert (report.stores, report.versions, report.blobs, report.bytes) == (2, 4, 4, 15)


def test_only_the_named_stores_are_checked(written: Book) -> None:
    report = verify(written.repository, ["contexts/other"])
    assert (report.stores, report.versions, report.blobs) == (1, 1, 1)
    with pytest.raises(NotFound, match="there is no store contexts/missing"):
        verify(written.repository, ["contexts/missing"])


def test_progress_tells_the_store_and_the_rows(written: Book) -> None:
    seen: list[tuple[str, int]] = []
    verify(written.repository, None, lambda store, rows: seen.append((store, rows)))
    assert [rows for store, rows in seen if store == "contexts/other"] == [1, 2, 3]
    assert [rows for store, rows in seen if store == STORE] == [3, 7, 12]


def live(book: Book, path: bytes) -> bytes:
    parent = book.tree()[path.rpartition(b"/")[0]].node
    return keys.live(book.store.id, parent, path.rpartition(b"/")[2])


def version_row(book: Book, number: int) -> bytes:
    return keys.version(book.store.id, number)


def put_content(writer: Writer, book: Book, value: bytes) -> None:
    """Put `value` in the place of the content of `a`."""
    writer.put(Table.BLOBS, keys.blob(book.tree()[b"a"].digest, 0), value)


def put_unknown_node(writer: Writer, book: Book) -> None:
    altered(writer, Table.LIVE, live(book, b"a"), node=99)
    writer.put(Table.NODES, keys.place(book.store.id, 99, ROOT_NODE, b"a"), b"")


def altered(writer: Writer, table: Table, key: bytes, **changes: object) -> None:
    """Alter an entry or version in place."""
    value = writer.get(table, key)
    assert value is not None
    old = decode_version(value) if table is Table.VERSIONS else decode_entry(value)
    writer.put(table, key, encode(replace(old, **changes)))


Damage = Callable[[Writer, Book], object]
STORE = "memory/digest/state"
CASES: dict[str, tuple[Damage, list[str]]] = {
    "a header that was altered": (
        lambda writer, book: altered(writer, Table.VERSIONS, version_row(book, 2), author=SYSTEM),
        [f"{STORE}: version 2 does not have its digest: its header was altered"],
    ),
    "a header with a digest made to match": (
        lambda writer, book: altered(writer, Table.VERSIONS, version_row(book, 2), digest=b"x" * 32),
        [
            f"{STORE}: version 2 does not have its digest: its header was altered",
            f"{STORE}: version 3 does not follow from the version before it",
        ],
    ),
    "a header that cannot be read": (
        lambda writer, book: writer.put(Table.VERSIONS, keys.version(book.store.id, 2), b"\xc1"),
        [f"{STORE}: version 2: the header of a version cannot be read"],
    ),
    "a missing version": (
        lambda writer, book: writer.delete(Table.VERSIONS, keys.version(book.store.id, 2)),
        [f"{STORE}: version 2 is missing"],
    ),
    "missing versions at the end": (
        lambda writer, book: [writer.delete(Table.VERSIONS, keys.version(book.store.id, n)) for n in (2, 3)],
        [f"{STORE}: versions 2 to 3 are missing"],
    ),
    "a version above the head": (
        lambda writer, book: writer.put(Table.VERSIONS, keys.version(book.store.id, 4), b"\x90"),
        [f"{STORE}: the table versions has rows above the head, which is version 3"],
    ),
    "changes that were altered": (
        lambda writer, book: writer.put(Table.CHANGES, keys.changes(book.store.id, 2, 0), b"\x90"),
        [f"{STORE}: version 2 does not have its changes: they were altered"],
    ),
    "missing changes": (
        lambda writer, book: writer.delete(Table.CHANGES, keys.changes(book.store.id, 3, 0)),
        [f"{STORE}: version 3 does not have its changes: they were altered"],
    ),
    "another head": (
        lambda writer, book: catalog.put_head(
            writer, book.store.id, replace(catalog.head(writer, book.store.id), digest=b"x" * 32)
        ),
        [f"{STORE}: the head does not have the digest of version 3"],
    ),
    "wrong totals": (
        lambda writer, book: catalog.put_head(
            writer, book.store.id, replace(catalog.head(writer, book.store.id), used=5, files=9)
        ),
        [f"{STORE}: the head says 9 entries with 5 bytes, there are 4 with 12"],
    ),
    "a head that cannot be read": (
        lambda writer, book: writer.put(Table.HEADS, keys.u32(book.store.id), b"\xc1"),
        [f"{STORE}: the head of store number 1 cannot be read", f"{STORE}: its head cannot be read"],
    ),
    "a row of the head that is gone": (
        lambda writer, book: writer.delete(Table.LIVE, live(book, b"d/b")),
        [f"{STORE}: d/b in version 3: it is missing at the head"],
    ),
    "a directory that is gone": (
        lambda writer, book: writer.delete(Table.LIVE, live(book, b"d")),
        [f"{STORE}: ?/b: directory 3, which holds it, does not exist"],
    ),
    "a row of the head that is another": (
        lambda writer, book: altered(writer, Table.LIVE, live(book, b"d/b"), mode=0),
        [f"{STORE}: d/b: the head is not what the newest version says"],
    ),
    "a row of the head that cannot be read": (
        lambda writer, book: writer.put(Table.LIVE, live(book, b"a"), b"\xc1"),
        [f"{STORE}: a: its entry cannot be read"],
    ),
    "a row of history that cannot be read": (
        lambda writer, book: writer.put(
            Table.HISTORY, keys.history(book.store.id, ROOT_NODE, b"a", 1), b"\xc1"
        ),
        [f"{STORE}: a in version 1: its entry cannot be read"],
    ),
    "a row of history for a version that does not exist": (
        lambda writer, book: writer.put(Table.HISTORY, keys.history(book.store.id, ROOT_NODE, b"n", 9), b""),
        [f"{STORE}: n in version 9: its row is of version 9, which does not exist"],
    ),
    "a node id that was never given out": (
        put_unknown_node,
        [f"{STORE}: a: its node id 99 was never given out"],
    ),
    "a node without its place": (
        lambda writer, book: writer.delete(Table.NODES, keys.place(book.store.id, 2, ROOT_NODE, b"a")),
        [f"{STORE}: a: node 2 does not know that it has this name"],
    ),
    "a wrong number of links": (
        lambda writer, book: altered(writer, Table.LIVE, live(book, b"a"), links=2),
        [f"{STORE}: a: it has 1 names and says 2"],
    ),
    "a name that is not allowed": (
        lambda writer, book: writer.put(
            Table.LIVE, keys.live(book.store.id, ROOT_NODE, b".."), encode(book.tree()[b"a"])
        ),
        [f"{STORE}: ..: its name is not allowed"],
    ),
    "a file without a digest": (
        lambda writer, book: altered(writer, Table.LIVE, live(book, b"a"), digest=b""),
        [f"{STORE}: a: it is a file without a digest"],
    ),
    "a content that is gone": (
        lambda writer, book: writer.delete(Table.BLOBS, keys.blob(book.tree()[b"a"].digest, 0)),
        [f"{STORE}: a: blob {{a}} is missing part 0", f"{STORE}: a in version 2: blob {{a}} is missing"],
    ),
    "a content with a flipped byte": (
        lambda writer, book: put_content(writer, book, blobs.pack(b"three")[:-1] + b"E"),
        [f"{STORE}: a: blob {{a}} has a wrong checksum", f"{STORE}: a in version 2: blob {{a}} has a wrong"],
    ),
    "a content with a checksum made to match": (
        lambda writer, book: put_content(writer, book, blobs.pack(b"threE")),
        [f"{STORE}: a: blob {{a}} holds another content"],
    ),
    "a content that is shorter": (
        lambda writer, book: put_content(writer, book, blobs.pack(b"th")),
        [f"{STORE}: a: blob {{a}} has 2 bytes instead of 5"],
    ),
    "a size that is not that of the content": (
        lambda writer, book: altered(
            writer, Table.HISTORY, keys.history(book.store.id, ROOT_NODE, b"a", 2), size=6
        ),
        [f"{STORE}: a in version 2: its size is given as 6 bytes, its content has 5"],
    ),
    "a version that is not in the feed": (
        lambda writer, book: writer.delete(Table.FEED, keys.u64(2)),
        [f"{STORE}: the feed has version 3 after 1"],
    ),
    "a feed that ends early": (
        lambda writer, book: writer.delete(Table.FEED, keys.u64(3)),
        [f"{STORE}: the feed ends with version 2, the head is version 3"],
    ),
    "a counter of the feed that is too low": (
        lambda writer, book: writer.put(Table.META, keys.NEXT_FEED_KEY, keys.u64(4)),
        [": the counter of the feed is not above its last entry"],
    ),
    "a name without a store": (
        lambda writer, book: writer.put(Table.NAMES, b"contexts/none", keys.u32(77)),
        ["contexts/none: the name has no store"],
    ),
    "a store without its name": (
        lambda writer, book: writer.delete(Table.NAMES, STORE.encode()),
        [f"{STORE}: the store cannot be found by its name"],
    ),
    "a store whose row cannot be read": (
        lambda writer, book: writer.put(Table.STORES, keys.u32(book.store.id), b"\xc1"),
        [": the row of store number 1 cannot be read"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_damage_is_found_and_named(written: Book, case: str) -> None:
    damage, expected = CASES[case]
    digest = written.tree()[b"a"].digest.hex()
    written.repository.transact(lambda writer: damage(writer, written))
    problems = found(written)
    for one in expected:
        assert any(problem.startswith(one.format(a=digest)) for problem in problems), problems
    assert not any(problem.startswith("contexts/other") for problem in problems)


def test_a_content_that_two_stores_share_is_reported_for_both(written: Book) -> None:
    digest = written.tree()[b"d/b"].digest
    written.repository.transact(lambda writer: writer.delete(Table.BLOBS, keys.blob(digest, 0)))
    assert [problem.split(": blob")[0] for problem in found(written)] == [
        "contexts/other: z",
        "contexts/other: z in version 1",
        f"{STORE}: d/b",
        f"{STORE}: d/b in version 1",
    ]


def test_a_damaged_content_that_no_version_names_is_found(written: Book) -> None:
    digest = b"\x07" * 32
    written.repository.transact(
        lambda writer: writer.put(Table.BLOBS, keys.blob(digest, 0), blobs.pack(b"x"))
    )
    assert found(written) == [f": blob {digest.hex()} holds another content (no version names it)"]


def test_more_rows_than_a_batch_are_all_checked(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engramfs.history.verify.batches.ROWS", 3)
    monkeypatch.setattr("engramfs.history.verify.stores.ROWS", 3)
    for number in range(10):
        book.write_paths({b"f%d" % number: b"%d" % number})
    assert verify(book.repository).findings == []
    book.repository.transact(lambda writer: altered(writer, Table.LIVE, live(book, b"f7"), mode=0))
    assert found(book) == [f"{STORE}: f7: the head is not what the newest version says"]


def test_it_reads_beside_a_writer_without_false_alarms(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions are added between all the batches of a check."""
    monkeypatch.setattr("engramfs.history.verify.batches.ROWS", 2)
    monkeypatch.setattr("engramfs.history.verify.stores.ROWS", 2)
    for number in range(8):
        book.write_paths({b"f%d" % number: b"%d" % number, b"d/f%d" % number: b"x"})
    more = iter(range(40))

    def write_meanwhile(store: str, rows: int) -> None:
        number = next(more, None)
        if number is None:
            return
        book.write_paths({b"new%d" % number: b"n%d" % number, b"f1": b"changed %d" % number})
        if number < 3:
            book.remove(f"f{number + 4}")
        book.rename("d", f"d{number}")
        book.rename(f"d{number}", "d")

    assert verify(book.repository, None, write_meanwhile).findings == []
    assert book.head().number > 100


class Journalled:
    """A journal of a worker that is still running."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.journal = Journal(repository.journal_path, 1 << 20)

    def add(self, store: int, content: bytes | None, digest: bytes) -> None:
        entry = Entry(9, Kind.FILE, 0o644, len(content or b""), 1, 1, digest, origin=9)
        operation = Link(ROOT_NODE, b"n", entry) if content is None else Update(entry)
        record = Record(self.journal.position + 1, store, SYSTEM, 1, operation, content)
        self.journal.append(record)

    def findings(self) -> list[Finding]:
        return verify(self.repository).findings


@pytest.fixture
def journalled(written: Book) -> Iterator[Journalled]:
    journalled = Journalled(written.repository)
    yield journalled
    journalled.journal.close()


def test_a_journal_in_use_is_read_and_left_as_it_is(journalled: Journalled, written: Book) -> None:
    journalled.add(written.store.id, b"one", written.tree(1)[b"a"].digest)
    journalled.add(written.store.id, None, written.tree()[b"a"].digest)
    before = Path(journalled.journal.path).read_bytes()
    assert journalled.findings() == []
    assert Path(journalled.journal.path).read_bytes() == before


def test_a_torn_tail_is_a_note_and_is_left_for_the_worker(journalled: Journalled, written: Book) -> None:
    journalled.add(written.store.id, b"one", written.tree(1)[b"a"].digest)
    path = Path(journalled.journal.path)
    torn = path.read_bytes() + b"\0\0\1\0torn"
    path.write_bytes(torn)
    report = verify(journalled.repository)
    assert [(one.severity, one.problem) for one in report.findings] == [
        ("note", "the journal ends with 8 bytes of a record that was never acknowledged")
    ]
    assert report.sound
    assert path.read_bytes() == torn


def test_a_journal_that_names_a_content_which_is_nowhere_is_damage(
    journalled: Journalled, written: Book
) -> None:
    journalled.add(written.store.id, None, b"\x09" * 32)
    assert [(one.store, one.problem) for one in journalled.findings()] == [
        (STORE, f"the journal names blob {'09' * 32}, which is nowhere")
    ]


def test_a_file_that_is_no_journal_is_damage(written: Book) -> None:
    journal = written.repository.journal_path
    Path(journal).write_bytes(b"something else")
    assert [one.problem for one in verify(written.repository).findings] == [
        f"{journal} is not a journal of this version; move it away to start without it"
    ]
