"""The name of a directory is taken out of every row and path; what is in it stays, unless it is to go too."""

import contextlib
import random

import pytest

from engramfs.cli.versions import path_of
from engramfs.errors import NotFound, Redacted, Refused, UsageError
from engramfs.history import log
from engramfs.history.between import of_version
from engramfs.history.directory_redaction import redact_directory
from engramfs.history.directory_target import is_directory
from engramfs.history.lineage import lineage
from engramfs.history.recursive_redaction import redact_recursively
from engramfs.history.redaction import redact
from engramfs.history.redaction_rows import Removed, redactions
from engramfs.history.verify import verify
from engramfs.model.author import Author
from engramfs.model.entry import Entry, Kind
from engramfs.model.version import ChangeKind

from .conftest import Book
from .test_redaction import rows_that_hold
from .test_retention import gc, headers, keep
from .test_revert import change_something, undo

PERSON = Author("person", actor="root")
NAME = b"hunter2"


def take_out(book: Book, number: int, path: bytes) -> Removed:
    removed = redact_directory(book.repository, book.store.name, number, path, PERSON, "a reason", 5)
    assert verify(book.repository).sound
    return removed


def take_all_out(book: Book, number: int, path: bytes) -> list[Removed]:
    done = redact_recursively(book.repository, book.store.name, number, path, PERSON, "a reason", 5)
    assert verify(book.repository).sound
    return done


def told(book: Book, number: int) -> list[str]:
    """The changes of a version, as `log` prints them."""
    with book.repository.engine.reading() as reader:
        return [f"{one.op.label} {path_of(one)}" for one in log.changes(reader, book.store.id, number)]


@pytest.fixture
def renamed(book: Book) -> Book:
    """Everything in the directory is live under another name."""
    book.write(top__hunter2__a=b"a", top__hunter2__deep__b=b"b")
    book.write(top__hunter2__a=b"A", hunter2x=b"another name")
    book.rename("top", "above")
    book.write(above__hunter2__deep__b=b"B")
    book.rename("above/hunter2", "above/clean")
    return book


def test_the_name_goes_from_rows_and_paths_and_the_trees_are_whole(renamed: Book) -> None:
    before = [{path: entry.digest for path, entry in renamed.tree(number).items()} for number in range(1, 6)]
    instead = b"redacted-%d" % renamed.tree()[b"above/clean"].node
    removed = take_out(renamed, 1, b"top/hunter2")
    assert (removed.versions, removed.changes) == ((1, 2, 4, 5), 6)
    for number, tree in enumerate(before, start=1):
        expected = {path.replace(b"/hunter2", b"/" + instead): digest for path, digest in tree.items()}
        assert {path: entry.digest for path, entry in renamed.tree(number).items()} == expected
    top = f"top/{instead.decode()}"
    assert told(renamed, 1) == [
        "created top",
        f"created {top}",
        f"created {top}/a",
        f"created {top}/deep",
        f"created {top}/deep/b",
    ]
    assert told(renamed, 2) == ["created hunter2x", f"modified {top}/a"]
    assert told(renamed, 5) == [f"renamed above/{instead.decode()} → above/clean"]
    with renamed.repository.engine.reading() as reader:
        [done] = redactions(reader, renamed.store.id, 4)
        assert (done.author, done.reason, done.changes) == (PERSON, "a reason", 1)
        assert redactions(reader, renamed.store.id, 3) == []


def test_what_was_in_it_is_found_compared_and_undone_as_before(renamed: Book) -> None:
    take_out(renamed, 1, b"top/hunter2")
    with renamed.repository.engine.reading() as reader:
        steps = [step.number for step in lineage(reader, renamed.store, b"above/clean/a", 5)]
        assert steps == [5, 3, 2, 1]
        for number in range(1, 6):
            of_version(reader, renamed.store, number)
    undo(renamed, 2)
    assert renamed.tree()[b"above/clean/a"].digest == renamed.tree(1)[_path(renamed, b"/a")].digest
    redact(renamed.repository, renamed.store.name, 2, _path(renamed, b"/a"), PERSON, "a reason", 5)
    assert verify(renamed.repository).sound


def _path(book: Book, end: bytes) -> bytes:
    return next(path for path in book.tree(1) if path.endswith(end))


def test_no_byte_of_it_is_left_when_nothing_else_has_the_name(book: Book) -> None:
    book.write(hunter2__a=b"a", b=b"b")
    book.remove("hunter2")
    book.write(hunter2__a=b"again")
    book.remove("hunter2")
    take_out(book, 3, b"hunter2")
    assert rows_that_hold(book, NAME) == []
    assert [len(book.tree(number)) for number in range(1, 5)] == [4, 2, 4, 2]


def test_the_head_is_refused_and_so_are_the_root_a_file_and_a_second_time(renamed: Book) -> None:
    with pytest.raises(Refused, match=r"above/clean in .* still has that name at the head"):
        take_out(renamed, 5, b"above/clean")
    with pytest.raises(UsageError, match="the root"):
        take_out(renamed, 1, b"")
    with pytest.raises(NotFound, match="is not in"):
        take_out(renamed, 5, b"top/hunter2")
    assert not is_directory(renamed.repository, renamed.store.name, 1, b"top/hunter2/a")
    take_out(renamed, 4, b"above/hunter2")
    instead = next(
        path for path in renamed.tree(1) if path.startswith(b"top/redacted-") and path.count(b"/") == 1
    )
    with pytest.raises(Redacted, match="before"):
        take_out(renamed, 1, instead)


def test_a_name_that_was_a_file_too_says_what_to_redact_first(book: Book) -> None:
    book.write(x=b"file")
    book.remove("x")
    book.write(x__f=b"f")
    book.remove("x")
    with pytest.raises(Refused, match=r"x was a file in .*@1; redact that first: engramfs redact .* 1 x"):
        take_out(book, 3, b"x")
    redact(book.repository, book.store.name, 1, b"x", PERSON, "a reason", 5)
    take_out(book, 3, b"x")
    assert not any(path.startswith(b"x") for number in range(1, 5) for path in book.tree(number))


def test_with_everything_below_contents_and_names_go(book: Book) -> None:
    book.write(hunter2__a=b"secret a", hunter2__deep__b=b"secret b", other=b"other")
    digests = [entry.digest for path, entry in book.tree().items() if b"hunter2/" in path and entry.digest]
    with pytest.raises(Refused, match=r"still has what hunter2/a and 1 more held"):
        take_all_out(book, 1, b"hunter2")
    book.remove("hunter2")
    take_all_out(book, 1, b"hunter2")
    for what in (NAME, b"deep", *digests):
        assert rows_that_hold(book, what) == []
    assert book.tree(1)[b"other"].digest
    assert told(book, 1)[-1] == "created other"


def test_what_was_redacted_before_does_not_stand_against_the_rest(book: Book) -> None:
    book.write(hunter2__deep__a=b"a", hunter2__b=b"b")
    instead = b"redacted-%d" % book.tree()[b"hunter2"].node
    book.remove("hunter2")
    take_out(book, 1, b"hunter2")
    assert len(take_all_out(book, 1, instead)) == 3
    for what in (NAME, b"deep"):
        assert rows_that_hold(book, what) == []
    assert all(entry.is_redacted for entry in book.tree(1).values() if entry.kind is Kind.FILE)
    with pytest.raises(Redacted, match="everything at and below"):
        take_all_out(book, 1, instead)


def test_what_is_in_it_may_be_at_the_head_only_without_recursion(renamed: Book) -> None:
    with pytest.raises(Refused, match="still has what"):
        take_all_out(renamed, 4, b"above/hunter2")
    assert [one for one in told(renamed, 4) if "hunter2" in one]  # nothing was done


def test_below_the_horizon_the_changes_that_are_kept_lose_it_too(renamed: Book) -> None:
    for number in range(3):
        renamed.write(other=b"%d" % number)
    keep(renamed, versions=1)
    gc(renamed)
    assert headers(renamed) == [2, 4, 8]
    assert told(renamed, 2) == ["created hunter2x", "modified top/hunter2/a"]
    assert is_directory(renamed.repository, renamed.store.name, 2, b"top/hunter2")
    take_out(renamed, 2, b"top/hunter2")
    assert told(renamed, 2) == ["created hunter2x", "modified top/redacted-0/a"]
    assert not is_directory(renamed.repository, renamed.store.name, 2, b"top/hunter2")
    take_out(renamed, 4, b"above/hunter2")
    assert rows_that_hold(renamed, b"hunter2/") == []


@pytest.mark.parametrize("seed", [0, 1, 3, 4, 5])
def test_every_tree_is_what_it_was_but_for_that_name_and_changes_name_what_is_in_them(
    book: Book, seed: int
) -> None:
    rng = random.Random(seed)
    book.write(a__b__x=b"0", a__y=b"0", b__c__z=b"0", top=b"0")
    for step in range(20):
        change_something(book, rng, step)
    trees = {number: book.tree(number) for number in range(1, book.head().number + 1)}
    removed, parent, name = _take_out_any(book, rng, trees)
    for number, tree in trees.items():
        renamed = {_as_now(tree, path, parent, name, removed.instead): path for path in tree}
        now = book.tree(number)
        assert {path: (entry.node, entry.digest) for path, entry in now.items()} == {
            path: (tree[before].node, tree[before].digest) for path, before in renamed.items()
        }
        with book.repository.engine.reading() as reader:
            for change in log.changes(reader, book.store.id, number):
                where = number - 1 if change.op is ChangeKind.DELETED else number
                assert change.path in book.tree(where)
                assert change.from_path is None or change.from_path in book.tree(number - 1)


def _take_out_any(
    book: Book, rng: random.Random, trees: dict[int, dict[bytes, Entry]]
) -> tuple[Removed, int, bytes]:
    """The first of many directories that is not at the head any more: what went, and from where."""
    places = [(number, path) for number, tree in trees.items() for path in tree if path]
    rng.shuffle(places)
    for number, path in places:
        if trees[number][path].kind is Kind.DIRECTORY:
            above, _, name = path.rpartition(b"/")
            with contextlib.suppress(Refused):
                return take_out(book, number, path), trees[number][above].node, name
    raise AssertionError("every directory is at the head: choose another seed")


def _as_now(tree: dict[bytes, Entry], path: bytes, parent: int, name: bytes, instead: bytes) -> bytes:
    names = path.split(b"/")
    parents = [tree[b"/".join(names[:depth])].node for depth in range(len(names))]
    is_it = [path and (above, one) == (parent, name) for above, one in zip(parents, names, strict=True)]
    return b"/".join(instead if it else one for it, one in zip(is_it, names, strict=True))
