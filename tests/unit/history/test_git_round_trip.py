"""A history that goes from git to a store and back is the same history."""

import os
from pathlib import Path

import msgspec
import pytest

from engramfs.errors import Conflict
from engramfs.history.git.exporting import GitExported, export
from engramfs.history.redaction import redact
from engramfs.model.author import Author
from engramfs.storage import keys
from engramfs.storage.protocol import Table, Writer

from .conftest import Book, Shelf
from .git_work import Importing, Work, round_trip

ANN = {
    "GIT_AUTHOR_NAME": "Ann Ünlü",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_AUTHOR_DATE": "1600000000 -0330",
    "GIT_COMMITTER_NAME": "Bob Jones",
    "GIT_COMMITTER_EMAIL": "bob@example.org",
    "GIT_COMMITTER_DATE": "1650000000 +0545",
}
LINES = "--format=%T|%an|%ae|%ad|%cn|%ce|%cd"


def patched(work: Work, text: str, *options: str, **files: bytes) -> str:
    """A commit that one person wrote, and another put there. Its id."""
    for name, content in files.items():
        place = work.directory / name.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    work.git("add", "--all")
    work.git("commit", "--quiet", "--allow-empty", *options, "-m", text, variables=ANN)
    return work.git("rev-parse", "HEAD")


def exported(book: Book, directory: Path) -> tuple[GitExported, Work]:
    return export(book.repository, book.store, os.fsencode(directory)), Work(directory)


def ids(work: Work, ref: str = "main") -> list[str]:
    """Oldest first."""
    return work.git("rev-list", "--first-parent", "--reverse", ref).split()


def lines(work: Work) -> list[str]:
    """The tree, authors and committers of each commit, with their dates."""
    return work.git("log", "--first-parent", "--reverse", LINES, "--date=raw", "main").splitlines()


def wrote(work: Work) -> None:
    """Three commits, of two people."""
    patched(work, "first\n\nwith a body\nof two lines", a=b"1", d__b=b"2")
    work.commit("second", a=b"11")
    patched(work, "third: ünlü", d__c=b"3")


def test_a_history_of_which_all_is_known_has_the_same_commits(importing: Importing, tmp_path: Path) -> None:
    wrote(importing.work)
    importing()
    result, back = exported(importing.book, tmp_path / "back")
    assert (result.commits, ids(back)) == (3, ids(importing.work))
    assert back.git("fsck", "--strict") == ""


def test_people_are_told_of_author_and_committer_apart(importing: Importing) -> None:
    identifier = patched(importing.work, "first", a=b"1")
    importing()
    assert importing.versions()[0].message.split("\n")[2:] == [
        f"Git-Commit: {identifier}",
        "Git-Parent: none",
        "Git-Author: Ann Ünlü <ann@example.org>",
        "Git-Author-Date: 2020-09-13T08:56:40-03:30",
        "Git-Committer: Bob Jones <bob@example.org>",
        "Git-Committer-Date: 2022-04-15T11:05:00+05:45",
        "Imported-By: root",
    ]


def test_on_top_of_them_an_export_goes_on_with_what_agents_write(
    importing: Importing, tmp_path: Path
) -> None:
    wrote(importing.work)
    importing()
    book, before = importing.book, ids(importing.work)
    exported(book, tmp_path / "back")
    assert exported(book, tmp_path / "back")[0].commits == 0
    book.write(a=b"agent")
    result, back = exported(book, tmp_path / "back")
    assert (result.commits, ids(back)[:3]) == (1, before)
    assert "Engramfs-Version: 4" in back.git("show", "-s", "--format=%B")
    book.write(a=b"more")
    assert exported(book, tmp_path / "back")[0].commits == 1
    assert ids(exported(book, tmp_path / "anew")[1]) == ids(back)


def test_where_the_parents_differ_authors_dates_and_trees_are_the_same(
    importing: Importing, tmp_path: Path
) -> None:
    work = importing.work
    wrote(work)
    work.git("checkout", "-qb", "side")
    work.commit("side", s=b"1")
    work.git("checkout", "-q", "main")
    patched(work, "main", a=b"2")
    work.git("merge", "-q", "--no-ff", "-m", "merged", "side", variables=ANN)
    merged = work.git("rev-parse", "main")
    patched(work, "last", a=b"3")
    importing()
    result, back = exported(importing.book, tmp_path / "back")
    assert lines(back) == lines(work)
    assert (result.commits, ids(back)[:4]) == (6, ids(work)[:4])
    said = back.git("show", "-s", "--format=%B", "main~1")
    assert said.startswith("merged\n\n")
    assert f"Git-Commit: {merged}" in said
    assert "Engramfs-Version: 5" in said
    importing.book.write(a=b"agent")
    assert exported(importing.book, tmp_path / "back")[0].commits == 1


def test_a_commit_that_cannot_be_the_same_leaves_nothing_behind(importing: Importing, tmp_path: Path) -> None:
    """Its message ends in blanks, which no version keeps."""
    work = importing.work
    large = os.urandom(3 << 20)
    patched(work, "first \n\n\n", "--cleanup=verbatim", a=b"1", large=large)
    patched(work, "second", a=b"2")
    importing()
    result, back = exported(importing.book, tmp_path / "back")
    assert lines(back) == lines(work)
    assert "Engramfs-Version: 1" in back.git("show", "-s", "--format=%B", "main~1")
    assert result.bytes < 4 << 20
    assert back.git("rev-list", "--all", "--count") == "2"


def test_what_a_store_wrote_comes_back_as_the_same_commits(shelf: Shelf, tmp_path: Path) -> None:
    book, back = shelf("memory/digest/state"), shelf("contexts/back")
    book.write(notes=b"one", d__e__f=b"two")
    book.write(message="x\n\nEngramfs-Version: 9", notes=b"three")
    book.write(message="\n  of two\nlines \n\n", run=b"#!", mode=0o755)
    book.remove("notes")
    first = round_trip(book, back, tmp_path / "one").work
    second = round_trip(back, shelf("contexts/again"), tmp_path / "two").work
    assert ids(first) == ids(second)
    # It is the history of either store, and each can go on in a repository of its own.
    assert [exported(one, tmp_path / "two")[0].commits for one in (book, back)] == [0, 0]
    back.write(more=b"1")
    assert exported(back, tmp_path / "two")[0].commits == 1
    with pytest.raises(Conflict, match="holds the history of contexts/back"):
        exported(book, tmp_path / "two")


def test_the_repository_that_was_imported_can_be_gone_on_with(importing: Importing) -> None:
    wrote(importing.work)
    importing()
    before = ids(importing.work)
    importing.book.write(a=b"agent")
    result, work = exported(importing.book, importing.work.directory)
    assert (result.commits, ids(work)[:3]) == (1, before)
    assert (work.directory / "a").read_bytes() == b"agent"
    assert work.git("status", "--porcelain") == ""


def test_a_repository_with_what_no_store_keeps_is_left_alone(importing: Importing) -> None:
    base = importing.work.commit(a=b"1")
    (importing.work.directory / "sub").mkdir()
    importing.work.git("update-index", "--add", "--cacheinfo", f"160000,{base},sub")
    (importing.work.directory / "a").write_bytes(b"2")
    importing.work.git("add", "a")
    importing.work.git("commit", "-qm", "with a submodule")
    importing()
    importing.book.write(a=b"agent")
    with pytest.raises(Conflict, match="holds sub, which memory/digest/state does not"):
        exported(importing.book, importing.work.directory)


def test_it_goes_on_where_retention_removed_the_last_exported_version(
    importing: Importing, tmp_path: Path
) -> None:
    wrote(importing.work)
    importing()
    book = importing.book
    exported(book, tmp_path / "back")
    importing.work.commit("fourth", e=b"4")
    importing()

    def forget(writer: Writer) -> None:
        writer.delete(Table.VERSIONS, keys.version(book.store.id, 3))
        writer.delete(Table.CHANGES, keys.changes(book.store.id, 3, 0))

    book.repository.transact(forget)
    result, back = exported(book, tmp_path / "back")
    assert (result.commits, ids(back)) == (1, ids(importing.work))


def test_a_version_that_something_was_taken_out_of_is_not_that_commit(
    importing: Importing, tmp_path: Path
) -> None:
    importing.work.commit("first", secret=b"hunter2", a=b"1")
    importing.work.commit("second", secret=None)
    importing()
    book = importing.book
    exported(book, tmp_path / "old")
    redact(
        book.repository,
        book.store.name,
        1,
        b"secret",
        Author("person", actor="root"),
        "a password",
        book.clock,
    )
    assert exported(book, tmp_path / "old")[0].redacted_since == [1, 2]
    result, back = exported(book, tmp_path / "new")
    assert (result.commits, result.redacted_since) == (2, [])
    assert back.git("ls-tree", "--name-only", "main~1") == "a"
    assert back.git("log", "--format=%an <%ae> %at") == "\n".join(
        ["Ann Smith <ann@example.org> 1700000000"] * 2
    )


def test_of_a_version_that_kept_one_date_the_author_has_it(importing: Importing, tmp_path: Path) -> None:
    identifier = importing.work.commit("first", a=b"1")
    importing()
    book, [version] = importing.book, importing.versions()
    text = (
        f"first\n\nGit-Commit: {identifier}\nGit-Author: Ann Smith <ann@example.org>\n"
        "Git-Date: 2023-11-14T22:13:20.000000000Z\nImported-By: root"
    )
    older = msgspec.msgpack.encode(msgspec.structs.replace(version, message=text))
    book.repository.transact(lambda writer: writer.put(Table.VERSIONS, keys.version(book.store.id, 1), older))
    _, back = exported(book, tmp_path / "back")
    about = back.git("show", "-s", "--format=%an <%ae> %ad", "--date=raw")
    assert about == "Ann Smith <ann@example.org> 1700000000 +0000"
