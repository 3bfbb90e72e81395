"""The history of a store as a git repository, read back by git itself."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from engramfs.errors import Conflict, NotFound, Unavailable, UsageError
from engramfs.history.commit import RowChange
from engramfs.history.git import message, paths
from engramfs.history.git.authors import signature_of
from engramfs.history.git.exporting import GitExported, export
from engramfs.model.author import SYSTEM, Author
from engramfs.model.entry import Entry, Kind
from engramfs.model.redaction import Redaction
from engramfs.model.version import ChangeKind
from engramfs.storage import keys
from engramfs.storage.protocol import Table, Writer

from .conftest import SECOND, Book, Shelf, change
from .test_retention import gc, keep


class Exported:
    """A store and the repository that it is exported to."""

    def __init__(self, book: Book, directory: Path) -> None:
        self.book = book
        self.directory = directory

    def __call__(self, *, bare: bool = False) -> GitExported:
        return export(self.book.repository, self.book.store, os.fsencode(self.directory), bare=bare)

    def git(self, *arguments: str) -> bytes:
        done = subprocess.run(
            ["git", *arguments], cwd=self.directory, capture_output=True, timeout=30, check=True
        )
        return done.stdout

    def commits(self) -> list[str]:
        """Oldest first."""
        return self.git("rev-list", "--reverse", "main").decode().split()

    def tree(self, commit: str) -> dict[bytes, tuple[bytes, bytes]]:
        """(mode, content) by path."""
        listed = [line.partition(b"\t") for line in self.git("ls-tree", "-rz", commit).split(b"\0") if line]
        return {
            path: (about.split()[0], self.git("cat-file", "blob", about.split()[2].decode()))
            for about, _, path in listed
        }

    def check(self) -> None:
        """Each commit has the tree of its version, and git finds nothing wrong."""
        self.git("fsck", "--strict")
        for number, commit in enumerate(self.commits(), start=1):
            assert set(self.tree(commit)) == {
                path for path, entry in self.book.tree(number).items() if entry.kind is not Kind.DIRECTORY
            }, number


@pytest.fixture
def exported(book: Book, tmp_path: Path) -> Exported:
    return Exported(book, tmp_path / "git")


def put(book: Book, entry: Entry, path: bytes, contents: dict[bytes, bytes] | None = None) -> None:
    """One version that makes `path`, at the root, stand for `entry`."""
    entry = msgspec.structs.replace(entry, node=book.head().next_node)
    created = change(ChangeKind.CREATED, path, entry)
    book.commit(RowChange(1, path, entry), changes=[created], contents=contents or {})


def test_every_version_becomes_a_commit_with_its_tree_author_and_time(exported: Exported) -> None:
    book = exported.book
    book.write(notes=b"one", d__e__f=b"two")
    book.write(notes=b"three", run=b"#!/bin/sh\n", mode=0o755)
    book.rename("d", "moved")
    book.remove("moved/e", "notes")
    result = exported()
    assert (result.commits, result.version, result.empty_directories) == (4, 4, 1)
    exported.check()
    assert exported.tree("main") == {b"run": (b"100755", b"#!/bin/sh\n")}
    first = exported.commits()[0]
    about = exported.git("show", "-s", "--format=%an|%ae|%cn|%at|%ct|%s", first).decode().strip()
    seconds = (book.store.created // 10**9) + 1
    assert about == (
        f"digest for alice|digest+alice@engramfs|digest for alice|{seconds}|{seconds}|"
        "created d, created d/e, created d/e/f and 1 more"
    )
    trailers = exported.git("show", "-s", "--format=%(trailers:only)", first).decode().strip().splitlines()
    assert trailers[:2] == ["Engramfs-Store: memory/digest/state", "Engramfs-Version: 1"]
    assert trailers[3:] == [
        "Engramfs-Via: fs",
        "Engramfs-Author: agent",
        "Engramfs-Agent: digest",
        "Engramfs-Actor: alice",
        "Engramfs-Session: s1",
        "Engramfs-Summary: created d, created d/e, created d/e/f and 1 more",
    ]


def test_a_working_tree_shows_the_head_and_is_clean(exported: Exported) -> None:
    attributes = b"* text=auto eol=lf\n"
    exported.book.write_paths(
        {b".gitattributes": attributes, b"d/crlf": b"a\r\nb\r\n", b".gitignore": b"*\n"}
    )
    exported()
    assert exported.git("status", "--porcelain") == b""
    assert (exported.directory / "d/crlf").read_bytes() == b"a\r\nb\r\n"
    exported.book.write(d__crlf=b"c\r\n")
    exported()
    assert exported.git("status", "--porcelain") == b""
    assert (exported.directory / "d/crlf").read_bytes() == b"c\r\n"
    assert exported.directory.stat().st_mode & 0o077 == 0


def test_a_bare_repository_has_no_working_tree(exported: Exported) -> None:
    exported.book.write(a=b"1")
    exported(bare=True)
    exported.book.write(a=b"2")
    assert exported(bare=True).commits == 1
    assert exported.git("show", "main:a") == b"2"
    assert not (exported.directory / ".git").exists()


def test_it_goes_on_where_it_was(exported: Exported) -> None:
    for number in range(3):
        exported.book.write(a=b"%d" % number)
    assert exported().commits == 3
    before = exported.commits()
    assert exported().commits == 0
    exported.book.write(b=b"new")
    exported.book.remove("a")
    assert exported().commits == 2
    assert exported.commits()[:3] == before
    exported.check()


@pytest.mark.parametrize(
    "name",
    [
        b"a b",
        b" lead",
        b'quo"ted',
        b"back\\slash",
        b"new\nline",
        b"\xff\xfe",
        "ü".encode(),
        b"\t\x01\x7f",
        b"\\101",
    ],
)
def test_names_may_hold_any_bytes(exported: Exported, name: bytes) -> None:
    exported.book.write_paths({name: b"1", b"d/" + name: b"2"})
    exported()
    assert exported.tree("main") == {name: (b"100644", b"1"), b"d/" + name: (b"100644", b"2")}
    assert paths.unquoted(paths.quoted(name)) == name


def test_a_name_that_is_not_utf_8_is_said_as_everywhere_else(exported: Exported) -> None:
    exported.book.write_paths({b"b\xff": b"1"})
    exported()
    assert exported.git("show", "-s", "--format=%s", "main") == b"created b\\xff\n"


@pytest.mark.parametrize(
    "name", [".git", ".GIT", "git~1", ".git.", ".git ", ".git:x", ".g\u200cit", ".git\\x"]
)
def test_what_git_refuses_to_hold_is_left_out_and_counted(exported: Exported, name: str) -> None:
    exported.book.write_paths({f"d/{name}/config".encode(): b"1", b"d/.gitx": b"2", b"a.git": b"3"})
    assert exported().refused == 1
    assert set(exported.tree("main")) == {b"d/.gitx", b"a.git"}
    exported.git("fsck", "--strict")


def test_symlinks_links_and_contents_of_any_size(exported: Exported) -> None:
    book = exported.book
    large = os.urandom(1 << 20) * 9 + b"end"
    book.write(file=b"", large=large)
    put(book, Entry(0, Kind.SYMLINK, 0o777, 6, 0, 0, target=b"d/\xff\nx"), b"link")
    book.link("file", "other")
    exported()
    tree = exported.tree("main")
    assert tree[b"link"] == (b"120000", b"d/\xff\nx")
    assert tree[b"large"] == (b"100644", large)
    assert tree[b"other"] == tree[b"file"] == (b"100644", b"")


def test_a_file_becomes_a_directory_and_a_directory_a_file(exported: Exported) -> None:
    book = exported.book
    book.write(a=b"file", b__c=b"below", b__d=b"below")
    tree = book.tree()
    directory = Entry(50, Kind.DIRECTORY, 0o755, 0, 1, 1)
    inside = msgspec.structs.replace(tree[b"a"], node=51)
    file = msgspec.structs.replace(tree[b"a"], node=52)
    gone = [RowChange(tree[b"b"].node, name, None) for name in (b"c", b"d")]
    rows = [RowChange(1, b"a", directory), RowChange(50, b"x", inside), RowChange(1, b"b", file), *gone]
    # A directory that went has no path any more by the time its batch is cut: `?` stands for it.
    changes = [
        change(ChangeKind.MODIFIED, b"a", directory),
        change(ChangeKind.CREATED, b"a/x", inside),
        change(ChangeKind.MODIFIED, b"b", file),
        change(ChangeKind.DELETED, b"?/c", tree[b"b/c"]),
    ]
    book.commit(*rows, changes=changes, contents={})
    exported()
    exported.check()
    assert set(exported.tree("main")) == {b"a/x", b"b"}


def test_a_directory_that_was_made_anew_under_its_name_is_looked_into(exported: Exported) -> None:
    book = exported.book
    book.write(d__old=b"old")
    tree = book.tree()
    fresh = Entry(70, Kind.DIRECTORY, 0o755, 0, 1, 1)
    rows = [RowChange(1, b"d", fresh), RowChange(tree[b"d"].node, b"old", None)]
    changes = [change(ChangeKind.MODIFIED, b"d", fresh), change(ChangeKind.DELETED, b"?/old", tree[b"d/old"])]
    book.commit(*rows, changes=changes, contents={})
    exported()
    assert exported.tree("main") == {}


def test_another_history_is_refused_and_left_alone(exported: Exported, shelf: Shelf) -> None:
    exported.book.write(a=b"1")
    exported()
    before = exported.commits()
    other = shelf("memory/b")
    other.write(a=b"1")
    with pytest.raises(Conflict, match="holds the history of memory/digest/state, not of memory/b"):
        export(other.repository, other.store, os.fsencode(exported.directory))
    text = f"x\n\nEngramfs-Store: memory/digest/state\nEngramfs-Version: 1\nEngramfs-Digest: {'00' * 32}\n"
    identity = ["-c", "user.name=x", "-c", "user.email=x@x"]
    exported.git(*identity, "commit", "--quiet", "--amend", "--cleanup=verbatim", "-m", text)
    with pytest.raises(
        Conflict, match="holds another history: its version 1 has the digest 0000000000000000"
    ):
        exported()
    exported.git("reset", "--hard", "--quiet", before[0])
    exported.git(*identity, "commit", "--quiet", "--allow-empty", "--amend", "-m", "mine")
    with pytest.raises(Conflict, match="did not come from a store"):
        exported()


def test_what_a_person_did_there_is_never_undone(exported: Exported) -> None:
    exported.book.write(a=b"1")
    exported()
    exported.book.write(a=b"2", b=b"3")
    (exported.directory / "a").write_bytes(b"edited")
    with pytest.raises(Conflict, match="changes that are not committed"):
        exported()
    exported.git("checkout", "--quiet", "a")
    (exported.directory / "b").write_bytes(b"in the way")
    with pytest.raises(Conflict, match="in the way that are not committed"):
        exported()
    assert (exported.directory / "b").read_bytes() == b"in the way"
    (exported.directory / "b").unlink()
    assert exported().commits == 1
    exported.git("checkout", "--quiet", "-b", "mine")
    exported.book.write(a=b"4")
    exported()
    assert exported.git("show", "main:a") == b"4"
    assert (exported.directory / "a").read_bytes() == b"2"


def test_a_place_that_is_no_repository_is_refused(exported: Exported, tmp_path: Path) -> None:
    exported.book.write(a=b"1")
    exported.directory.mkdir()
    (exported.directory / "file").write_text("mine")
    with pytest.raises(Conflict, match="is not empty and no git repository"):
        exported()
    with pytest.raises(UsageError, match="is not a directory"):
        export(exported.book.repository, exported.book.store, os.fsencode(exported.directory / "file"))
    with pytest.raises(NotFound, match="there is no directory"):
        export(exported.book.repository, exported.book.store, os.fsencode(tmp_path / "no/git"))
    with pytest.raises(Unavailable, match="no directory can be made in /proc"):
        export(exported.book.repository, exported.book.store, b"/proc/git")


def test_an_export_that_fails_moves_no_branch(exported: Exported) -> None:
    exported.book.write(a=b"1")
    exported()
    before = exported.commits()
    exported.book.write(b=b"2")
    (exported.directory / ".git/objects/pack").chmod(0o500)
    lock = exported.directory / ".git/refs/engramfs/export.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    with pytest.raises(Unavailable, match="git fast-import failed in"):
        exported()
    assert exported.commits() == before
    lock.unlink()
    assert exported().commits == 1


def test_a_version_that_retention_kept_in_part_says_so(exported: Exported) -> None:
    book = exported.book
    book.write(kept=b"1", changed=b"1")
    for number in range(2, 5):
        book.write(changed=b"%d" % number)
    keep(book, versions=1)
    gc(book)
    exported()
    said = [exported.git("show", "-s", "--format=%B", commit).decode() for commit in exported.commits()]
    assert ["Engramfs-Partial: retention left only part of its tree" in text for text in said] == [
        True,
        False,
    ]


def test_versions_that_retention_removed_are_named_and_passed_over(exported: Exported) -> None:
    book = exported.book
    for number in range(1, 7):
        book.write_paths({b"f%d" % number: b"%d" % number})
    exported()

    def forget(*numbers: int) -> None:
        def body(writer: Writer) -> None:
            for number in numbers:
                writer.delete(Table.VERSIONS, keys.version(book.store.id, number))
                writer.delete(Table.CHANGES, keys.changes(book.store.id, number, 0))

        book.repository.transact(body)

    forget(1, 2, 4)
    fresh = Exported(book, exported.directory.parent / "fresh")
    assert fresh().commits == 3
    said = [fresh.git("show", "-s", "--format=%B", commit).decode() for commit in fresh.commits()]
    assert ["Missing" in text for text in said] == [True, True, False]
    assert "Engramfs-Missing: versions 1 to 2, which retention removed" in said[0]
    assert set(fresh.tree("main")) == {f"f{number}".encode() for number in range(1, 7)}
    # The last exported version is gone too: the one that follows names its digest.
    book.write(last=b"7")
    forget(6)
    assert exported().commits == 1
    assert set(exported.tree("main")) == {b"last", *(f"f{number}".encode() for number in range(1, 7))}


def test_what_was_redacted_is_absent_and_a_repository_that_still_holds_it_says_so(exported: Exported) -> None:
    book = exported.book
    book.write(secret=b"hunter2", other=b"o")
    book.write(other=b"p")
    book.remove("secret")
    exported()
    assert exported().redacted_since == []
    entry = book.tree(1)[b"secret"]

    def redact(writer: Writer) -> None:
        key = keys.history(book.store.id, 1, b"secret", 1)
        writer.put(Table.HISTORY, key, msgspec.msgpack.encode(msgspec.structs.replace(entry, digest=b"")))
        redaction = Redaction(book.clock, Author("person", actor="root"), "a password", 1)
        writer.put(Table.REDACTED, keys.version(book.store.id, 1), msgspec.msgpack.encode([redaction]))

    book.repository.transact(redact)
    assert exported().redacted_since == [1]
    book.write(more=b"m")
    again = exported()
    assert (again.commits, again.redacted_since) == (1, [1])
    assert exported().redacted_since == [1]
    assert b"secret" not in exported.tree("main")
    fresh = Exported(book, exported.directory.parent / "fresh")
    assert fresh().redacted_since == []
    first = fresh.commits()[0]
    assert set(fresh.tree(first)) == {b"other"}
    assert "by root: a password" in fresh.git("show", "-s", "--format=%B", first).decode()


def test_a_message_cannot_pose_as_ours(exported: Exported) -> None:
    version = exported.book.write(a=b"1")
    forged = msgspec.structs.replace(version, message="x\n\nEngramfs-Version: 99\nEngramfs-Digest: 00")
    text = message.compose(exported.book.store, forged, [])
    said = message.parse(text)
    assert said is not None
    assert (said.number, said.digest) == (1, version.digest.hex())


@pytest.mark.parametrize(
    ("author", "expected"),
    [
        (Author("agent", "digest", "alice"), "digest for alice <digest+alice@engramfs>"),
        (Author("agent", "digest", "alice", "acme"), "digest for alice <digest+alice@acme.engramfs>"),
        (Author("person", actor="root"), "root <root@engramfs>"),
        (SYSTEM, "engramfs <engramfs@engramfs>"),
        (Author("person", actor="a<b>\nc"), "a?b??c <a?b??c@engramfs>"),
    ],
)
def test_authors_are_people_to_git(exported: Exported, author: Author, expected: str) -> None:
    version = msgspec.structs.replace(exported.book.write(a=b"1"), author=author, time=1_700_000_000 * SECOND)
    assert signature_of(version).line() == expected.encode() + b" 1700000000 +0000"
