"""The commits of a git repository as versions of a store."""

import io
import os
from pathlib import Path

import msgspec
import pytest

from engramfs.errors import Conflict, EngramError, FileTooLarge, NotFound, Unavailable
from engramfs.history import catalog, log
from engramfs.history.git.exporting import export
from engramfs.history.git.importing import GitImport
from engramfs.history.git.source import Source
from engramfs.history.repository import Repository
from engramfs.model.author import Author
from engramfs.model.entry import ROOT_NODE, Kind
from engramfs.model.store import Limits
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Table, Writer

from .conftest import SECOND, Book, Shelf
from .git_work import ROOT, Importing, Work, round_trip


def test_each_commit_becomes_a_version_with_its_tree_author_and_message(importing: Importing) -> None:
    first = importing.work.commit("first\n\nwith a body", a=b"1", d__b=b"2", gone=b"3")
    (importing.work.directory / "link").symlink_to("d/b")
    (importing.work.directory / "a").chmod(0o755)
    importing.work.commit("second", gone=None, d__b=b"22")
    importing()
    assert importing.files(1) == {b"a": b"1", b"d/b": b"2", b"gone": b"3"}
    assert importing.files() == {b"a": b"1", b"d/b": b"22", b"link": b"d/b"}
    tree = importing.book.tree()
    assert (tree[b"a"].mode, tree[b"d/b"].mode, tree[b"link"].kind) == (0o755, 0o644, Kind.SYMLINK)
    assert tree[b"d/b"].mtime == 1_700_000_000 * SECOND
    version = importing.versions()[0]
    assert (version.author, version.via) == (Author("person", actor="Ann Smith"), "import")
    assert version.message == (
        f"first\n\nwith a body\n\nGit-Commit: {first}\nGit-Parent: none\n"
        "Git-Author: Ann Smith <ann@example.org>\nGit-Author-Date: 2023-11-15T00:13:20+02:00\n"
        "Git-Committer: Ann Smith <ann@example.org>\nGit-Committer-Date: 2023-11-15T00:13:20+02:00\n"
        "Imported-By: root"
    )


def test_nodes_stay_what_they_are_while_their_paths_do(importing: Importing) -> None:
    importing.work.commit(a=b"1", d__b=b"2")
    importing.work.commit(a=b"11", d__c=b"3")
    importing()
    before, after = importing.book.tree(1), importing.book.tree(2)
    assert {path: entry.node for path, entry in after.items() if path in before} == {
        path: entry.node for path, entry in before.items()
    }


def test_a_file_becomes_a_directory_and_back(importing: Importing) -> None:
    importing.work.commit(a=b"file", b__x=b"1", b__y=b"2")
    importing.work.git("rm", "-rq", "a", "b")
    importing.work.commit(a__x=b"below", b=b"file")
    importing.work.git("rm", "-rq", "a", "b")
    importing.work.commit(a=b"file", b__x=b"1")
    importing()
    assert importing.files(2) == {b"a/x": b"below", b"b": b"file"}
    assert importing.files(3) == {b"a": b"file", b"b/x": b"1"}


def test_merges_count_once_along_the_first_parent(importing: Importing) -> None:
    work = importing.work
    work.commit("base", a=b"1")
    work.git("checkout", "-qb", "side")
    work.commit("side 1", s=b"1")
    work.commit("side 2", s=b"2")
    work.git("checkout", "-q", "main")
    work.commit("main", a=b"2")
    work.git("merge", "-q", "--no-ff", "-m", "merged", "side")
    importing()
    assert [version.message.splitlines()[0] for version in importing.versions()] == ["base", "main", "merged"]
    assert importing.files() == {b"a": b"2", b"s": b"2"}


def test_another_branch_can_be_named_and_one_that_is_not_there_is_refused(importing: Importing) -> None:
    importing.work.commit(a=b"1")
    importing.work.git("checkout", "-qb", "side")
    importing.work.commit(a=b"2")
    importing("main")
    assert importing.files() == {b"a": b"1"}
    with pytest.raises(NotFound, match="there is no commit nowhere"):
        importing("nowhere")
    with pytest.raises(NotFound, match="is no git repository"):
        Source(os.fsencode(importing.work.directory.parent), "HEAD")


def test_it_goes_on_after_what_it_imported(importing: Importing) -> None:
    importing.work.commit(a=b"1")
    importing()
    importing()
    assert len(importing.versions()) == 1
    importing.work.commit("nothing changes")
    importing.work.commit(b=b"2")
    importing()
    importing.work.commit(a=None)
    importing()
    assert len(importing.versions()) == 3
    assert importing.files() == {b"b": b"2"}


def test_what_others_wrote_since_is_undone_only_when_that_is_meant(importing: Importing) -> None:
    importing.work.commit(a=b"1")
    importing()
    importing.book.write(mine=b"agent")
    importing.work.commit(b=b"2")
    with pytest.raises(Conflict, match=r"@2 did not come from the repository.*--over"):
        importing()
    importing(over=True)
    assert importing.files() == {b"a": b"1", b"b": b"2"}
    assert importing.files(2)[b"mine"] == b"agent"


def test_over_what_retention_left_of_the_last_import_it_begins_anew(importing: Importing) -> None:
    importing.work.commit(a=b"1", b=b"old")
    importing()
    book = importing.book
    book.write(b=b"2", mine=b"agent")

    def keep_the_head(writer: Writer) -> None:
        head = msgspec.structs.replace(catalog.head(writer, book.store.id), oldest=2)
        catalog.put_head(writer, book.store.id, head)
        writer.delete(Table.HISTORY, keys.history(book.store.id, ROOT_NODE, b"b", 1))

    book.repository.transact(keep_the_head)
    importing.work.commit(c=b"3")
    importing(over=True)
    assert importing.files() == {b"a": b"1", b"b": b"old", b"c": b"3"}


def test_what_others_write_meanwhile_ends_the_import(importing: Importing) -> None:
    importing.work.commit(a=b"1")
    book, source = importing.book, Source(os.fsencode(importing.work.directory), "HEAD")
    run = GitImport(book.repository, book.store, ROOT)
    with source.stream(None) as stream, pytest.raises(Conflict, match="@1 did not come from the repository"):  # noqa: PT012
        for each in run.commits(stream):
            book.write(mine=b"agent")
            with book.repository.engine.reading() as reader:
                run.plan(reader, book.store, each, book.clock)
    assert importing.files() == {b"mine": b"agent"}


def test_a_history_that_was_rewritten_is_refused_unless_that_is_meant(importing: Importing) -> None:
    importing.work.commit(a=b"1")
    importing.work.commit(a=b"2", gone=b"x")
    importing()
    importing.work.git("reset", "-q", "--hard", "HEAD~1")
    importing.work.commit(a=b"3")
    with pytest.raises(Conflict, match="which this history does not have"):
        importing()
    importing(over=True)
    assert importing.files() == {b"a": b"3"}
    assert len(importing.versions()) == 3


def test_submodules_and_the_reserved_name_are_left_out_and_named(importing: Importing) -> None:
    base = importing.work.commit_paths({"a": b"1", ".versions/x": b"2"})
    importing.work.git("update-index", "--add", "--cacheinfo", f"160000,{base},sub")
    importing.work.git("commit", "-qm", "with a submodule")
    assert importing().skipped == {b"sub", b".versions/x"}
    assert importing.files() == {b"a": b"1"}


@pytest.mark.parametrize(
    "name", ["a b", 'quo"ted', "back\\slash", "new\nline", "ü", "\t\x01", "\udcff\udcfe"]
)
def test_names_may_hold_any_bytes(importing: Importing, name: str) -> None:
    importing.work.commit_paths({name: b"1", f"d/{name}": b"2"})
    importing()
    assert importing.files() == {os.fsencode(name): b"1", b"d/" + os.fsencode(name): b"2"}


def test_contents_of_any_size(importing: Importing) -> None:
    large = os.urandom(1 << 20) * 3 + b"end"
    contents = {"empty": b"", "part": large[: blobs.PART], "more": large[: blobs.PART + 1], "large": large}
    importing.work.commit_paths(contents)
    importing()
    assert importing.files() == {name.encode(): content for name, content in contents.items()}


def test_a_file_over_the_limit_is_refused_and_what_came_before_stays(shelf: Shelf, tmp_path: Path) -> None:
    work = Work(tmp_path / "work")
    importing = Importing(work, shelf("contexts/small", Limits(max_file_size=100)))
    work.commit(a=b"1")
    work.commit(a=b"x" * 101)
    with pytest.raises(FileTooLarge, match=r"^a in commit [0-9a-f]{12} is 101 B, over the 100 B"):
        importing()
    assert importing.files() == {b"a": b"1"}


def test_a_message_in_another_encoding_is_understood(importing: Importing) -> None:
    importing.work.git("config", "i18n.commitEncoding", "ISO-8859-1")
    (importing.work.directory / "a").write_bytes(b"1")
    importing.work.git("add", "a")
    importing.work.git("commit", "-q", "-F", "-", said="grün".encode("latin-1"))
    importing()
    assert importing.versions()[0].message.startswith("grün\n")


def test_there_and_back_the_trees_are_the_same_version_by_version(
    shelf: Shelf, repository: Repository, tmp_path: Path
) -> None:
    book = shelf("memory/digest/state")
    book.write(notes=b"one", d__e__f=b"two", run=b"#!", mode=0o755)
    book.write_paths({b"we\xff\nird": b"\0\1", b"d/e/f": b"changed"})
    book.rename("d", "moved")
    book.remove("notes")
    book.write_paths({b"large": os.urandom(3 << 20)})
    back = round_trip(book, shelf("contexts/back"), tmp_path / "git")
    there = Importing(back.work, book)
    assert len(back.versions()) == 5
    for number in range(1, 6):
        assert back.files(number) == there.files(number)
        modes = {path: entry.mode & 0o100 for path, entry in back.book.tree(number).items() if entry.digest}
        assert modes == {path: book.tree(number)[path].mode & 0o100 for path in modes}
    assert "Engramfs-Version: 5" in back.versions()[-1].message


MESSAGES = [
    "",
    "one line",
    "a subject\n\nand a body,\nof two lines",
    "created notes",
    "\n  indented, with blanks around \n\n",
    "Signed-off-by: Ann <ann@example.org>",
    "x\n\nEngramfs-Version: 99\nGit-Commit: 00",
    "grün 漢\r\ttab",
]


def texts(book: Book) -> list[str]:
    with book.repository.engine.reading() as reader:
        found = [log.describe(one, []) for one in log.versions(reader, book.store.id)]
    return [one["message"] for one in found][::-1]


def test_messages_come_back_as_they_were_and_summaries_do_not(shelf: Shelf, tmp_path: Path) -> None:
    book, back, again = (shelf(name) for name in ("memory/digest/state", "contexts/back", "contexts/again"))
    for number, message in enumerate(MESSAGES):
        book.write(message=message, notes=b"%d" % number)
    imported = round_trip(book, back, tmp_path / "one")
    assert texts(back) == MESSAGES
    first = log.describe(imported.versions()[0], [])["source"]
    assert (first["Engramfs-Version"], first["Git-Commit"]) == ("1", imported.work.git("rev-parse", "main~7"))
    round_trip(back, again, tmp_path / "two")
    assert texts(again) == MESSAGES


def test_what_a_person_makes_of_an_exported_commit_is_a_message(shelf: Shelf, tmp_path: Path) -> None:
    book, back = shelf("memory/digest/state"), shelf("contexts/back")
    book.write(notes=b"1")
    directory = tmp_path / "git"
    export(book.repository, book.store, os.fsencode(directory))
    work = Work(directory)
    text = work.git("show", "-s", "--format=%B").replace("created notes\n", "What I know\n", 1)
    work.git("commit", "--quiet", "--amend", "-m", text)
    Importing(work, back)()
    assert texts(back) == ["What I know"]
    work.git("commit", "--quiet", "--allow-empty", "--amend", "--signoff", "-m", text)
    (directory / "notes").write_bytes(b"2")
    work.git("commit", "--quiet", "--all", "--signoff", "-m", text)
    again = shelf("contexts/again")
    Importing(work, again)()
    assert "Signed-off-by: Ann Smith" in texts(again)[-1]


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        (b"", "git ended before"),
        (b"feature done\n", "git ended before"),
        (b"blob\nmark :1\ndata 5\nab", "in the middle of a file"),
        (b"blob\nmark :x\n", "no stream of git fast-export"),
        (b"nonsense\n", "no stream of git fast-export"),
        (b"commit x\nmark :1\noriginal-oid a\nauthor x\n", "no stream of git fast-export"),
    ],
)
def test_a_stream_that_git_did_not_finish_is_an_error(book: Book, stream: bytes, why: str) -> None:
    run = GitImport(book.repository, book.store, ROOT)
    with pytest.raises(EngramError, match=why):
        list(run.commits(io.BytesIO(stream)))


@pytest.mark.parametrize("path", [b"..", b"a/../b", b"a//b", b"/a", b"x" * 256, b"d/" * 2000 + b"x"])
def test_a_path_that_no_git_writes_is_refused(book: Book, path: bytes) -> None:
    head = b"blob\nmark :1\ndata 1\nx\ncommit r\nmark :2\noriginal-oid a\nauthor A <a> 1 +0000\n"
    tail = b"committer A <a> 1 +0000\ndata 1\nm\nM 100644 :1 %s\n\ndone\n" % path
    run = GitImport(book.repository, book.store, ROOT)
    with pytest.raises(EngramError, match=r"names no file|too long"):
        list(run.commits(io.BytesIO(head + tail)))


def test_what_git_says_when_it_fails_is_what_is_said(importing: Importing) -> None:
    importing.work.commit(a=b"1" * 100)
    [blob] = [line.split()[2] for line in importing.work.git("ls-tree", "HEAD").splitlines()]
    (importing.work.directory / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(Unavailable, match=r"git fast-export failed in .*could not read blob"):
        importing()
