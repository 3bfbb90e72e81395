"""Everywhere is everywhere in the store: in what was pending too, whatever became of it."""

import hashlib

import msgspec
import pytest

from engramfs.errors import Conflict, Refused, UsageError
from engramfs.history import catalog, log, pending
from engramfs.history.occurrences import standing
from engramfs.history.pending_redaction import redact_pending
from engramfs.history.redaction import redact
from engramfs.history.redaction_rows import Removed, redactions
from engramfs.history.verify import verify
from engramfs.model.author import Author

from .conftest import Book
from .forked import Fork, content
from .test_redaction import rows_that_hold

PERSON = Author("person", actor="root")
SECRET = b"the password is hunter2"
DIGEST = hashlib.sha256(SECRET).digest()


def take_out(book: Book, number: int, path: bytes, *, is_pending: bool = False) -> Removed:
    how = redact_pending if is_pending else redact
    done = how(book.repository, book.store.name, number, path, PERSON, "a reason", 5, everywhere=True)
    report = verify(book.repository)
    assert report.sound, report.findings
    return done


@pytest.fixture
def leaked(book: Book) -> tuple[Book, Fork, Fork]:
    """Versions 1 and 2 have the secret, and so have three of what was pending, of two sessions."""
    book.write(a=SECRET)
    one, other = Fork(book), Fork(book)
    one.write(mine=SECRET)
    one.write(mine=b"clean")
    other.write(theirs=SECRET, b=b"b")
    other.write(b=SECRET)
    book.write(copy=SECRET)
    book.write(a=b"clean", copy=b"clean")
    return book, one, other


def test_what_waits_loses_it_and_waits_on_without_it(leaked: tuple[Book, Fork, Fork]) -> None:
    book, one, other = leaked
    book.write(mine=b"of the store")
    expected = {"a": b"clean", "copy": b"clean", "mine": b"of the store"}
    done = take_out(book, 1, b"a")
    assert rows_that_hold(book, DIGEST) == []
    assert [removed.versions for removed in done.beside] == [(1, 2), (1, 2)]
    assert done.beside[1].given_back == ((1, b"b"), (1, b"theirs"))
    assert one.tree() == {**expected, "mine": b"clean"}
    assert other.tree() == {**expected, "b": b"b"}
    assert told(book, other) == [["created b", "redacted"], ["redacted"]]
    with book.repository.engine.reading() as reader:
        assert [one.reason for one in redactions(reader, other.store.id, 2)] == ["a reason"]
    other.approve(3)
    other.approve(4)  # of which nothing is left
    assert content(book) == {**expected, "b": b"b"}


def test_what_is_shown_though_it_was_rejected_is_shown_no_more(leaked: tuple[Book, Fork, Fork]) -> None:
    book, one, _ = leaked
    one.write(mine=SECRET)
    one.reject(2)  # a later change builds on it, so its session sees that it was there
    assert one.tree()["mine"] == SECRET
    take_out(book, 1, b"a")
    assert "mine" not in one.tree()
    with book.repository.engine.reading() as reader:
        assert [pending.is_kept(each) for each in pending.of_fork(reader, one.store)] == [False] * 3


def test_what_was_renamed_while_it_waited_is_not_deleted_by_an_approval(book: Book) -> None:
    book.write(a=b"clean")
    fork = Fork(book)
    fork.write(a=SECRET)
    fork.rename("a", "b")
    take_out(book, 2, b"b", is_pending=True)
    assert rows_that_hold(book, DIGEST) == []
    assert fork.tree() == {"a": b"clean"}
    assert told(book, fork) == [["redacted"], ["redacted"]]
    fork.approve(1)
    fork.approve(2)
    assert content(book) == {"a": b"clean"}


@pytest.mark.parametrize("begin", ["waits", "rejected"])
def test_a_deletion_that_waits_stays_where_there_is_something_to_delete(book: Book, begin: str) -> None:
    book.write(a=b"clean")
    fork = Fork(book)
    fork.write(a=None)
    fork.write(a=SECRET)
    if begin == "rejected":
        fork.reject(2)
    take_out(book, 2, b"a", is_pending=True)
    assert fork.tree() == {}
    fork.approve(1)
    assert content(book) == {}


def test_a_deletion_of_what_only_waited_is_none_any_more(book: Book) -> None:
    book.write(b=b"clean")
    fork = Fork(book)
    fork.write(hunter2=SECRET)
    fork.write(hunter2=None)
    take_out(book, 1, b"hunter2", is_pending=True)
    assert rows_that_hold(book, b"hunter2") == []
    fork.approve(2)
    assert content(book) == {"b": b"clean"}


def test_what_was_made_from_a_redacted_content_cannot_be_merged_and_says_so(book: Book) -> None:
    book.write(a=SECRET + b"\n2\n3\n")
    fork = Fork(book)
    fork.write(a=b"1\n2\nthree\n")
    book.write(a=b"one\n2\n3\n")
    redact(book.repository, book.store.name, 1, b"a", PERSON, "a reason", 5)
    for merge in (False, True):
        with pytest.raises(
            Conflict, match=r"pending 1 was made from .*; a .* that version; engramfs pending diff"
        ):
            fork.approve(1, merge=merge)


def test_without_everywhere_what_waits_is_rejected_first(leaked: tuple[Book, Fork, Fork]) -> None:
    book, _, _ = leaked
    before = rows_that_hold(book, DIGEST)
    with pytest.raises(
        Refused, match=r"pending reject .* 3 --reason TEXT first, or redact it with --everywhere"
    ):
        redact_pending(book.repository, book.store.name, 3, b"theirs", PERSON, "a reason", 5)
    assert rows_that_hold(book, DIGEST) == before


def told(book: Book, fork: Fork) -> list[list[str]]:
    """What the changes of each version of a fork say."""
    with book.repository.engine.reading() as reader:
        return [
            sorted(
                "redacted" if one.is_redacted else f"{one.op.label} {one.path.decode()}"
                for one in log.changes(reader, fork.store.id, number)
            )
            for number in range(1, catalog.head(reader, fork.store.id).number + 1)
        ]


@pytest.mark.parametrize("begin", ["version", "pending"])
def test_what_was_decided_loses_it_with_the_versions(leaked: tuple[Book, Fork, Fork], begin: str) -> None:
    book, one, other = leaked
    one.approve(1)
    one.approve(2)  # version 4 brought the secret, and 5 took it away
    other.reject(4)
    other.reject(3)
    done = take_out(book, 1, b"a") if begin == "version" else take_out(book, 4, b"b", is_pending=True)
    assert rows_that_hold(book, DIGEST) == []
    assert done.versions == (1, 2, 3, 4, 5)
    assert [(removed.store, removed.versions) for removed in done.beside] == [
        (one.store.id, (1, 2)),
        (other.store.id, (1, 2)),
    ]
    with book.repository.engine.reading() as reader:
        changes = [change.path for change in log.changes(reader, other.store.id, 1)]
    assert sorted(changes) == [b"", b"b"]


def test_what_never_became_a_version_is_found_from_there(leaked: tuple[Book, Fork, Fork]) -> None:
    book, one, other = leaked
    other.write(only=b"here", too=b"here")
    for fork, number in ((other, 5), (other, 4), (other, 3), (one, 2), (one, 1)):
        fork.reject(number)
    done = take_out(book, 5, b"only", is_pending=True)
    assert (done.versions, [removed.versions for removed in done.beside]) == ((), [(3,)])
    assert rows_that_hold(book, hashlib.sha256(b"here").digest()) == []


def test_the_empty_content_is_nowhere_in_particular(leaked: tuple[Book, Fork, Fork]) -> None:
    book, one, _ = leaked
    one.write(empty=b"")
    one.reject(5)
    with pytest.raises(UsageError, match="empty in pending 5"):
        take_out(book, 5, b"empty", is_pending=True)


def test_where_it_still_waits_is_named_by_the_number_that_it_waits_under(book: Book) -> None:
    book.write(a=b"clean")
    Fork(book).write(orphan=b"of another session")
    fork = Fork(book)
    fork.write(mine=SECRET)
    fork.write(copy=SECRET)
    book.write(a=SECRET)
    book.write(a=b"clean")
    done = redact(book.repository, book.store.name, 2, b"a", PERSON, "a reason", 5)
    where = f"{book.store.name} (pending)"
    assert [msgspec.structs.astuple(one) for one in standing(book.repository.engine, done.content, 9)] == [
        (where, 3, "copy"),
        (where, 2, "mine"),
    ]
