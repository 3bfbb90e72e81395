"""Everywhere is everywhere in the store: in what was pending too, whatever became of it."""

import hashlib

import pytest

from engramfs.errors import Refused, UsageError
from engramfs.history import log
from engramfs.history.pending_redaction import redact_pending
from engramfs.history.redaction import redact
from engramfs.history.redaction_rows import Removed
from engramfs.history.verify import verify
from engramfs.model.author import Author

from .conftest import Book
from .forked import Fork
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


def test_what_waits_stands_against_it_and_nothing_is_done(leaked: tuple[Book, Fork, Fork]) -> None:
    book, one, _ = leaked
    before = rows_that_hold(book, DIGEST)
    with pytest.raises(Refused, match=r"pending 1, 3, 4 of .* holds it too, and waits .* pending reject"):
        take_out(book, 1, b"a")
    one.reject(1)  # a later change builds on it, so its session sees that it was there
    with pytest.raises(Refused, match=r"pending 1, 3, 4 of"):
        take_out(book, 1, b"a")
    assert rows_that_hold(book, DIGEST) == before


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
