"""What an actor left in other stores is found, and each redaction that is said to be possible is."""

import shlex

import pytest

from engramfs.daemon.forgetting import command
from engramfs.errors import Refused
from engramfs.history.directory_redaction import redact_directory
from engramfs.history.message_redaction import redact_message
from engramfs.history.occurrences import standing
from engramfs.history.pending_redaction import redact_pending
from engramfs.history.redaction import redact
from engramfs.history.traces import Trace, traces
from engramfs.history.verify import verify
from engramfs.model.author import Author

from .conftest import AUTHOR, Book, replace
from .forked import Fork

PERSON = Author("person", actor="root")


def found(book: Book) -> list[Trace]:
    return list(traces(book.repository.engine, [], "alice", None))


def take_out(book: Book, trace: Trace) -> None:
    about = (book.repository, trace.store, trace.number)
    if trace.message:
        redact_message(*about, PERSON, "forgotten", 5, is_pending=trace.pending)
    elif trace.directory:
        path = trace.path.encode()
        redact_directory(*about, path, PERSON, "forgotten", 5, is_pending=trace.pending)
    else:
        how = redact_pending if trace.pending else redact
        how(*about, trace.path.encode(), PERSON, "forgotten", 5)
    report = verify(book.repository)
    assert report.sound, report.findings


def possible(trace: Trace) -> bool:
    return not (trace.at_head or trace.waits or trace.lost)


@pytest.fixture
def written(book: Book) -> Book:
    book.message = "what alice thinks"
    book.write(a=b"1", d__b=b"2")
    book.message = ""
    book.rename("d", "e")
    book.write(a=b"3")
    return book


def test_contents_and_messages_are_found_and_go_once_the_head_has_something_else(written: Book) -> None:
    assert [(one.number, one.path, one.message, one.at_head) for one in found(written)] == [
        (1, "a", False, False),
        (1, "d/b", False, True),  # the directory was renamed, and the file is what it was
        (1, "", True, False),
        (3, "a", False, True),
        (2, "e", False, True),  # the names of directories, which others lead through, are last
        (1, "d", False, False),
    ]
    for trace in found(written):
        if trace.at_head:
            with pytest.raises(Refused):
                take_out(written, trace)
        else:
            take_out(written, trace)
    assert not any(map(possible, found(written)))


def test_the_names_of_directories_are_found_in_an_order_in_which_they_can_go(book: Book) -> None:
    book.write(a__deep__b=b"1")
    book.rename("a", "c")
    book.write(c__deep__more__x=b"2")
    book.remove("c")
    book.author = replace(AUTHOR, actor="bob")
    book.write(a__b=b"by bob")
    book.remove("a")
    named = [(one.number, one.path) for one in found(book) if one.directory]
    assert named == [(3, "c/deep/more"), (2, "c"), (1, "a/deep"), (1, "a")]
    for trace in found(book):
        assert possible(trace)
        take_out(book, trace)
    assert found(book) == []


def test_what_others_restored_renamed_or_saved_again_is_found_and_what_they_wrote_first_is_not(
    book: Book,
) -> None:
    bob = replace(AUTHOR, actor="bob")
    book.author = bob
    book.write(theirs=b"by bob", common=b"known before")
    book.author = AUTHOR
    book.write(mine=b"by alice", common=b"something else")
    book.rename("theirs", "renamed")
    book.write_paths({b"renamed": b"by bob"}, mode=0o600)
    book.write(mine=b"later", common=b"known before")
    book.author = bob
    book.write(mine=b"by alice", copy=b"by alice", again=b"known before")
    book.rename("copy", "moved")
    book.remove("mine", "moved", "common", "again", "renamed")
    assert [(one.number, one.path, one.why) for one in found(book)] == [
        (2, "common", "wrote it"),
        (2, "mine", "wrote it"),
        (3, "renamed", "renamed it, another wrote it"),
        (5, "common", "wrote it"),
        (5, "mine", "wrote it"),
        (6, "copy", "wrote what it has"),
        (6, "mine", "wrote what it has"),
        (7, "moved", "wrote what it has"),
    ]
    places = {(one.version, one.path) for one in standing(book.repository.engine, book.tree(2)[b"mine"], 9)}
    assert places == {(2, "mine"), (6, "mine"), (6, "copy"), (7, "moved")}
    assert places <= {(one.number, one.path) for one in found(book)}
    for trace in found(book):
        take_out(book, trace)
    assert found(book) == []


def test_what_was_pending_is_found_too_and_waits_until_it_is_decided(written: Book) -> None:
    fork = Fork(written)
    fork.message = "what alice offers"
    fork.write(offered=b"4", a=b"5")
    fork.message = ""
    fork.write(accepted=b"6")
    offered = [one for one in found(written) if one.pending]
    assert [(one.number, one.path, one.message, one.waits) for one in offered] == [
        (1, "a", False, True),
        (1, "offered", False, True),
        (1, "", True, False),
        (2, "accepted", False, True),
    ]
    fork.reject(1)
    fork.approve(2)
    written.remove("accepted")
    assert [(one.path, one.message) for one in found(written) if one.number == 4] == [("accepted", False)]
    for trace in filter(possible, found(written)):
        take_out(written, trace)
    assert not any(map(possible, found(written)))


def test_the_commands_say_what_is_meant() -> None:
    trace = Trace("memory/a", 3, "a file", "wrote it", at_head=False, pending=True)
    assert shlex.split(command(trace) or "") == [
        *("engramfs", "redact", "memory/a", "3", "a file", "--pending", "--reason", "forgotten")
    ]
    trace = Trace("memory/a", 3, "", "wrote it", at_head=False, message=True)
    assert command(trace) == "engramfs redact memory/a 3 --message --reason forgotten"
    assert command(Trace("memory/a", 3, "a", "wrote it", at_head=False, lost=True)) is None
    trace = Trace("memory/a", 3, "-nl\nx\udcff", "wrote it", at_head=False)
    assert command(trace) == r"engramfs redact memory/a 3 $'/-nl\nx\377' --reason forgotten"
