"""Retention leaves what waits for a decision whole: it can be looked at, approved and merged as before."""

import pytest

from engramfs.errors import Conflict, NotFound
from engramfs.history import pending
from engramfs.history.diff import Difference
from engramfs.history.offered import differences, path_tree
from engramfs.history.pending_redaction import redact_pending
from engramfs.history.tree import resolve
from engramfs.history.verify import verify
from engramfs.model.author import Author
from engramfs.storage import blobs

from .conftest import Book
from .forked import Fork, content
from .test_retention import gc, headers, keep

PERSON = Author("person", actor="root")
LINES = b"one\ntwo\nthree\nfour\n"


def offered(fork: Fork, number: int) -> list[Difference]:
    with fork.book.repository.engine.reading() as reader:
        return differences(reader, pending.get(reader, fork.book.store, number))


@pytest.fixture
def waiting(book: Book) -> Fork:
    """Two wait, made from versions 1 and 3; retention then leaves versions 8 and 9 alone."""
    book.write(a=LINES, b=b"b\n", c=b"c\n")
    fork = Fork(book)
    fork.write(a=LINES.replace(b"one", b"ONE"), b=None, new=b"new\n")
    book.write(x=b"x")
    book.write(c=LINES)
    fork.write(c=LINES.replace(b"one", b"ONE"))
    for number in range(4, 9):
        book.write(x=b"%d" % number)
    book.write(a=LINES.replace(b"four", b"FOUR"), c=LINES.replace(b"four", b"FOUR"))
    keep(book, versions=2)
    return fork


def test_what_it_changes_is_told_as_before(waiting: Fork) -> None:
    before = [offered(waiting, number) for number in (1, 2)]
    trees = waiting.tree(1), waiting.tree(2)
    assert gc(waiting.book).versions > 0
    assert [offered(waiting, number) for number in (1, 2)] == before
    assert (waiting.tree(1), waiting.tree(2)) == trees


def test_it_is_refused_where_the_head_is_another_and_merged_when_that_is_asked(waiting: Fork) -> None:
    gc(waiting.book)
    with pytest.raises(Conflict, match="a is not what it was"):
        waiting.approve(1)
    waiting.approve(1, merge=True)
    waiting.approve(2, merge=True)
    merged = LINES.replace(b"one", b"ONE").replace(b"four", b"FOUR")
    assert content(waiting.book) == {"a": merged, "c": merged, "new": b"new\n", "x": b"8"}
    assert verify(waiting.book.repository).sound


def test_what_the_head_has_as_it_was_is_approved_as_it_stands(waiting: Fork) -> None:
    number = waiting.write(b=b"B\n")
    for one in range(3):
        waiting.book.write(x=b"later %d" % one)
    gc(waiting.book)
    with pytest.raises(Conflict, match="builds on pending 1"):
        waiting.approve(number)
    waiting.reject(1)
    gc(waiting.book)
    waiting.approve(2, merge=True)
    assert waiting.book.tree()[b"b"].size == 2


def test_once_it_was_decided_its_base_goes_and_what_it_would_have_changed_is_refused(waiting: Fork) -> None:
    waiting.book.write(x=b"9")
    gc(waiting.book)
    assert {1, 3} <= set(headers(waiting.book))
    waiting.reject(1)
    waiting.reject(2)
    gc(waiting.book)
    assert headers(waiting.book) == [1, 9, 10]  # the first brought `b`
    with pytest.raises(NotFound, match=r"made from .*@3, of which retention left only part"):
        offered(waiting, 2)


def test_one_that_was_rejected_and_is_shown_still_keeps_its_base(waiting: Fork) -> None:
    waiting.write(new=b"newer\n")  # builds on what the first made
    before = offered(waiting, 1)
    waiting.reject(1)
    gc(waiting.book)
    assert offered(waiting, 1) == before


def test_what_it_wrote_itself_is_read_and_redacted_after_that(waiting: Fork) -> None:
    book = waiting.book
    waiting.reject(2)
    waiting.reject(1)
    book.rename("a", "d")
    book.write(x=b"9")
    book.write(x=b"10")
    gc(book)
    with book.repository.engine.reading() as reader:
        one = pending.get(reader, book.store, 1)
        entry = resolve(path_tree(reader, one, b"a"), b"a")
        assert entry is not None
        assert blobs.read(reader, entry.digest, entry.size) == LINES.replace(b"one", b"ONE")
        with pytest.raises(NotFound, match="retention left only part"):
            path_tree(reader, one, b"c")
    redact_pending(book.repository, book.store.name, 1, b"a", PERSON, "a reason", 5)
    assert verify(book.repository).sound
