"""Forks and what waits in them, in the log alone: trees, decisions, and what `verify` finds."""

import hashlib
from collections.abc import Callable

import pytest

from engramfs.errors import Conflict, NotFound
from engramfs.history import catalog, pending
from engramfs.history.offered import differences
from engramfs.history.verify import verify
from engramfs.model.entry import ROOT_NODE
from engramfs.storage import keys
from engramfs.storage.protocol import Table, Writer

from .conftest import Book, replace
from .forked import Fork, content


@pytest.fixture
def fork(book: Book) -> Fork:
    book.write(a=b"a\n", b=b"b\n", d__inner=b"inner\n")
    return Fork(book)


def test_the_tree_of_a_fork_is_the_store_with_its_own_names_over_it(fork: Fork) -> None:
    fork.write(a=b"mine\n", new=b"new\n", b=None)
    fork.book.write(b=b"B\n", c=b"c\n", d__inner=b"INNER\n")
    assert fork.tree() == {"a": b"mine\n", "c": b"c\n", "d/inner": b"INNER\n", "new": b"new\n"}
    assert fork.tree(1) == {"a": b"mine\n", "d/inner": b"inner\n", "new": b"new\n"}


def test_an_old_tree_of_a_fork_stays_what_it_was_whatever_is_decided_later(fork: Fork) -> None:
    fork.write(a=b"1\n")
    fork.write(b=b"2\n")
    fork.write(new=b"3\n")
    before = [fork.tree(number) for number in (1, 2, 3)]
    fork.reject(2)
    fork.approve(1)
    fork.book.write(a=b"later\n")
    assert [fork.tree(number) for number in (1, 2, 3)] == before
    assert fork.tree() == {"a": b"later\n", "b": b"b\n", "d/inner": b"inner\n", "new": b"3\n"}
    fork.write(more=b"4\n")
    assert fork.tree(4) == fork.tree()
    assert verify(fork.book.repository).findings == []


def test_what_an_approval_makes_of_the_store_is_what_the_fork_showed(fork: Fork) -> None:
    number = fork.write(a=b"mine\n", new=b"new\n", b=None)
    expected = fork.tree()
    fork.approve(number)
    assert content(fork.book) == fork.tree() == expected
    head = fork.book.head()
    assert (head.used, head.files) == (5 + 4 + 6, 4)
    assert verify(fork.book.repository).findings == []


def test_a_merge_keeps_what_both_changed_or_names_what_it_cannot(fork: Fork) -> None:
    fork.book.write(text=b"1\n2\n3\n")
    first = fork.write(text=b"one\n2\n3\n")
    second = fork.write(b=b"fork\n")
    fork.book.write(text=b"1\n2\nthree\n", b=b"book\n")
    fork.approve(first, merge=True)
    assert content(fork.book)["text"] == b"one\n2\nthree\n"
    with pytest.raises(Conflict, match="b cannot be merged"):
        fork.approve(second, merge=True)
    assert content(fork.book)["b"] == b"book\n"
    assert verify(fork.book.repository).findings == []


def test_differences_are_those_of_the_names_that_were_recorded(fork: Fork) -> None:
    fork.write(a=b"mine\n")
    number = fork.write(a=b"again\n", new=b"new\n", b=None)
    fork.book.write(c=b"c\n")
    with fork.book.repository.engine.reading() as reader:
        found = differences(reader, pending.get(reader, fork.book.store, number))
    assert [(one.path, one.old is None, one.new is None) for one in found] == [
        (b"a", False, False),
        (b"b", False, True),
        (b"new", True, False),
    ]


def test_a_directory_that_is_renamed_comes_with_the_files_in_it(fork: Fork) -> None:
    number = fork.rename("d", "moved")
    with fork.book.repository.engine.reading() as reader:
        found = differences(reader, pending.get(reader, fork.book.store, number))
    assert [(one.from_path, one.path, one.is_implied) for one in found] == [
        (b"d", b"moved", False),
        (b"d/inner", b"moved/inner", True),
    ]


def test_a_store_that_is_deleted_leaves_nothing_of_its_forks(fork: Fork) -> None:
    fork.reject(fork.write(a=b"mine\n"))
    fork.write(b=b"mine\n")
    fork.transact(lambda writer: catalog.delete(writer, fork.book.store))
    with fork.book.repository.engine.reading() as reader:
        for table in set(Table) - {Table.META, Table.FEED, Table.BLOBS}:
            assert list(reader.scan(table, b"", b"\xff" * 8)) == [], table
    assert verify(fork.book.repository).findings == []


def test_numbers_that_are_not_there_are_named(fork: Fork) -> None:
    with pytest.raises(NotFound, match="nothing with the number 7 was ever pending"):
        fork.approve(7)


Damage = Callable[[Writer, Fork], object]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "a pending row that is gone": (
        lambda writer, fork: writer.delete(Table.PENDING, keys.pending(fork.book.store.id, 1)),
        "version 1 of fork 2 is offered by no pending version",
    ),
    "a pending row that names nothing": (
        lambda writer, fork: pending.put(
            writer,
            fork.book.store.id,
            replace(pending.get(writer, fork.book.store, 1), version=9),
        ),
        "pending 1 names version 9 of fork 2, which does not exist or is offered twice",
    ),
    "an open one that is not marked so": (
        lambda writer, fork: writer.delete(Table.PENDING, keys.open_pending(fork.book.store.id, 1)),
        "pending 1 is open, and is not among those that wait",
    ),
    "a result that is not there": (
        lambda writer, fork: pending.put(
            writer,
            fork.book.store.id,
            replace(pending.get(writer, fork.book.store, 1), state="approved", result=9),
        ),
        "pending 1 became version 9, which does not exist",
    ),
    "a name that is missing at its head": (
        lambda writer, fork: writer.delete(Table.LIVE, keys.live(fork.store.id, ROOT_NODE, b"a")),
        "a is missing at the head",
    ),
    "a name that is not what its version says": (
        lambda writer, fork: writer.put(
            Table.LIVE, keys.live(fork.store.id, ROOT_NODE, b"a"), keys.TOMBSTONE
        ),
        "a is not at the head what the newest version says",
    ),
    "a name of no version": (
        lambda writer, fork: writer.put(
            Table.LIVE, keys.live(fork.store.id, ROOT_NODE, b"c"), keys.TOMBSTONE
        ),
        "c differs from the store below, and no version that counts says so",
    ),
    "a header that was altered": (
        lambda writer, fork: writer.put(
            Table.VERSIONS,
            keys.version(fork.store.id, 1),
            writer.get(Table.VERSIONS, keys.version(fork.store.id, 1)).replace(b"alice", b"mallo"),  # type: ignore[union-attr]
        ),
        "version 1 does not have its digest: its header was altered",
    ),
    "a content that is gone": (
        lambda writer, _fork: writer.delete(Table.BLOBS, keys.blob(hashlib.sha256(b"mine\n").digest(), 0)),
        "is missing part 0",
    ),
    "a fork that its store does not know": (
        lambda writer, fork: writer.delete(
            Table.PENDING, keys.pending(fork.book.store.id, keys.FORK + fork.store.id)
        ),
        "fork 2 cannot be found by the store below it",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_verify_finds(fork: Fork, damage: str) -> None:
    fork.write(a=b"mine\n")
    assert verify(fork.book.repository).findings == []
    do, expected = DAMAGES[damage]
    fork.transact(lambda writer: do(writer, fork))
    assert any(expected in finding.problem for finding in verify(fork.book.repository).findings)
