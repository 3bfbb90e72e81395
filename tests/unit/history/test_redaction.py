"""What is redacted is gone from every row; who and when stay, and the chain still proves itself."""

import threading

import msgspec
import pytest

from engramfs.errors import NotFound, Redacted, Refused, UsageError
from engramfs.history import log, restore
from engramfs.history.commit import apply
from engramfs.history.directory_redaction import redact_directory
from engramfs.history.occurrences import standing
from engramfs.history.redaction import redact
from engramfs.history.redaction_rows import Removed, redactions
from engramfs.history.verify import verify
from engramfs.model.author import Author
from engramfs.model.entry import Kind
from engramfs.model.version import Change, ChangeKind
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Table

from .conftest import AUTHOR, Book, Shelf, replace
from .test_lineage import save_atomically

PERSON = Author("person", actor="root")
SECRET = b"the password is hunter2"


def take_out(book: Book, number: int, path: bytes, *, everywhere: bool = False) -> Removed:
    name = book.store.name
    removed = redact(book.repository, name, number, path, PERSON, "a secret", 5, everywhere=everywhere)
    report = verify(book.repository)
    assert report.sound, report.findings
    return removed


def changes(book: Book, number: int) -> list[Change]:
    with book.repository.engine.reading() as reader:
        return list(log.changes(reader, book.store.id, number))


def rows_that_hold(book: Book, what: bytes) -> list[Table]:
    """The tables, but that of the contents, in which `what` is found anywhere."""
    with book.repository.engine.reading() as reader:
        return [
            table
            for table in Table
            if table is not Table.BLOBS
            for key, value in reader.scan(table, b"", b"\xff" * 20)
            if what in key or what in value
        ]


def test_content_digest_and_path_go_where_no_other_version_uses_the_name(book: Book) -> None:
    book.write(secret=SECRET, other=b"other")
    digest = book.tree()[b"secret"].digest
    book.remove("secret")
    removed = take_out(book, 1, b"secret")
    assert (removed.versions, removed.changes) == ((1, 2), 2)
    assert rows_that_hold(book, digest) == []
    assert rows_that_hold(book, b"secret") == [Table.REDACTED] * 2  # the reason: "a secret"
    assert set(book.tree(1)) == {b"", b"other"}
    assert [one.path for one in changes(book, 1)] == [b"other", b""]
    assert [(one.op, one.path, one.is_redacted) for one in changes(book, 2)] == [
        (ChangeKind.DELETED, b"", True)
    ]


def test_a_name_that_others_use_says_that_it_was_redacted(book: Book) -> None:
    book.write(notes=SECRET)
    book.write(notes=b"clean")
    digest = book.tree(1)[b"notes"].digest
    take_out(book, 1, b"notes")
    entry = book.tree(1)[b"notes"]
    assert (entry.is_redacted, entry.kind, entry.size) == (True, Kind.FILE, len(SECRET))
    assert book.tree()[b"notes"].digest != entry.digest
    assert rows_that_hold(book, digest) == []
    assert [(one.path, one.from_digest) for one in changes(book, 2)] == [(b"notes", b"")]
    with book.repository.engine.reading() as reader, pytest.raises(Redacted):
        blobs.read(reader, entry.digest, entry.size)


def test_who_and_when_and_the_digest_of_the_version_stay(book: Book) -> None:
    book.write(notes=SECRET)
    book.write(notes=b"clean")
    with book.repository.engine.reading() as reader:
        before = list(log.versions(reader, book.store.id))
    take_out(book, 1, b"notes")
    with book.repository.engine.reading() as reader:
        assert list(log.versions(reader, book.store.id)) == before
        [redaction] = redactions(reader, book.store.id, 1)
    assert before[-1].author == AUTHOR
    assert (redaction.author, redaction.reason, redaction.time, redaction.changes) == (
        PERSON,
        "a secret",
        5,
        1,
    )


def test_every_version_that_shows_it_there_loses_it_and_no_other(book: Book) -> None:
    book.write(notes=b"first")
    book.write(notes=SECRET)
    book.write(other=b"meanwhile")
    book.write(notes=b"last")
    removed = take_out(book, 3, b"notes")
    assert [(span.first, span.last) for span in removed.spans] == [(2, 3)]
    assert [book.tree(number)[b"notes"].is_redacted for number in (1, 2, 3, 4)] == [False, True, True, False]


def test_what_the_head_holds_is_refused_until_there_is_a_newer_version(book: Book) -> None:
    book.write(notes=SECRET)
    book.write(other=b"other")
    with pytest.raises(Refused, match="notes in memory/digest/state still has that content at the head"):
        take_out(book, 1, b"notes")
    book.write(notes=b"clean")
    take_out(book, 1, b"notes")


def test_what_stands_elsewhere_stays_and_is_said(book: Book, shelf: Shelf) -> None:
    book.write(notes=SECRET, copy=SECRET)
    shelf("contexts/other").write(leaked=SECRET)
    book.write(notes=b"clean")
    removed = take_out(book, 1, b"notes")
    assert [
        (one.store, one.version, one.path) for one in standing(book.repository.engine, removed.content, 9)
    ] == [
        ("memory/digest/state", 1, "copy"),
        ("contexts/other", 1, "leaked"),
    ]
    assert not book.tree(1)[b"copy"].is_redacted


def test_everywhere_is_each_path_and_version_of_the_store(book: Book, shelf: Shelf) -> None:
    book.write(notes=SECRET, d__copy=SECRET)
    book.write(notes=b"clean")
    book.write(notes=SECRET)
    digest = book.tree()[b"notes"].digest
    other = shelf("contexts/other")
    other.write(leaked=SECRET)
    with pytest.raises(Refused, match=r"copy|notes"):
        take_out(book, 1, b"notes", everywhere=True)
    book.write(notes=b"clean again")
    book.remove("d")
    removed = take_out(book, 1, b"notes", everywhere=True)
    assert removed.versions == (1, 2, 3, 4, 5)
    assert [(one.store, one.path) for one in standing(book.repository.engine, removed.content, 9)] == [
        ("contexts/other", "leaked")
    ]
    other.write(leaked=b"clean")
    take_out(other, 1, b"leaked", everywhere=True)
    assert rows_that_hold(book, digest) == []


def test_a_path_is_what_it_was_in_that_version(book: Book) -> None:
    book.write(drafts__secret=SECRET)
    book.rename("drafts", "notes")
    book.write(notes__secret=b"clean")
    removed = take_out(book, 2, b"notes/secret")
    assert [(span.first, span.last) for span in removed.spans] == [(1, 2)]
    assert [one.path for one in changes(book, 1)] == [b"drafts", b""]
    assert book.tree(1)[b"drafts/secret"].is_redacted


def test_a_renamed_file_is_redacted_under_each_of_its_names(book: Book) -> None:
    book.write(secret=SECRET)
    book.rename("secret", "renamed")
    book.write(renamed=b"clean")
    removed = take_out(book, 1, b"secret")
    [renamed] = changes(book, 2)
    assert (renamed.path, renamed.from_path) == (b"renamed", b"")
    assert [one.path for one in standing(book.repository.engine, removed.content, 9)] == ["renamed"]
    take_out(book, 2, b"renamed")
    [renamed] = changes(book, 2)
    assert renamed.is_redacted
    assert standing(book.repository.engine, removed.content, 9) == []


def test_restoring_leaves_what_was_redacted_as_it_is_now(book: Book) -> None:
    book.write(notes=SECRET, other=b"one")
    book.write(notes=b"clean", other=b"two")
    take_out(book, 1, b"notes")
    with book.repository.engine.reading() as reader:
        planned = restore.plan(reader, book.store, 1, None, PERSON, book.clock)
        with pytest.raises(Redacted, match="notes in memory/digest/state@1 was redacted"):
            restore.plan(reader, book.store, 1, b"notes", PERSON, book.clock)
    assert [one.path for one in planned.changes] == [b"other"]


def restore_all(book: Book, number: int) -> dict[bytes, bytes]:
    """Restore everything; what each file holds then. The log must be sound afterwards."""
    book.repository.transact(
        lambda writer: apply(writer, restore.plan(writer, book.store, number, None, PERSON, book.clock))
    )
    report = verify(book.repository)
    assert report.sound, report.findings
    with book.repository.engine.reading() as reader:
        return {
            path: blobs.read(reader, entry.digest, entry.size)
            for path, entry in book.tree().items()
            if entry.kind is Kind.FILE
        }


@pytest.mark.parametrize("is_saved_anew", [False, True])
def test_restoring_keeps_a_renamed_file_whose_old_content_was_redacted(
    book: Book, is_saved_anew: bool
) -> None:
    book.write(notes=SECRET, other=b"one")
    book.write(notes=b"clean", other=b"two")
    if is_saved_anew:
        save_atomically(book, "notes", b"clean")
    book.rename("notes", "renamed")
    book.write(since=b"1")
    take_out(book, 1, b"notes")
    node = book.tree()[b"renamed"].node
    assert restore_all(book, 1) == {b"notes": b"clean", b"other": b"one"}
    assert book.tree()[b"notes"].node == node


@pytest.mark.parametrize("renamed", ["renamed", "later/deep/renamed"])
def test_restoring_leaves_a_renamed_file_where_it_is_when_its_old_name_was_redacted_too(
    book: Book, renamed: str
) -> None:
    book.write(notes=SECRET, other=b"one")
    book.write(later__deep__beside=b"1", other=b"two")
    book.rename("notes", renamed)
    book.write_paths({renamed.encode(): b"clean"})
    take_out(book, 1, b"notes")
    take_out(book, 3, renamed.encode())
    assert b"notes" not in book.tree(1)
    node = book.tree()[renamed.encode()].node
    assert restore_all(book, 1) == {renamed.encode(): b"clean", b"other": b"one"}
    assert book.tree()[renamed.encode()].node == node


def test_restoring_removes_what_came_after_a_redacted_version(book: Book) -> None:
    book.write(notes=SECRET, other=b"one")
    book.remove("notes")
    book.write(notes=b"another file", since=b"1")
    take_out(book, 1, b"notes")
    assert b"since" not in restore_all(book, 1)


def test_a_redacted_file_that_is_gone_does_not_come_back_and_is_named(book: Book) -> None:
    book.write(notes=SECRET, other=b"one")
    book.write(notes=b"clean")
    book.remove("notes")
    take_out(book, 1, b"notes")
    with book.repository.engine.reading() as reader:
        assert restore.left_out(reader, book.store, 1, None) == [b"notes"]
        assert restore.left_out(reader, book.store, 2, None) == []
    assert restore_all(book, 1) == {b"other": b"one"}


def test_what_took_the_name_of_a_redacted_file_goes_back_to_its_own(book: Book) -> None:
    book.write(notes=SECRET, other=b"one")
    book.write(notes=b"clean")
    book.remove("notes")
    book.rename("other", "notes")
    book.write(notes=b"two")
    take_out(book, 1, b"notes")
    assert restore_all(book, 1) == {b"other": b"one"}


def test_what_cannot_be_redacted_is_said(book: Book) -> None:
    book.write(d__notes=SECRET, empty=b"")
    book.write(d__notes=b"clean", empty=b"no longer")
    with pytest.raises(
        NotFound, match=f"missing is not in .*; engramfs log {book.store.name} --path missing"
    ):
        take_out(book, 1, b"missing")
    with pytest.raises(NotFound, match="has no version 9"):
        take_out(book, 9, b"d/notes")
    with pytest.raises(UsageError, match="d is a directory"):
        take_out(book, 1, b"d")
    with pytest.raises(UsageError, match="empty is empty"):
        take_out(book, 1, b"empty", everywhere=True)
    take_out(book, 1, b"empty")
    take_out(book, 1, b"d/notes")
    with pytest.raises(Redacted, match="was redacted before"):
        take_out(book, 1, b"d/notes")


def test_changes_that_are_altered_after_a_redaction_are_found(book: Book) -> None:
    book.write(notes=SECRET, other=b"other")
    book.write(notes=b"clean")
    take_out(book, 1, b"notes")
    [other, gone] = changes(book, 1)
    forged = msgspec.msgpack.encode([other, replace(gone, op=ChangeKind.DELETED)])
    key = keys.changes(book.store.id, 1, 0)
    book.repository.transact(lambda writer: writer.put(Table.CHANGES, key, forged))
    [finding] = verify(book.repository).findings
    assert finding.problem == "version 1 does not have its changes: they were altered"


@pytest.mark.parametrize("path", [b"notes", b"hunter2"])
def test_it_is_done_while_others_write_all_the_time(book: Book, path: bytes) -> None:
    """Each commit of somebody else makes what was planned void; in the end they wait."""
    book.write(notes=SECRET, hunter2__a=b"a")
    book.write(notes=b"clean")
    book.remove("hunter2")
    for number in range(500):
        book.write(other=b"%d" % number)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            book.write(another=b"%d" % number)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        if path == b"notes":
            redact(book.repository, book.store.name, 1, path, PERSON, "a secret", 5, everywhere=True)
        else:
            redact_directory(book.repository, book.store.name, 1, path, PERSON, "a secret", 5)
    finally:
        stop.set()
        thread.join()
    report = verify(book.repository)
    assert report.sound, report.findings
    assert path == b"notes" or rows_that_hold(book, path) == []
