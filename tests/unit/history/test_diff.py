"""What differs between two trees, and between two contents."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engramfs.history.diff import differences
from engramfs.history.patch import unified
from engramfs.history.tree import Tree, tree_at
from engramfs.model.entry import Entry
from engramfs.model.names import raw

from .conftest import Book


def differ(book: Book, old: int | None, new: int | None, path: bytes = b"") -> dict[bytes, str]:
    """path → created, modified or deleted."""
    with book.repository.engine.reading() as reader:
        trees = tree_at(reader, book.store, old), tree_at(reader, book.store, new)
        return {
            one.path: "created" if one.old is None else "deleted" if one.new is None else "modified"
            for one in differences(*trees, path)
        }


def test_only_what_differs_is_named(book: Book) -> None:
    book.write(same=b"s", d__changed=b"1", d__gone=b"g", d__same=b"s")
    book.write(d__changed=b"2", new__deep=b"n")
    book.remove("d/gone")
    assert differ(book, 1, None) == {
        b"d/changed": "modified",
        b"d/gone": "deleted",
        b"new": "created",
        b"new/deep": "created",
    }
    assert differ(book, 3, None) == {}
    assert differ(book, None, 1)[b"new/deep"] == "deleted"


def test_a_path_limits_the_comparison(book: Book) -> None:
    book.write(a=b"1", d__b=b"1")
    book.write(a=b"2", d__b=b"2", d__c=b"2")
    assert differ(book, 1, 2, b"d") == {b"d/b": "modified", b"d/c": "created"}
    assert differ(book, 1, 2, b"a") == {b"a": "modified"}
    assert differ(book, 1, 2, b"d/c") == {b"d/c": "created"}
    assert differ(book, 1, 2, b"nothing") == {}


def test_a_file_that_became_a_directory_is_modified_and_what_is_in_it_created(book: Book) -> None:
    book.write(a=b"1")
    book.remove("a")
    book.write(a__b=b"2")
    assert differ(book, 1, None) == {b"a": "modified", b"a/b": "created"}


def test_saving_the_same_bytes_as_a_new_file_is_no_difference(book: Book) -> None:
    book.write(a=b"1")
    book.remove("a")
    book.write(a=b"1")
    assert book.tree(1)[b"a"].node != book.tree(3)[b"a"].node
    assert differ(book, 1, 3) == {}


def test_another_mode_is_a_difference(book: Book) -> None:
    book.write(a=b"1")
    book.write(a=b"1", mode=0o600)
    assert differ(book, 1, 2) == {b"a": "modified"}


def test_directories_that_only_one_tree_has_are_not_looked_up_in_the_other(book: Book) -> None:
    """A directory's node id may stand for nothing, or for something else, in the other tree."""
    book.write(a__b=b"1")
    book.rename("a", "z")
    listed: list[int] = []

    class Counting:
        def __init__(self, tree: Tree) -> None:
            self.tree = tree
            self.root, self.lookup, self.node = tree.root, tree.lookup, tree.node

        def children(self, parent: int) -> list[tuple[bytes, Entry]]:
            listed.append(parent)
            return list(self.tree.children(parent))

    with book.repository.engine.reading() as reader:
        trees = [Counting(tree_at(reader, book.store, number)) for number in (1, 2)]
        found = [one.path for one in differences(*trees)]  # type: ignore[arg-type]
    assert found == [b"a", b"a/b", b"z", b"z/b"]
    assert len(listed) == 4


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (b"a\nb\nc\n", b"a\nB\nc\n", ["@@ -1,3 +1,3 @@", " a", "-b", "+B", " c"]),
        (b"a", b"a\n", ["@@ -1 +1 @@", "-a", "\\ No newline at end of file", "+a"]),
        (b"-- x", b"", ["@@ -1 +0,0 @@", "--- x", "\\ No newline at end of file"]),
        (b"a\rb\x0c\n", b"a\rc\x0c\n", ["@@ -1 +1 @@", "-a\rb\x0c", "+a\rc\x0c"]),
    ],
)
def test_a_text_is_shown_as_a_unified_diff(old: bytes, new: bytes, expected: list[str]) -> None:
    assert list(unified(old, new, b"f")) == ["--- a/f", "+++ b/f", *expected]


def test_equal_contents_give_no_diff() -> None:
    assert list(unified(b"a\n", b"a\n", b"f")) == []


def test_a_file_that_is_not_there_is_dev_null() -> None:
    assert list(unified(None, b"a\n", b"f"))[:2] == ["--- /dev/null", "+++ b/f"]
    assert list(unified(b"a\n", None, b"f"))[:2] == ["--- a/f", "+++ /dev/null"]


def test_binary_files_are_named_and_not_shown() -> None:
    assert list(unified(b"a\0b", b"text\n", b"d/f")) == ["Binary files a/d/f and b/d/f differ"]
    assert list(unified(None, b"\0", b"f")) == ["Binary files /dev/null and b/f differ"]


LINES = st.lists(st.sampled_from([b"a", b"b", b"-- c", b"@@ d", b"\xff", b"", b"+e\r"]), max_size=8)
CONTENTS = st.builds(lambda lines, end: b"\n".join(lines) + end, LINES, st.sampled_from([b"", b"\n"]))


@settings(max_examples=60, deadline=None)
@given(CONTENTS, CONTENTS)
def test_patch_makes_the_new_content_from_the_old(
    tmp_path_factory: pytest.TempPathFactory, old: bytes, new: bytes
) -> None:
    directory = tmp_path_factory.mktemp("patch")
    (directory / "f").write_bytes(old)
    text = b"".join(raw(line) + b"\n" for line in unified(old, new, b"f"))
    if text:
        _patch(directory, text)
    assert (directory / "f").read_bytes() == new


def _patch(directory: Path, text: bytes) -> None:
    command = ["git", "apply", "--unidiff-zero", "--whitespace=nowarn", "-p1", "-"]
    subprocess.run(command, input=text, cwd=directory, check=True, capture_output=True, timeout=20)
