"""What a person commits on top of an export comes back as versions, and nothing else does."""

import hashlib
import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from engramfs.errors import Conflict
from engramfs.history.commit import RowChange
from engramfs.history.git.exporting import export
from engramfs.model.author import Author
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.version import ChangeKind

from .conftest import Book, change
from .git_work import Importing, Work

replace = msgspec.structs.replace


class Back(Importing):
    """The store `book`, exported to a repository, which a person works in and brings back."""

    def __init__(self, book: Book, directory: Path) -> None:
        export(book.repository, book.store, os.fsencode(directory))
        super().__init__(Work(directory), book)

    def export(self) -> int:
        """How many commits are new."""
        place = os.fsencode(self.work.directory)
        return export(self.book.repository, self.book.store, place).commits

    def ids(self) -> list[str]:
        """Of the branch, oldest first."""
        return self.work.git("rev-list", "--first-parent", "--reverse", "main").split()

    def subjects(self) -> list[str]:
        return [version.message.split("\n")[0] for version in self.versions()]


@pytest.fixture
def back(book: Book, tmp_path: Path) -> Back:
    book.write(notes=b"one", d__style=b"plain")
    book.write(notes=b"two")
    return Back(book, tmp_path / "git")


def test_what_is_new_on_top_becomes_versions_and_the_rest_is_what_it_was(back: Back) -> None:
    before = back.versions()
    back.work.commit("corrected", notes=b"three")
    back.work.commit("more", d__more=b"4")
    back()
    assert back.versions()[:2] == before
    assert back.subjects()[2:] == ["corrected", "more"]
    assert {version.author for version in back.versions()[2:]} == {Author("person", actor="Ann Smith")}
    assert back.files() == {b"notes": b"three", b"d/style": b"plain", b"d/more": b"4"}
    back()
    assert len(back.versions()) == 4


def test_what_git_knows_nothing_of_stays(book: Book, tmp_path: Path) -> None:
    book.write(mode=0o600, private=b"1", secret=b"2", d__x=b"3", d__y=b"4", one=b"5")
    book.link("one", "other")
    known = book.tree()
    directory = Entry(book.head().next_node, Kind.DIRECTORY, 0o700, 0, 1, 1)
    empty = replace(directory, node=directory.node + 1)
    marked = replace(known[b"private"], xattrs=((b"user.topic", b"x"),))
    rows = [
        RowChange(ROOT_NODE, b"drafts", directory),
        RowChange(directory.node, b"empty", empty),
        RowChange(ROOT_NODE, b"d", replace(known[b"d"], mode=0o700)),
        RowChange(ROOT_NODE, b"private", marked),
    ]
    changes = [
        change(ChangeKind.CREATED, b"drafts", directory),
        change(ChangeKind.CREATED, b"drafts/empty", empty),
        change(ChangeKind.MODIFIED, b"d", replace(known[b"d"], mode=0o700)),
        change(ChangeKind.MODIFIED, b"private", marked),
    ]
    book.commit(*rows, changes=changes, contents={})
    book.write(drafts__file=b"6")
    back = Back(book, tmp_path / "git")
    back.work.commit(private=b"11", d__x=None, drafts__file=None)
    back.work.commit(one=b"55", new=b"7")
    back()
    tree = book.tree()
    assert (tree[b"private"].mode, tree[b"private"].xattrs) == (0o600, ((b"user.topic", b"x"),))
    assert (tree[b"secret"], tree[b"d"].mode) == (known[b"secret"], 0o700)
    assert (tree[b"drafts/empty"].node, tree[b"drafts/empty"].mode) == (empty.node, 0o700)
    assert (tree[b"one"].links, tree[b"other"].links) == (1, 1)
    assert (back.files()[b"one"], back.files()[b"other"]) == (b"55", b"5")
    (back.work.directory / "drafts").rmdir()
    back.work.commit(drafts=b"a file now")
    back()
    assert back.files()[b"drafts"] == b"a file now"
    assert b"drafts/empty" not in book.tree()


def test_names_of_one_file_stay_so_while_nobody_touches_them(book: Book, tmp_path: Path) -> None:
    book.write(one=b"5")
    book.link("one", "other")
    back = Back(book, tmp_path / "git")
    back.work.commit(new=b"7")
    back()
    assert book.tree()[b"one"].node == book.tree()[b"other"].node


def test_a_commit_that_only_says_that_it_is_a_version_is_none(back: Back) -> None:
    (back.work.directory / "notes").write_bytes(b"forged")
    back.work.git("commit", "--quiet", "--all", "--amend", "--no-edit")
    assert "Engramfs-Version: 2" in back.work.git("show", "-s", "--format=%B")
    back.work.commit("on top", more=b"1")
    with pytest.raises(Conflict, match="@2 did not come from the repository"):
        back()
    assert back.files() == {b"notes": b"two", b"d/style": b"plain"}


def diverged(back: Back) -> None:
    """A person and an agent went on from the same version."""
    back.work.commit("mine", notes=b"three", d__style=None, d__manner=b"plain")
    back.book.write(agent=b"meanwhile")


def test_what_the_store_did_since_is_a_conflict_until_it_was_merged(back: Back) -> None:
    diverged(back)
    files = back.files()
    with pytest.raises(
        Conflict, match=r"@3 did not come from the repository.*export --git /.*/git .*merge it"
    ):
        back()
    assert (back.files(), len(back.versions())) == (files, 3)
    mine, origin = back.ids()[-1], back.book.tree()[b"d/style"].origin
    assert (back.export(), back.ids()[-1]) == (1, mine), "the person's branch is left alone"
    back.work.git("merge", "--quiet", "--no-edit", "engramfs/main")
    back.work.commit("after", after=b"1")
    back()
    merged = {b"notes": b"three", b"d/manner": b"plain", b"agent": b"meanwhile"}
    assert back.files(4) == merged
    assert back.files() == {**merged, b"after": b"1"}
    assert len(back.versions()) == 5
    assert back.book.tree()[b"d/manner"].origin == origin, "a file that the person moved is the same file"
    known = dict(line.split(": ", 1) for line in back.versions()[3].message.split("\n") if ": " in line)
    assert known["Git-Commit"] == back.work.git("rev-parse", "main~1")
    back.book.write(agent=b"later")
    assert (back.export(), back.ids()[-2]) == (1, back.work.git("rev-parse", "main~1"))
    assert (back.work.directory / "agent").read_bytes() == b"later"
    assert back.work.git("branch", "--remotes") == ""


def test_commits_that_were_rebased_onto_what_is_new_stay_versions_of_their_own(back: Back) -> None:
    diverged(back)
    back.work.commit("more", more=b"1")
    back.export()
    back.work.git("rebase", "--quiet", "engramfs/main")
    back()
    assert back.subjects()[3:] == ["mine", "more"]
    back.book.write(agent=b"later")
    assert back.export() == 1


def test_an_export_goes_on_after_what_came_back_with_the_same_commits(back: Back, tmp_path: Path) -> None:
    back.work.commit("corrected", notes=b"three")
    back()
    before = back.ids()
    assert (back.export(), back.ids()) == (0, before)
    back.book.write(agent=b"on top")
    assert (back.export(), back.ids()[:3]) == (1, before)
    export(back.book.repository, back.book.store, os.fsencode(tmp_path / "anew"))
    assert Work(tmp_path / "anew").git("rev-list", "main") == back.work.git("rev-list", "main")


def test_an_export_says_what_the_store_does_not_have(back: Back) -> None:
    back.work.commit("corrected", notes=b"three")
    place = os.fsencode(back.work.directory)
    result = export(back.book.repository, back.book.store, place)
    assert (result.unknown, result.commits) == (1, 0)
    back()
    assert export(back.book.repository, back.book.store, place).unknown == 0


def test_a_commit_that_changes_nothing_is_in_nobodys_way(back: Back) -> None:
    back.work.commit("nothing")
    back()
    assert len(back.versions()) == 2
    back.book.write(agent=b"on top")
    assert back.export() == 1
    back.work.commit("corrected", notes=b"three")
    back()
    assert back.subjects()[3:] == ["corrected"]


def test_a_merge_that_takes_all_of_the_store_is_in_nobodys_way(back: Back) -> None:
    diverged(back)
    back.export()
    back.work.git("merge", "--quiet", "--no-commit", "engramfs/main")
    back.work.git("read-tree", "-um", "engramfs/main")
    back.work.git("commit", "--quiet", "-m", "theirs")
    back()
    assert len(back.versions()) == 3
    back.book.write(agent=b"on top")
    assert (back.export(), back.work.git("show", "main:agent")) == (1, "on top")


def test_an_amended_commit_of_an_export_is_a_persons(back: Back) -> None:
    """Its version is exported once more, for the person to merge."""
    (back.work.directory / "notes").write_bytes(b"amended")
    back.work.git("commit", "--quiet", "--all", "--amend", "--no-edit")
    assert back.export() == 1
    back.work.git("merge", "--quiet", "-X", "ours", "--no-edit", "engramfs/main")
    back()
    assert back.files()[b"notes"] == b"amended"
    assert len(back.versions()) == 3


def test_a_commit_that_was_amended_after_it_came_back_can_be_merged(back: Back) -> None:
    back.work.commit("corrected", notes=b"three")
    first = back.ids()[-1]
    back()
    (back.work.directory / "notes").write_bytes(b"four")
    back.work.git("commit", "--quiet", "--all", "--amend", "-m", "amended")
    with pytest.raises(Conflict, match=r"which this history does not have.*export --git /.*merge it"):
        back()
    assert (back.export(), back.work.git("rev-parse", "engramfs/main")) == (1, first)
    back.work.git("merge", "--quiet", "-X", "ours", "--no-edit", "engramfs/main")
    back()
    assert (back.files()[b"notes"], len(back.versions())) == (b"four", 4)


def test_over_it_what_the_store_did_since_is_undone(back: Back) -> None:
    diverged(back)
    back(over=True)
    assert back.files() == {b"notes": b"three", b"d/manner": b"plain"}
    assert back.files(3)[b"agent"] == b"meanwhile"


def test_a_symlink_and_an_empty_file_are_what_they_were(book: Book, tmp_path: Path) -> None:
    book.symlink("link", "nowhere")
    book.write(empty=b"", large=hashlib.sha256(b"x").digest() * 90_000)
    back = Back(book, tmp_path / "git")
    back.work.commit("more", more=b"1")
    back()
    assert len(back.versions()) == 3


def test_a_repository_may_name_its_objects_by_sha256(book: Book, tmp_path: Path) -> None:
    book.write(notes=b"one")
    (tmp_path / "git").mkdir()
    subprocess.run(
        ["git", "init", "-qb", "main", "--object-format=sha256"], cwd=tmp_path / "git", timeout=30, check=True
    )
    back = Back(book, tmp_path / "git")
    back.work.commit("more", more=b"1")
    back()
    assert (len(back.versions()), back.export()) == (2, 0)
