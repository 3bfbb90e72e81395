"""A store's tree, at its head and at every version."""

import random

import pytest

from engramfs.errors import Corrupt, NotFound
from engramfs.history.tree import HeadTree, VersionTree, path_to, places, resolve, tree_at
from engramfs.model.entry import ROOT_NODE
from engramfs.storage import keys
from engramfs.storage.protocol import Table

from .conftest import Book


def listing(book: Book, number: int | None, parent: int = ROOT_NODE) -> list[bytes]:
    with book.repository.engine.reading() as reader:
        return [name for name, _ in tree_at(reader, book.store, number).children(parent)]


def test_names_that_are_prefixes_of_others_are_kept_apart(book: Book) -> None:
    names = [b"a", b"a\x01", b"a ", b"a.b", b"aa", b"ab", b"a\xff", b"\xff", b"b" * 255]
    for number, name in enumerate(names, start=1):
        book.write_paths({name: b"%d" % number})
    for number in range(len(names) + 1):
        assert listing(book, number) == sorted(names[:number])
        with book.repository.engine.reading() as reader:
            tree = VersionTree(reader, book.store, number)
            found = [tree.lookup(ROOT_NODE, name) is not None for name in names]
        assert found == [index < number for index in range(len(names))]


def test_a_name_is_what_it_was_in_each_version(book: Book) -> None:
    book.write(a=b"one")
    book.write(b=b"other")
    book.remove("a")
    book.write(a=b"two!")
    sizes = [entry.size if (entry := book.tree(number).get(b"a")) else None for number in range(5)]
    assert sizes == [None, 3, 3, None, 4]


def test_a_renamed_directory_takes_what_is_in_it_along_with_one_row(book: Book) -> None:
    book.write(a__b__c=b"1")
    before = book.tree()
    book.rename("a", "z")
    assert set(book.tree(1)) == {b"", b"a", b"a/b", b"a/b/c"}
    assert set(book.tree()) == set(book.tree(2)) == {b"", b"z", b"z/b", b"z/b/c"}
    assert book.tree()[b"z/b/c"] == before[b"a/b/c"]


def test_every_version_of_a_long_history_lists_as_it_was(book: Book) -> None:
    """Random writes and removals over few names, against a plain dictionary."""
    dice = random.Random(4)
    model: dict[str, bytes] = {}
    then = [dict(model)]
    for step in range(150):
        name = "n" * dice.randrange(1, 9)
        if name in model and dice.random() < 0.4:
            del model[name]
            book.remove(name)
        else:
            model[name] = b"%d" % step
            book.write_paths({name.encode(): model[name]})
        then.append(dict(model))
    for number, files in enumerate(then):
        tree = book.tree(number)
        assert {path.decode(): entry.size for path, entry in tree.items() if path} == {
            name: len(content) for name, content in files.items()
        }
    assert book.tree() == book.tree(150)


def test_a_version_that_does_not_exist_is_not_found(book: Book) -> None:
    book.write(a=b"1")
    with book.repository.engine.reading() as reader:
        for number in (-1, 2):
            with pytest.raises(
                NotFound, match=f"memory/digest/state has no version {number}; its newest is 1"
            ):
                tree_at(reader, book.store, number)


def test_resolve_follows_directories_only(book: Book) -> None:
    book.write(a__b=b"1")
    with book.repository.engine.reading() as reader:
        tree = HeadTree(reader, book.store)
        assert resolve(tree, b"") == tree.root()
        assert resolve(tree, b"/a//./b/") == book.tree()[b"a/b"]
        assert resolve(tree, b"a/b/c") is None
        assert resolve(tree, b"a/..") is None


def test_a_node_knows_its_names_in_each_version(book: Book) -> None:
    book.write(d__a=b"1")
    book.link("d/a", "d/b")
    book.rename("d/a", "c")
    node = book.tree()[b"c"].node
    with book.repository.engine.reading() as reader:
        paths = [
            {path_to(tree, parent, name) for parent, name, _ in places(reader, book.store.id, tree, node)}
            for tree in (tree_at(reader, book.store, number) for number in (0, 1, 2, 3, None))
        ]
    assert paths == [set(), {b"d/a"}, {b"d/a", b"d/b"}, {b"c", b"d/b"}, {b"c", b"d/b"}]


def test_a_damaged_row_names_the_store_and_the_entry(book: Book) -> None:
    book.write(a=b"1")
    for table, key in (
        (Table.LIVE, keys.live(book.store.id, ROOT_NODE, b"a")),
        (Table.HISTORY, keys.history(book.store.id, ROOT_NODE, b"a", 1)),
    ):
        book.repository.transact(lambda writer, table=table, key=key: writer.put(table, key, b"\x91\x00"))  # type: ignore[misc]
    with book.repository.engine.reading() as reader:
        for number in (None, 1):
            tree = tree_at(reader, book.store, number)
            with pytest.raises(Corrupt, match=r"store memory/digest/state: the entry a of directory 1"):
                tree.lookup(ROOT_NODE, b"a")
            with pytest.raises(Corrupt, match=r"store memory/digest/state: the entry a of directory 1"):
                list(tree.children(ROOT_NODE))
