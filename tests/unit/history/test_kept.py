"""Of versions below the horizon, what is kept can be read, compared, restored and redacted, path by path.

What is not known any more is refused, never guessed.
"""

import random

import pytest

from engramfs.errors import NotFound, Redacted, Refused
from engramfs.history import commit, log, restore, revert
from engramfs.history.between import between, of_version
from engramfs.history.blame import blame
from engramfs.history.kept import is_partial, path_tree_at
from engramfs.history.redaction import redact
from engramfs.history.selection import Selection, select
from engramfs.history.traces import traces
from engramfs.history.tree import resolve
from engramfs.history.verify import verify
from engramfs.model.author import Author
from engramfs.model.version import Version
from engramfs.storage import blobs
from engramfs.storage.protocol import Table, Writer

from .conftest import Book
from .test_retention import gc, headers, keep
from .test_revert import change_something, contents

PERSON = Author("person", actor="root")


def held(book: Book, number: int, path: bytes) -> bytes:
    """The content of a path in a version."""
    with book.repository.engine.reading() as reader:
        entry = resolve(path_tree_at(reader, book.store, number, path), path)
        assert entry is not None
        return entry.target or blobs.read(reader, entry.digest, entry.size)


def restored(book: Book, number: int, path: bytes) -> Version | None:
    def body(writer: Writer) -> Version | None:
        return commit.apply(writer, restore.plan(writer, book.store, number, path, PERSON, book.clock + 1))

    return book.repository.transact(body)


def take_out(book: Book, number: int, path: bytes) -> None:
    redact(book.repository, book.store.name, number, path, PERSON, "a reason", 5)
    report = verify(book.repository)
    assert report.sound, report.findings


def mentions(book: Book, what: bytes) -> bool:
    """Whether a change or a row of the history says it."""
    with book.repository.engine.reading() as reader:
        return any(
            what in key + value
            for table in (Table.CHANGES, Table.HISTORY, Table.NODES)
            for key, value in reader.scan(table, b"", b"\xff" * 20)
        )


@pytest.fixture
def pruned(book: Book) -> Book:
    """Version 1 is kept, since `notes/live` is its; of `notes/lost` in it only the change tells."""
    book.write(notes__live=b"one\ntwo\n", notes__lost=b"lost")
    lost = book.tree()[b"notes/lost"].digest
    book.write(notes__lost=b"newer")
    book.symlink("link", "notes/live")
    for number in range(4, 9):
        book.write(other=b"%d" % number)
    keep(book, versions=2)
    gc(book)
    assert headers(book) == [1, 2, 3, 7, 8]
    assert mentions(book, lost)
    return book


def test_a_version_below_the_horizon_is_partial_and_one_above_or_gone_is_not(pruned: Book) -> None:
    with pruned.repository.engine.reading() as reader:
        partial = [number for number in range(10) if is_partial(reader, pruned.store, number)]
    assert partial == [1, 2, 3]


def test_what_it_brought_and_what_stayed_as_it_was_can_be_read(pruned: Book) -> None:
    assert held(pruned, 1, b"notes/live") == b"one\ntwo\n"
    assert held(pruned, 2, b"notes/lost") == b"newer"
    assert held(pruned, 3, b"notes/lost") == b"newer"  # version 2 brought it, and nothing changed it since
    assert held(pruned, 3, b"link") == b"notes/live"


@pytest.mark.parametrize("path", [b"notes/lost", b"notes", b"other", b"never"])
def test_what_is_not_kept_is_refused_and_not_guessed(pruned: Book, path: bytes) -> None:
    with pytest.raises(NotFound, match=f"what {path.decode()} held in .*@1 is not kept any more: .* 7 "):
        held(pruned, 1, path)


def test_a_row_that_a_pinned_version_kept_is_not_taken_for_a_later_one(book: Book) -> None:
    book.write(a=b"1", live=b"live")
    book.write(b=b"2")
    book.write(a=b"3")
    book.write(c=b"live too")
    book.write(a=b"5")
    book.write(d=b"6")
    keep(book, versions=1)
    gc(book, 2)
    assert held(book, 1, b"a") == b"1"
    with pytest.raises(NotFound, match="not kept any more"):
        held(book, 4, b"a")  # it was 3, and the row of version 1 is there for version 2 alone


def test_directories_above_may_have_changed_or_moved_since(book: Book) -> None:
    book.write(old__deep__file=b"text", same=b"text")
    book.rename("old", "new")
    for number in range(3):
        book.write(other=b"%d" % number)
    keep(book, versions=1)
    gc(book)
    assert held(book, 1, b"old/deep/file") == b"text"
    version = restored(book, 1, b"old/deep/file")
    assert version is not None
    assert verify(book.repository).sound
    tree = book.tree()
    assert tree[b"old/deep/file"].digest == tree[b"new/deep/file"].digest
    assert tree[b"old/deep/file"].node != tree[b"new/deep/file"].node
    assert held(book, version.number, b"old/deep/file") == b"text"


def test_one_path_is_compared_and_restored_and_the_whole_is_refused(pruned: Book) -> None:
    pruned.write(notes__live=b"one\n2\n")
    with pruned.repository.engine.reading() as reader:
        [found] = between(reader, pruned.store, 1, 9, b"notes/live")
        assert found.old is not None
        assert found.old.digest == pruned.tree(8)[b"notes/live"].digest
        with pytest.raises(NotFound, match="kept only in part"):
            list(between(reader, pruned.store, 1, 9))
    assert restored(pruned, 1, b"notes/live") is not None
    assert held(pruned, 10, b"notes/live") == b"one\ntwo\n"
    with pytest.raises(NotFound, match="kept only in part"):
        restored(pruned, 1, b"")


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_what_it_did_to_the_version_before_is_not_known(pruned: Book, number: int) -> None:
    with pruned.repository.engine.reading() as reader:
        with pytest.raises(NotFound, match="not kept any more as a whole, so there is nothing to compare"):
            of_version(reader, pruned.store, number)
        with pytest.raises(NotFound, match="not kept any more as a whole, so it cannot be undone"):
            revert.plan(reader, pruned.store, number, PERSON, 1)


def test_a_file_is_followed_to_the_version_that_brought_it_though_the_directory_was_renamed(
    book: Book,
) -> None:
    book.write(notes__a=b"1", notes__b=b"1")
    book.rename("notes", "facts")
    for number in range(3):
        book.write(other=b"%d" % number)
    keep(book, versions=1)
    gc(book)
    with book.repository.engine.reading() as reader:
        wanted = Selection(path=b"facts/a", follow=True)
        found = list(select(reader, book.store, wanted, book.head().number))
    assert [(one.version.number, one.path) for one in found] == [(1, b"notes/a")]


def test_every_line_is_blamed_on_the_version_that_brought_the_content(pruned: Book) -> None:
    with pruned.repository.engine.reading() as reader:
        lines = blame(reader, pruned.store, b"notes/live", 3)
    assert [(line.number, line.content) for line in lines] == [(1, b"one\n"), (1, b"two\n")]


def test_it_is_redacted_once_the_head_has_something_else(pruned: Book) -> None:
    digest = pruned.tree()[b"notes/live"].digest
    with pytest.raises(Refused, match="at the head"):
        take_out(pruned, 1, b"notes/live")
    pruned.write(notes__live=b"clean")
    take_out(pruned, 1, b"notes/live")
    assert not mentions(pruned, digest)
    with pytest.raises(NotFound):
        held(pruned, 1, b"notes/live")
    with pytest.raises(Redacted):
        held(pruned, 8, b"notes/live")


def test_path_and_digest_of_what_only_the_changes_tell_are_redacted(pruned: Book) -> None:
    with pruned.repository.engine.reading() as reader:
        [digest] = [
            one.digest for one in log.changes(reader, pruned.store.id, 1) if one.path == b"notes/lost"
        ]
    assert mentions(pruned, digest)
    take_out(pruned, 1, b"notes/lost")
    assert not mentions(pruned, digest)
    with pruned.repository.engine.reading() as reader:
        assert sum(one.is_redacted for one in log.changes(reader, pruned.store.id, 1)) == 1
    with pytest.raises(NotFound):
        take_out(pruned, 1, b"notes/lost")


def test_each_trace_of_an_actor_that_is_not_at_the_head_can_be_redacted(pruned: Book) -> None:
    pruned.write(mode=0o600, other=b"8")  # the same content as in version 8: one redaction for both
    pruned.write(other=b"9")
    found = list(traces(pruned.repository.engine, [], "alice", None))
    assert {(one.number, one.path): one.at_head for one in found} == {
        (1, "notes/live"): True,
        (1, "notes/lost"): False,
        (2, "notes/lost"): True,
        (3, "link"): True,
        (7, "other"): False,
        (8, "other"): False,
        (10, "other"): True,
        (1, "notes"): True,
    }
    for one in found:
        if not one.at_head:
            take_out(pruned, one.number, one.path.encode())


@pytest.mark.parametrize("seed", [0, 1, 3, 5, 6, 8])
def test_what_is_told_of_a_path_is_what_it_was(book: Book, seed: int) -> None:
    rng = random.Random(seed)
    book.write(a__b__x=b"0", a__y=b"0", b__c__z=b"0", top=b"0")
    for number in range(30):
        change_something(book, rng, number)
    before = {number: contents(book, number) for number in range(1, book.head().number + 1)}
    paths = {path for tree in before.values() for path in tree}
    told = 0
    for versions in (rng.randrange(8, 20), rng.randrange(2, 8)):
        keep(book, versions=versions)
        gc(book, *rng.sample(sorted(before), rng.randrange(3)))
        for number in (one for one in headers(book) if one < book.head().oldest):
            for path in paths:
                try:
                    found = held(book, number, path.encode())
                except NotFound:
                    continue
                assert found == before[number].get(path), (number, path)
                told += 1
    assert told, "nothing was kept: choose another seed"
