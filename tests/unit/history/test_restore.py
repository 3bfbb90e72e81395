"""An old tree, directory or file becomes the head again, as a new version."""

import random

import pytest

from engramfs.errors import Conflict, NotFound, QuotaExceeded
from engramfs.history import restore, revert
from engramfs.history.blame import blame
from engramfs.history.commit import Commit, RowChange, apply
from engramfs.history.diff import differences
from engramfs.history.lineage import lineage
from engramfs.history.tree import tree_at
from engramfs.history.verify import verify
from engramfs.model.author import SYSTEM
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.store import Limits
from engramfs.model.version import ChangeKind, Version
from engramfs.storage.protocol import Writer

from .conftest import Book, Shelf, change, replace


def plan(book: Book, number: int, path: bytes | None = None, message: str = "") -> Commit:
    with book.repository.engine.reading() as reader:
        return restore.plan(reader, book.store, number, path, SYSTEM, book.clock + 1, message)


def restored(book: Book, number: int, path: bytes | None = None) -> Version | None:
    commit = plan(book, number, path)
    version = book.repository.transact(lambda writer: apply(writer, commit))
    assert verify(book.repository).findings == []
    return version


def shown(book: Book, number: int | None = None) -> dict[bytes, tuple[Kind, int, bytes]]:
    return {path: (one.kind, one.mode, one.digest) for path, one in book.tree(number).items()}


def test_the_whole_tree_becomes_what_it_was(book: Book) -> None:
    book.write(a=b"1", d__b=b"2", d__e__c=b"3")
    book.write(a=b"changed", new__deep=b"n")
    book.remove("d")
    version = restored(book, 1)
    assert version is not None
    assert shown(book) == shown(book, 1) == shown(book, version.number)
    assert (version.number, version.via, version.message) == (
        4,
        "restore",
        "restore of memory/digest/state@1",
    )


def test_a_removed_file_comes_back_with_its_node_its_origin_and_its_mtime(book: Book) -> None:
    book.write(a=b"1")
    before = book.tree()[b"a"]
    book.remove("a")
    commit = plan(book, 1, b"a")
    assert [(one.op, one.path) for one in commit.changes] == [(ChangeKind.CREATED, b"a")]
    assert commit.message == "restore of memory/digest/state@1:a"
    restored(book, 1, b"a")
    assert replace(book.tree()[b"a"], ctime=0) == replace(before, ctime=0)


def told(commit: Commit) -> list[tuple[str, bytes, bytes | None]]:
    return [(one.op.label, one.path, one.from_path) for one in commit.changes]


def test_a_rename_that_is_undone_is_one(book: Book) -> None:
    book.write(a=b"1", d__x=b"2", d__y=b"3")
    before = book.tree()
    book.rename("a", "b")
    book.rename("d", "e")
    book.write(b=b"11", e__x=b"22", e__new=b"4")
    commit = plan(book, 1)
    assert told(commit) == [
        ("deleted", b"e/new", None),
        ("renamed", b"a", b"b"),
        ("renamed", b"d", b"e"),
        ("modified", b"d/x", None),
    ]
    assert commit.changes[-1].from_digest == book.tree()[b"e/x"].digest
    restored(book, 1)
    nodes = {path: (one.node, one.origin) for path, one in book.tree().items()}
    assert nodes == {path: (one.node, one.origin) for path, one in before.items()}


def test_a_file_that_was_renamed_and_saved_anew_since_is_renamed_back(book: Book) -> None:
    book.write(a=b"1")
    book.rename("a", "b")
    known, node = book.tree()[b"b"], book.head().next_node
    saved = replace(known, node=node)
    book.commit(
        RowChange(ROOT_NODE, b"b", saved), changes=[change(ChangeKind.MODIFIED, b"b", saved)], contents={}
    )
    assert told(plan(book, 1)) == [("renamed", b"a", b"b")]
    restored(book, 1)
    assert book.tree()[b"a"].origin == known.origin


def test_a_file_is_followed_through_a_rename_that_was_undone(book: Book) -> None:
    book.write(a=b"1\n")
    book.rename("a", "b")
    book.write(b=b"1\n2\n")
    restored(book, 1)
    with book.repository.engine.reading() as reader:
        steps = lineage(reader, book.store, b"a", 4)
        assert [(step.number, step.path) for step in steps] == [(4, b"a"), (3, b"b"), (2, b"b"), (1, b"a")]
        assert [line.number for line in blame(reader, book.store, b"a", 4)] == [1]
        undo = revert.plan(reader, book.store, 4, SYSTEM, book.clock + 2)
    assert told(undo) == [("renamed", b"b", b"a")]


def test_a_path_leaves_the_rest_alone(book: Book) -> None:
    book.write(a=b"1", d__b=b"1", d__c=b"1")
    book.write(a=b"2", d__b=b"2", d__c=b"2", d__new=b"2")
    restored(book, 1, b"d/b")
    assert shown(book)[b"d/b"] == shown(book, 1)[b"d/b"]
    assert {path: one for path, one in shown(book).items() if path != b"d/b"} == {
        path: one for path, one in shown(book, 2).items() if path != b"d/b"
    }
    restored(book, 1, b"/d/")
    assert set(book.tree()) == {b"", b"a", b"d", b"d/b", b"d/c"}
    assert shown(book)[b"a"] == shown(book, 2)[b"a"]


def test_directories_above_come_back_without_their_other_files(book: Book) -> None:
    book.write(x__y__wanted=b"1", x__y__other=b"1", x__other=b"1")
    book.remove("x")
    restored(book, 1, b"x/y/wanted")
    assert set(book.tree()) == {b"", b"x", b"x/y", b"x/y/wanted"}


def test_a_file_where_a_directory_above_was_is_a_conflict(book: Book) -> None:
    book.write(x__y=b"1")
    book.remove("x")
    book.write(x=b"a file now")
    with pytest.raises(Conflict, match="x in memory/digest/state is not a directory now"):
        plan(book, 1, b"x/y")
    restored(book, 1, b"x")
    assert set(book.tree()) == {b"", b"x", b"x/y"}


def test_a_path_or_version_that_is_not_there_is_not_found(book: Book) -> None:
    book.write(a=b"1")
    with pytest.raises(NotFound, match="b is not in memory/digest/state@1"):
        plan(book, 1, b"b")
    with pytest.raises(NotFound, match="no version 2"):
        plan(book, 2)


@pytest.mark.parametrize("path", [None, b"", b"a", b"d", b"d/b"])
def test_without_a_difference_there_is_no_version(book: Book, path: bytes | None) -> None:
    book.write(a=b"1", d__b=b"1")
    book.link("a", "a2")
    commit = plan(book, 2, path)
    assert (commit.changes, commit.rows) == ([], [])
    assert restored(book, 2, path) is None


def test_the_first_version_can_be_undone_by_restoring_version_zero(book: Book) -> None:
    book.write(a=b"1", d__b=b"1")
    restored(book, 0)
    assert set(book.tree()) == {b""}
    assert (book.head().files, book.head().used) == (0, 0)


def test_a_node_that_lives_under_another_name_is_not_given_twice(book: Book) -> None:
    book.write(a=b"1")
    book.rename("a", "b")
    restored(book, 1, b"a")
    tree = book.tree()
    assert tree[b"a"].node != tree[b"b"].node
    assert (tree[b"a"].links, tree[b"b"].links) == (1, 1)
    assert tree[b"a"].origin == tree[b"b"].origin


def test_a_renamed_directory_whose_old_place_is_restored_is_not_in_two_places(book: Book) -> None:
    book.write(a__x=b"1", a__y=b"1")
    book.rename("a", "b")
    restored(book, 1, b"a")
    assert set(book.tree()) == {b"", b"a", b"a/x", b"a/y", b"b", b"b/x", b"b/y"}
    assert restored(book, 1) is not None
    assert set(book.tree()) == {b"", b"a", b"a/x", b"a/y"}


def test_names_of_one_node_become_names_of_one_node_again(book: Book) -> None:
    book.write(a=b"1", c=b"c")
    book.link("a", "b")
    book.remove("a")
    book.remove("b")
    restored(book, 2)
    tree = book.tree()
    assert tree[b"a"] == tree[b"b"]
    assert tree[b"a"].links == 2
    assert book.head().used == 2


def test_replacing_one_of_two_names_leaves_the_other_with_one_link(book: Book) -> None:
    book.write(a=b"1", b=b"2")
    book.remove("b")
    book.link("a", "b")
    restored(book, 1, b"b")
    tree = book.tree()
    assert tree[b"a"].node != tree[b"b"].node
    assert (tree[b"a"].links, tree[b"b"].links) == (1, 1)
    assert shown(book) == shown(book, 1)


def test_more_than_the_quota_is_not_restored(shelf: Shelf) -> None:
    book = shelf("contexts/small", Limits(quota=100))
    book.write(a=b"x" * 90)
    book.remove("a")
    book.write(b=b"x" * 20)
    with pytest.raises(QuotaExceeded, match=r"contexts/small would hold 110 B, over its quota of 100 B"):
        plan(book, 1, b"a")


def test_a_symlink_and_attributes_come_back(book: Book) -> None:
    link = Entry(2, Kind.SYMLINK, 0o777, 4, 5, 5, target=b"some", origin=2)
    file = Entry(3, Kind.FILE, 0o600, 0, 5, 5, b"", origin=3, xattrs=((b"user.k", b"v"),))
    file = replace(
        file, digest=bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    )
    book.commit(
        RowChange(ROOT_NODE, b"link", link),
        RowChange(ROOT_NODE, b"file", file),
        changes=[change(ChangeKind.CREATED, b"link", link), change(ChangeKind.CREATED, b"file", file)],
        contents={},
    )
    book.remove("link")
    book.remove("file")
    restored(book, 1)
    assert replace(book.tree()[b"link"], ctime=5) == link
    assert replace(book.tree()[b"file"], ctime=5) == file


@pytest.mark.parametrize("seed", range(12))
def test_any_version_of_a_random_history_can_be_restored_from_any_later_one(book: Book, seed: int) -> None:
    """Writes, removals, renames and links at random; then restores at random, each checked by `verify`."""
    dice = random.Random(seed)
    for step in range(25):
        _do_something(book, dice, step)
    newest = book.head().number
    for _ in range(6):
        number = dice.randrange(newest + 1)
        paths = sorted(path for path in book.tree(number))
        path = dice.choice([b"", dice.choice(paths)])
        try:
            restored(book, number, path)
        except Conflict:
            continue
        with book.repository.engine.reading() as reader:
            old, new = tree_at(reader, book.store, number), tree_at(reader, book.store)
            assert list(differences(old, new, path)) == []
        assert plan(book, number, path).changes == []


def _do_something(book: Book, dice: random.Random, step: int) -> None:
    tree = book.tree()
    files = [path.decode() for path, entry in tree.items() if entry.kind is Kind.FILE]
    names = [path.decode() for path in tree if path]
    fresh = f"n{step}"
    what = dice.choice(["write", "write", "write", "remove", "rename", "link"]) if files else "write"
    if what == "write":
        path = dice.choice(
            [*files, fresh, f"d{dice.randrange(3)}/{fresh}", f"d{dice.randrange(2)}/e/{fresh}"]
        )
        if all(
            tree.get(path[:at].encode(), tree[b""]).kind is Kind.DIRECTORY
            for at in range(len(path))
            if path[at] == "/"
        ):
            book.write_paths({path.encode(): b"%d" % dice.randrange(4)})
    elif what == "remove":
        gone = dice.choice(names)
        if all(
            entry.links == 1 for path, entry in tree.items() if f"{path.decode()}/".startswith(f"{gone}/")
        ):
            book.remove(gone)
    elif what == "rename":
        book.rename(dice.choice(names), fresh)
    elif tree[(source := dice.choice(files)).encode()].links == 1:
        book.link(source, f"{source}-{step}")


def test_a_plan_made_in_the_write_transaction_sees_its_writes(book: Book) -> None:
    book.write(a=b"1")
    book.write(a=b"2")

    def body(writer: Writer) -> Version | None:
        apply(writer, restore.plan(writer, book.store, 1, None, SYSTEM, book.clock))
        return apply(writer, restore.plan(writer, book.store, 2, None, SYSTEM, book.clock))

    version = book.repository.transact(body)
    assert version is not None
    assert version.number == 4
    assert shown(book) == shown(book, 2)
