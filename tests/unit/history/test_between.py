"""Comparing two versions by what changed between them says the same as walking both trees."""

import random

import pytest

from engramfs.errors import NotFound
from engramfs.history import catalog
from engramfs.history.between import between, of_version
from engramfs.history.commit import RowChange
from engramfs.history.diff import Difference, differences, with_renames
from engramfs.history.tree import tree_at
from engramfs.model.entry import EMPTY_DIGEST, ROOT_NODE, Kind
from engramfs.model.version import ChangeKind

from .conftest import Book, change, replace


def shown(found: list[Difference]) -> list[str]:
    """ "renamed a -> b", "created c"; "and d" of what moved with its directory."""
    words = []
    for one in found:
        path = one.path.decode()
        if one.is_implied:
            words.append(f"and {path}")
            continue
        if one.from_path is not None:
            words.append(f"renamed {one.from_path.decode()} -> {path}")
        else:
            words.append(f"{'created' if not one.old else 'deleted' if not one.new else 'modified'} {path}")
    return words


def of(book: Book, number: int) -> list[str]:
    with book.repository.engine.reading() as reader:
        return shown(of_version(reader, book.store, number))


@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_a_walk_of_both_trees(book: Book, seed: int) -> None:
    _write_history(book, random.Random(seed))
    newest = book.head().number
    with book.repository.engine.reading() as reader:
        for old in range(newest + 1):
            for new in range(newest + 1):
                for path in (b"", b"a", b"b/c", b"a/b/c"):
                    trees = tree_at(reader, book.store, old), tree_at(reader, book.store, new)
                    walked = list(differences(*trees, path))
                    assert list(between(reader, book.store, old, new, path)) == walked, (old, new, path)


def _write_history(book: Book, rng: random.Random) -> None:
    """A dozen versions of files and directories that are written, removed and moved about."""
    book.write(a__b__x=b"0", a__y=b"0", b__c__z=b"0", top=b"0")
    for number in range(12):
        known = book.tree()
        directories = [path for path, entry in known.items() if entry.kind is Kind.DIRECTORY]
        name = b"/".join(filter(None, [rng.choice(directories), rng.choice([b"a", b"b", b"c", b"x"])]))
        others = [path for path in known if path]
        moved = rng.choice(others) if others else b""
        inside = (name + b"/").startswith(moved + b"/")
        if rng.random() < 0.4 and moved and name not in known and not inside:
            book.rename(moved.decode(), name.decode())
        elif rng.random() < 0.3 and moved:
            book.remove(moved.decode())
        elif name not in directories:
            book.write_paths({name: b"%d" % number})


def test_a_renamed_directory_comes_with_what_is_in_it_and_what_changed_is_told_apart(book: Book) -> None:
    book.write(old__deep__same=b"s", old__deep__changed=b"1", old__moved=b"m")
    book.rename("old", "new")
    assert of(book, 2) == [
        "renamed old -> new",
        "and new/deep",
        "and new/deep/changed",
        "and new/deep/same",
        "and new/moved",
    ]
    book.write(new__deep__changed=b"2")
    book.rename("new/moved", "elsewhere")
    with book.repository.engine.reading() as reader:
        found = shown(with_renames(between(reader, book.store, 1, 4)))
    assert found == [
        "renamed old/moved -> elsewhere",
        "renamed old -> new",
        "and new/deep",
        "renamed old/deep/changed -> new/deep/changed",
        "and new/deep/same",
    ]


def test_a_file_that_was_renamed_and_saved_anew_is_still_that_file(book: Book) -> None:
    book.write(before=b"1", other=b"o")
    book.rename("before", "after")
    entry = book.tree()[b"after"]
    saved = replace(entry, node=book.head().next_node, size=0, digest=EMPTY_DIGEST)
    book.commit(
        RowChange(ROOT_NODE, b"after", saved),
        changes=[change(ChangeKind.MODIFIED, b"after", saved)],
        contents={},
    )
    with book.repository.engine.reading() as reader:
        assert shown(with_renames(between(reader, book.store, 1, 3))) == ["renamed before -> after"]


def test_a_rename_over_another_file_names_both(book: Book) -> None:
    book.write(a=b"a", b=b"b")
    book.remove("b")
    book.rename("a", "b")
    with book.repository.engine.reading() as reader:
        found = shown(with_renames(between(reader, book.store, 1, 3)))
    assert found == ["deleted a", "modified b"]


def test_where_the_version_before_is_gone_there_is_nothing_to_compare_with(book: Book) -> None:
    book.write(a=b"1")
    book.write(a=b"2")
    book.write(a=b"3")
    keep_from(book, 2)
    with pytest.raises(NotFound, match="the version before 2"):
        of(book, 2)
    assert of(book, 3) == ["modified a"]


def keep_from(book: Book, oldest: int) -> None:
    """What retention leaves of the headers."""
    from engramfs.storage import keys
    from engramfs.storage.protocol import Table, Writer

    def body(writer: Writer) -> None:
        for number in range(1, oldest):
            writer.delete(Table.VERSIONS, keys.version(book.store.id, number))
            writer.delete(Table.CHANGES, keys.changes(book.store.id, number, 0))
        catalog.put_head(writer, book.store.id, replace(catalog.head(writer, book.store.id), oldest=oldest))

    book.repository.transact(body)
