"""The message of a version goes; its digest stays, the chain goes on from it, and what is left is proved."""

from functools import partial

import msgspec
import pytest

from engramfs.errors import NotFound, Redacted
from engramfs.history import approval, log, pending
from engramfs.history.imported import source_of, text_of
from engramfs.history.message_redaction import RedactedMessages, messages_with, redact_message
from engramfs.history.redaction import redact
from engramfs.history.redaction_rows import redactions
from engramfs.history.verify import verify
from engramfs.model.author import Author
from engramfs.model.version import Version
from engramfs.storage import keys
from engramfs.storage.protocol import Table, Writer

from .conftest import Book, replace
from .forked import Fork
from .test_redaction import rows_that_hold
from .test_revert import undo

PERSON = Author("person", actor="root")
TEXT = "the password is hunter2"


def take_out(
    book: Book, number: int, *, everywhere: bool = False, is_pending: bool = False
) -> RedactedMessages:
    done = redact_message(
        book.repository,
        book.store.name,
        number,
        PERSON,
        "a reason",
        5,
        everywhere=everywhere,
        is_pending=is_pending,
    )
    report = verify(book.repository)
    assert report.sound, report.findings
    return done


def version(book: Book, number: int) -> Version:
    with book.repository.engine.reading() as reader:
        return log.version(reader, book.store, number)


def put(book: Book, forged: Version) -> None:
    def body(writer: Writer) -> None:
        writer.put(Table.VERSIONS, keys.version(book.store.id, forged.number), msgspec.msgpack.encode(forged))

    book.repository.transact(body)


@pytest.fixture
def told(book: Book) -> Book:
    """Version 2 has the message; versions after it follow from its digest."""
    book.write(a=b"1")
    book.message = TEXT
    book.write(a=b"2")
    book.message = ""
    book.write(a=b"3", b=b"3")
    return book


def test_the_message_is_gone_and_everything_else_of_the_header_stays(told: Book) -> None:
    before = version(told, 2)
    done = take_out(told, 2)
    assert [one.number for one in done.lost] == [2]
    assert version(told, 2) == replace(before, message="")
    assert rows_that_hold(told, b"hunter2") == []
    with told.repository.engine.reading() as reader:
        [redaction] = redactions(reader, told.store.id, 2)
    assert (redaction.author, redaction.reason, redaction.changes) == (PERSON, "a reason", 0)


def test_the_message_of_the_head_may_go_and_versions_follow_from_it(told: Book) -> None:
    told.message = "another"
    told.write(a=b"4")
    take_out(told, 4)
    told.write(a=b"5")
    assert version(told, 5).parent_digest == version(told, 4).digest
    assert verify(told.repository).sound


def test_a_header_that_was_altered_after_that_is_still_found(told: Book) -> None:
    take_out(told, 2)
    for forged in (
        replace(version(told, 2), time=7),
        replace(version(told, 2), message="forged"),
        replace(version(told, 2), author=PERSON),
    ):
        put(told, forged)
        assert [one.problem for one in verify(told.repository).findings] == [
            "version 2 does not have its digest: its header was altered"
        ]
    put(told, replace(version(told, 2), author=version(told, 1).author, digest=b"x" * 32))
    assert "version 3 does not follow from the version before it" in [
        one.problem for one in verify(told.repository).findings
    ]


def test_contents_and_message_of_one_version_are_redacted_in_either_order(told: Book) -> None:
    take_out(told, 2)
    redact(told.repository, told.store.name, 2, b"a", PERSON, "a secret", 6)
    assert verify(told.repository).sound
    told.message = TEXT
    told.write(b=b"4")
    told.write(b=b"5")
    redact(told.repository, told.store.name, 4, b"b", PERSON, "a secret", 7)
    take_out(told, 4)
    take_out(told, 5)
    assert verify(told.repository).sound


def test_a_version_without_one_is_not_found_and_a_second_time_says_so(told: Book) -> None:
    with pytest.raises(NotFound, match="@1 has no message"):
        take_out(told, 1)
    with pytest.raises(NotFound, match="has no version 9"):
        take_out(told, 9)
    take_out(told, 2)
    with pytest.raises(Redacted, match=r"the message of .*@2 was redacted before"):
        take_out(told, 2)


def test_versions_that_repeat_it_are_named_and_with_everywhere_lose_it_too(told: Book) -> None:
    told.write(a=b"2", b=b"")
    undo(told, 2)
    assert TEXT in version(told, 5).message  # "revert of …@2: the password …"
    done = take_out(told, 2)
    assert [(one.number, one.pending) for one in done.standing] == [(5, 0)]
    done = take_out(told, 5, everywhere=True)
    assert [one.number for one in done.lost] == [5]
    assert rows_that_hold(told, b"hunter2") == []


@pytest.mark.parametrize(("name", "said"), [("a", [3]), ("port", [2, 3]), ("notes/port", [3]), ("é", [])])
def test_a_path_is_named_by_a_message_that_says_it_as_a_word(book: Book, name: str, said: list[int]) -> None:
    for message in ("learned that", "the port, café", "moved a to notes/port.", "ports"):
        book.message = message
        book.write(x=message.encode())
    found = messages_with(book.repository.engine, book.store, name, is_name=True)
    assert [one.number for one in found] == said


def test_what_was_pending_loses_its_message_too(told: Book) -> None:
    fork = Fork(told)
    fork.message = TEXT
    number = fork.write(a=b"mine")
    fork.approve(number)
    assert TEXT in version(told, 4).message
    done = take_out(told, number, is_pending=True)
    assert [(one.store, one.pending) for one in done.lost] == [(fork.store.id, 1)]
    assert {(one.number, one.pending) for one in done.standing} == {(2, 0), (4, 0)}
    fork.write(b=b"mine")
    done = take_out(told, 2, everywhere=True)
    assert {(one.number, one.pending) for one in done.lost} == {(2, 0), (4, 0), (2, 2)}
    assert rows_that_hold(told, b"hunter2") == []


def test_the_reason_of_a_decision_goes_with_the_message_that_repeats_it_or_by_itself(told: Book) -> None:
    fork = Fork(told)
    for file, decide in (("x", approval.approve), ("y", approval.reject), ("z", approval.reject)):
        number = fork.write(**{file: b"mine"})
        told.repository.transact(
            partial(decide, store=told.store, number=number, by=PERSON, now=5, reason=TEXT)
        )
    assert TEXT in version(told, 4).message
    take_out(told, 4)
    assert reasons(told) == ["", TEXT, TEXT]
    done = take_out(told, 2, is_pending=True)
    assert ([(one.store, one.pending) for one in done.lost], done.standing) == ([(fork.store.id, 2)], ())
    assert reasons(told) == ["", "", TEXT]
    take_out(told, 2, everywhere=True)
    assert reasons(told) == ["", "", ""]
    assert rows_that_hold(told, b"hunter2") == []
    with pytest.raises(Redacted, match="the message of pending 2"):
        take_out(told, 2, is_pending=True)


def reasons(book: Book) -> list[str]:
    with book.repository.engine.reading() as reader:
        return [offered.reason for offered in pending.every(reader, book.store.id)]


def test_an_imported_version_still_says_which_commit_it_was_made_of(told: Book) -> None:
    told.message = f"{TEXT}\n\nGit-Commit: {'a' * 40}\nGit-Author: Ann <ann@example.org>"
    told.via = "import"
    told.write(c=b"c")
    take_out(told, 4)
    assert text_of(version(told, 4)) == ""
    assert source_of(version(told, 4)) == {"Git-Commit": "a" * 40, "Git-Author": "Ann <ann@example.org>"}
