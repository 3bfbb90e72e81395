"""A tool's call becomes one version: every edit of it, in order, or none."""

import hashlib

import pytest

from engramfs.errors import (
    AlreadyExists,
    Conflict,
    EngramError,
    InvalidName,
    NotFound,
    NotUnique,
    QuotaExceeded,
    Stale,
    TooLarge,
    UsageError,
)
from engramfs.history import catalog, edit
from engramfs.history.commit import apply
from engramfs.history.edit import Edited
from engramfs.history.tree import tree_at, walk
from engramfs.history.verify import verify
from engramfs.model.entry import Kind
from engramfs.model.file_edit import Append, Create, Delete, Edit, EditLimits, FileEdit, Overwrite, Rename
from engramfs.model.store import Limits
from engramfs.storage import blobs
from engramfs.storage.protocol import Writer

from .conftest import AUTHOR, Book, replace


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def call(book: Book, *edits: FileEdit, limits: EditLimits | None = None) -> Edited:
    book.clock += 10**9

    def body(writer: Writer) -> Edited:
        store = catalog.named(writer, book.store.name)
        planned = edit.plan(
            writer, store, edits, author=AUTHOR, via="tool", now=book.clock, message="why", limits=limits
        )
        apply(writer, planned.commit)
        return planned

    done = book.repository.transact(body)
    assert verify(book.repository).findings == []
    return done


def changes(edited: Edited) -> list[str]:
    found = []
    for one in edited.commit.changes:
        source = f"{one.from_path.decode()} -> " if one.from_path is not None else ""
        found.append(f"{one.op.label} {source}{one.path.decode()}")
    return sorted(found)


def files(book: Book) -> dict[str, bytes | None]:
    with book.repository.engine.reading() as reader:
        return {
            path.decode(): blobs.read(reader, entry.digest, entry.size) if entry.kind is Kind.FILE else None
            for path, entry in walk(tree_at(reader, book.store))
            if path
        }


def refused(
    book: Book, *edits: FileEdit, by: type[EngramError], limits: EditLimits | None = None
) -> EngramError:
    """The error of a call of which nothing was done."""
    before, number = files(book), book.head().number
    with pytest.raises(by) as caught:
        call(book, *edits, limits=limits)
    assert (files(book), book.head().number) == (before, number)
    return caught.value


def test_every_mode_in_one_call_is_one_version(book: Book) -> None:
    book.write(a=b"one\n", b=b"old text\n", c=b"c", d=b"d", e=b"e")
    done = call(
        book,
        Append("a", "two\n"),
        Edit("b", "old", "new"),
        Overwrite("c", "all of it"),
        Delete("d"),
        Create("new/deep/file", "x"),
        Rename("e", "moved/e"),
    )
    assert files(book) == {
        "a": b"one\ntwo\n",
        "b": b"new text\n",
        "c": b"all of it",
        "new": None,
        "new/deep": None,
        "new/deep/file": b"x",
        "moved": None,
        "moved/e": b"e",
    }
    assert changes(done) == [
        "created moved",
        "created new",
        "created new/deep",
        "created new/deep/file",
        "deleted d",
        "modified a",
        "modified b",
        "modified c",
        "renamed e -> moved/e",
    ]
    assert book.head().number == 2
    assert (done.commit.via, done.commit.message) == ("tool", "why")
    assert {file.path: file.sha256 for file in done.files} == {
        "a": sha256(b"one\ntwo\n"),
        "b": sha256(b"new text\n"),
        "c": sha256(b"all of it"),
        "d": None,
        "new/deep/file": sha256(b"x"),
        "moved/e": sha256(b"e"),
    }


def test_an_edited_file_keeps_its_node_and_its_identity_and_gets_a_new_mtime(book: Book) -> None:
    book.write(a=b"1")
    before = book.tree()[b"a"]
    call(book, Overwrite("a", "2"), Rename("a", "b"))
    after = book.tree()[b"b"]
    assert (after.node, after.origin, after.mode) == (before.node, before.origin, before.mode)
    assert after.mtime > before.mtime


def test_edits_of_one_call_build_on_each_other(book: Book) -> None:
    done = call(book, Create("a", "1"), Append("a", "2"), Edit("a", "1", "0"))
    assert files(book) == {"a": b"02"}
    assert [(file.path, file.sha256) for file in done.files] == [("a", sha256(b"02"))], "each file once"
    assert changes(done) == ["created a"]


@pytest.mark.parametrize(
    "edits",
    [
        [Create("a", "1"), Delete("a")],
        [Overwrite("kept", "kept")],
        [Rename("kept", "x"), Rename("x", "kept")],
        [Edit("kept", "k", "k")],
    ],
)
def test_what_comes_to_nothing_makes_no_version(book: Book, edits: list[FileEdit]) -> None:
    book.write(kept=b"kept")
    assert call(book, *edits).commit.changes == []
    assert book.head().number == 1


def test_all_names_of_a_file_get_the_new_content(book: Book) -> None:
    book.write(a=b"1")
    book.link("a", "b")
    done = call(book, Append("b", "2"))
    assert files(book) == {"a": b"12", "b": b"12"}
    assert changes(done) == ["modified a", "modified b"]
    call(book, Delete("a"))
    assert book.tree()[b"b"].links == 1
    call(book, Rename("b", "c"), Delete("c"))
    assert files(book) == {}


def test_a_directory_goes_whole_and_moves_whole(book: Book) -> None:
    book.write(d__a=b"1", d__e__b=b"2", other=b"3")
    done = call(book, Append("d/a", "+"), Rename("d", "f"))
    assert changes(done) == ["modified f/a", "renamed d -> f"]
    assert [file.path for file in done.files] == ["f"], "nothing is at the old path"
    done = call(book, Delete("f", recursive=True))
    assert changes(done) == ["deleted f", "deleted f/a", "deleted f/e", "deleted f/e/b"]
    assert files(book) == {"other": b"3"}


@pytest.mark.parametrize(
    ("edits", "by", "says"),
    [
        ([Create("a", "x")], AlreadyExists, "a exists"),
        ([Append("x", "x")], NotFound, "x does not exist"),
        ([Edit("x", "x", "y")], NotFound, "x does not exist"),
        ([Delete("x/y")], NotFound, "x/y does not exist"),
        ([Overwrite("d", "x")], Conflict, "d is a directory"),
        ([Delete("d")], Conflict, "d is a directory"),
        ([Create("a/b", "x")], Conflict, "a is a file and not a directory"),
        ([Rename("a", "d/b")], AlreadyExists, "d/b exists"),
        ([Rename("d", "d/b/c")], UsageError, "lies in d itself"),
        ([Edit("a", "one", "1")], NotUnique, "occurs 2 times in a"),
        ([Edit("a", "none", "1")], NotUnique, "occurs 0 times in a"),
        ([Edit("a", "", "1")], UsageError, "old_text is empty"),
        ([], UsageError, "nothing to do"),
        ([Create("x", "\ud800")], UsageError, "surrogate"),
    ],
)
def test_what_cannot_be_done_is_refused_whole(
    book: Book, edits: list[FileEdit], by: type[EngramError], says: str
) -> None:
    book.write(a=b"one one", d__b=b"b")
    error = refused(book, *([Create("first", "x")] if edits else []), *edits, by=by)
    assert says in error.message


@pytest.mark.parametrize(
    "path", ["", "/a", "../a", "a/../b", "./a", "a//b", "a/", ".versions/1", "a\0b", "x" * 256, "a/" * 1901]
)
def test_no_path_leads_out_of_the_store(book: Book, path: str) -> None:
    book.write(a=b"1")
    refused(book, Create(path, "x"), by=UsageError)
    refused(book, Rename("a", path), by=UsageError)


def test_links_are_not_followed(book: Book) -> None:
    book.write(a=b"1", d__b=b"2")
    book.symlink("out", "/etc")
    refused(book, Create("out/passwd", "x"), by=Conflict)
    refused(book, Append("out", "x"), by=Conflict)


def test_a_file_that_changed_since_it_was_read_is_stale_and_the_error_says_what_it_is_now(book: Book) -> None:
    book.write(a=b"1", b=b"1")
    seen = sha256(b"1")
    call(book, Overwrite("a", "2", expected_sha256=seen.upper()), Append("a", "3", expected_sha256=seen))
    error = refused(
        book, Append("b", "2", expected_sha256=seen), Append("a", "4", expected_sha256=seen), by=Stale
    )
    assert f"a has sha256 {sha256(b'23')} now" in error.message
    assert error.details == {"path": "a", "sha256": sha256(b"23")}
    error = refused(book, Overwrite("gone", "x", expected_sha256=seen), by=Stale)
    assert error.details == {"path": "gone", "sha256": None}


def test_limits_of_a_call(book: Book) -> None:
    limits = EditLimits(max_file_size=10, max_files=2)
    call(book, Create("a", "x" * 10), limits=limits)
    refused(book, Append("a", "x"), by=TooLarge, limits=limits)
    refused(book, *(Create(f"f{count}", "") for count in range(3)), by=TooLarge, limits=limits)


def test_limits_of_the_store(book: Book) -> None:
    limited = replace(book.store, limits=Limits(max_file_size=10, quota=15))
    book.repository.transact(lambda writer: catalog.put(writer, limited))
    refused(book, Create("a", "x" * 11), by=TooLarge)
    call(book, Create("a", "x" * 10))
    refused(book, Create("b", "x" * 10), by=QuotaExceeded)
    call(book, Overwrite("a", "x" * 5), Create("b", "x" * 10))


@pytest.mark.parametrize(
    "name", [".tmp-x", "n.md~", ".n.md.swp", "4913", ".#n.md", ".tmp-d/n.md", "d/.tmp-x"]
)
def test_a_new_name_that_no_mount_would_keep_is_refused(book: Book, name: str) -> None:
    call(book, Create("n.md", "x"))
    for one in (Create(name, "x"), Overwrite(name, "x"), Rename("n.md", name)):
        error = refused(book, Create("other.md", "x"), one, by=InvalidName)
        assert "scratch file, which no version keeps" in error.message


def test_what_was_imported_under_such_a_name_is_changed_and_deleted(book: Book) -> None:
    book.write_paths({b"n.md~": b"x", b".tmp-d/n.md": b"x"})
    call(book, Append("n.md~", "y"), Create(".tmp-d/other.md", "x"), Delete(".tmp-d/n.md"))
    call(book, Rename("n.md~", "n.md"))
    assert sorted(name for name, content in files(book).items() if content) == [".tmp-d/other.md", "n.md"]
