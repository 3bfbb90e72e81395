"""Plain directories go into a store and come back, byte for byte."""

import hashlib
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engramfs.errors import (
    Conflict,
    Corrupt,
    FileTooLarge,
    Full,
    NotFound,
    QuotaExceeded,
    Unavailable,
    UsageError,
)
from engramfs.history import exporting, importing
from engramfs.history.commit import apply
from engramfs.history.repository import Repository
from engramfs.history.stored_contents import PutBlobs
from engramfs.history.verify import verify
from engramfs.model.author import SYSTEM
from engramfs.model.entry import Kind
from engramfs.model.store import Limits
from engramfs.model.version import ChangeKind, Version
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Table, Writer

from .conftest import Book, Shelf

Described = dict[bytes, tuple[object, ...]]


def brought_in(book: Book, directory: Path, put_blobs: PutBlobs | None = None) -> Version | None:
    book.clock += 10**9
    commit = importing.plan(
        book.repository, book.store, bytes(directory), SYSTEM, book.clock, put_blobs=put_blobs
    )
    version = book.repository.transact(lambda writer: apply(writer, commit))
    assert verify(book.repository).findings == []
    return version


def exported(book: Book, directory: Path, number: int | None = None) -> exporting.Exported:
    return exporting.export(book.repository, book.store, number, bytes(directory))


def described(directory: Path) -> Described:
    """Everything that an import keeps, by path; hard links by the first path of the file."""
    found: Described = {}
    first: dict[int, bytes] = {}
    root = bytes(directory)
    for above, directories, files in os.walk(root):
        directories.sort()
        for name in [b"", *sorted(directories + files)] if above == root else sorted(directories + files):
            place = os.path.join(above, name) if name else above
            path = os.path.relpath(place, root)
            status = os.lstat(place)
            if stat.S_ISLNK(status.st_mode):
                found[path] = ("symlink", os.readlink(place), status.st_mtime_ns)
            elif stat.S_ISDIR(status.st_mode):
                found[path] = ("directory", stat.S_IMODE(status.st_mode), status.st_mtime_ns)
            else:
                content = Path(os.fsdecode(place)).read_bytes()
                link = first.setdefault(status.st_ino, path)
                found[path] = ("file", stat.S_IMODE(status.st_mode), status.st_mtime_ns, content, link)
    return found


NAMES = st.one_of(
    st.sampled_from([b"a", b"ab", b"a.b", b"a\x01", b"\xff\xfe", "ü".encode(), b" ", b"-", b"x" * 255]),
    st.binary(min_size=1, max_size=6).filter(
        lambda name: not set(name) & set(b"\0/") and name not in (b".", b"..")
    ),
)
FILES = st.tuples(st.binary(max_size=300), st.sampled_from([0o644, 0o400, 0o755, 0o600]))
LINKS = st.binary(min_size=1, max_size=20).filter(lambda target: b"\0" not in target)
TREES = st.recursive(
    st.one_of(FILES, LINKS, st.just("again")),
    lambda below: st.dictionaries(NAMES, below, max_size=4),
    max_leaves=12,
).filter(lambda tree: isinstance(tree, dict))


def plant(directory: bytes, tree: dict[bytes, object], files: list[bytes]) -> None:
    """Make `tree` on disk; `"again"` is another name of the last file that was made."""
    for name, what in tree.items():
        place = os.path.join(directory, name)
        match what:
            case dict():
                os.mkdir(place)
                plant(place, what, files)
            case (bytes(content), int(mode)):
                with open(place, "wb") as file:
                    file.write(content)
                os.chmod(place, mode)
                files.append(place)
            case bytes(target):
                os.symlink(target, place)
            case _:
                if files:
                    os.link(files[-1], place)
        if os.path.lexists(place):
            os.utime(place, ns=(1, 1_600_000_000_000_000_000 + len(place)), follow_symlinks=False)
    os.utime(directory, ns=(1, 1_500_000_000_123_456_789))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(first=TREES, second=TREES)
def test_what_was_imported_is_exported_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, first: dict[bytes, object], second: dict[bytes, object]
) -> None:
    """Two trees, one imported after the other: each can be had back, and importing again changes nothing."""
    place = tmp_path_factory.mktemp("trees")
    with Repository.open(str(place / "state"), write="the test") as repository:
        book = _new_book(repository)
        trees = []
        for number, tree in enumerate((first, second)):
            source = place / f"source-{number}"
            source.mkdir()
            plant(bytes(source), tree, [])
            brought_in(book, source)
            trees.append((source, book.head().number))
            assert brought_in(book, source) is None
        exported(book, place / "out")
        assert described(place / "out") == described(trees[1][0])
        exported(book, place / "old", trees[0][1])
        assert {path: one[:2] for path, one in described(place / "old").items() if path != b"."} == {
            path: one[:2] for path, one in described(trees[0][0]).items() if path != b"."
        }


def _new_book(repository: Repository) -> Book:
    from engramfs.history import catalog

    return Book(repository, repository.transact(lambda writer: catalog.create(writer, "contexts/t", now=1)))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    directory = tmp_path / "source"
    directory.mkdir()
    (directory / "a").write_bytes(b"content of a")
    (directory / "d").mkdir()
    (directory / "d" / "b").write_bytes(b"content of b")
    return directory


def test_an_import_is_one_version_that_says_where_it_came_from(book: Book, source: Path) -> None:
    version = brought_in(book, source)
    assert version is not None
    assert (version.number, version.via, version.change_count) == (1, "import", 3)
    assert version.message == f"import of {source}"


def test_what_is_not_in_the_directory_is_deleted_and_what_stays_keeps_its_node(
    book: Book, source: Path
) -> None:
    book.write(a=b"old", gone__deep=b"x", d__b=b"content of b")
    before = book.tree()
    commit = importing.plan(book.repository, book.store, bytes(source), SYSTEM, 5)
    assert sorted((one.op, one.path) for one in commit.changes) == [
        (ChangeKind.MODIFIED, b"a"),
        (ChangeKind.DELETED, b"gone"),
        (ChangeKind.DELETED, b"gone/deep"),
    ]
    brought_in(book, source)
    for path in (b"a", b"d", b"d/b"):
        assert (book.tree()[path].node, book.tree()[path].origin) == (before[path].node, before[path].origin)


def test_other_times_alone_are_kept_and_make_no_version(book: Book, source: Path) -> None:
    brought_in(book, source)
    os.utime(source / "a", ns=(5, 5))
    assert brought_in(book, source) is None
    assert book.tree()[b"a"].mtime == 5
    assert book.head().number == 1


def test_large_files_are_stored_in_bounded_transactions_and_exist_only_when_whole(
    book: Book, source: Path, tmp_path: Path
) -> None:
    content = os.urandom(21 * blobs.PART + 5)
    (source / "large").write_bytes(content)
    digest = hashlib.sha256(content).digest()
    transactions: list[dict[bytes, int]] = []  # key → bytes, in the order in which they were put

    def put(body: Callable[[Writer], None]) -> object:
        class Noting:
            def __init__(self, writer: Writer) -> None:
                self.writer = writer
                self.get, self.scan, self.delete = writer.get, writer.scan, writer.delete

            def put(self, table: Table, key: bytes, value: bytes) -> None:
                transactions[-1][key] = len(value)
                self.writer.put(table, key, value)

        transactions.append({})
        return book.repository.transact(lambda writer: body(Noting(writer)))  # type: ignore[arg-type]

    brought_in(book, source, put)
    assert all(sum(transaction.values()) <= 8 * blobs.PART + 8 * 100 for transaction in transactions)
    order = [keys.read_u32(key[32:]) for one in transactions for key in one if key.startswith(digest)]
    assert order == [*range(1, 22), 0]
    exported(book, tmp_path / "out")
    assert (tmp_path / "out" / "large").read_bytes() == content


def test_a_large_import_that_fails_leaves_no_content_that_looks_whole(book: Book, source: Path) -> None:
    (source / "large").write_bytes(os.urandom(21 * blobs.PART))
    calls = []

    def fail_at_last(body: Callable[[Writer], None]) -> object:
        calls.append(body)
        if len(calls) == 3:
            raise Full("no space left")
        return book.repository.transact(body)

    with pytest.raises(Full):
        brought_in(book, source, fail_at_last)
    with book.repository.engine.reading() as reader:
        numbers = [keys.read_u32(key[-4:]) for key, _ in reader.scan(Table.BLOBS, b"", b"\xff" * 40)]
    assert numbers
    assert 0 not in numbers
    assert [finding.severity for finding in verify(book.repository).findings] == ["note"]
    brought_in(book, source)


def test_a_file_that_changes_while_it_is_read_is_an_error(book: Book, source: Path) -> None:
    large = source / "large"
    large.write_bytes(os.urandom(10 * blobs.PART))

    def meddle(body: Callable[[Writer], None]) -> object:
        status = large.stat()
        with large.open("r+b") as file:
            file.seek(9 * blobs.PART)
            file.write(b"changed")
        os.utime(large, ns=(status.st_atime_ns, status.st_mtime_ns))
        return book.repository.transact(body)

    with pytest.raises(Conflict, match="large changed while it was read"):
        brought_in(book, source, meddle)
    assert book.head().number == 0


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_what_a_store_cannot_keep_is_refused_by_name_before_anything_is_written(
    book: Book, source: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(source / "d")
    if kind == "pipe":
        os.mkfifo("odd")
    else:
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind("odd")
    with pytest.raises(UsageError, match=f"{source}/d/odd is a (named )?{kind}, which a store cannot keep"):
        brought_in(book, source)
    assert verify(book.repository).blobs == 0


def test_a_file_over_the_limit_is_named_and_nothing_is_written(shelf: Shelf, source: Path) -> None:
    book = shelf("contexts/small", Limits(max_file_size=11))
    with pytest.raises(FileTooLarge, match=f"{source}/a is 12 B, over the 11 B that contexts/small allows"):
        brought_in(book, source)
    assert verify(book.repository).blobs == 0


def test_a_directory_over_the_quota_is_refused_and_links_count_once(shelf: Shelf, source: Path) -> None:
    small, enough = shelf("contexts/small", Limits(quota=23)), shelf("contexts/enough", Limits(quota=24))
    os.link(source / "a", source / "linked")
    with pytest.raises(QuotaExceeded, match="contexts/small would hold 24 B, over its quota of 23 B"):
        brought_in(small, source)
    assert brought_in(enough, source) is not None
    assert enough.head().used == 24


def test_the_reserved_name_is_passed_over_at_the_root_only(book: Book, source: Path) -> None:
    for above in (source, source / "d"):
        (above / ".versions").mkdir()
        (above / ".versions" / "1").write_bytes(b"")
    brought_in(book, source)
    assert b".versions" not in book.tree()
    assert b"d/.versions/1" in book.tree()


def test_user_attributes_are_kept_but_not_those_that_a_mount_shows(
    book: Book, source: Path, tmp_path: Path
) -> None:
    try:
        os.setxattr(source / "a", b"user.colour", b"\x00red")
        os.setxattr(source / "a", b"user.engramfs.store", b"another")
    except OSError:
        pytest.skip("the filesystem of the tests has no user attributes")
    brought_in(book, source)
    assert book.tree()[b"a"].xattrs == ((b"user.colour", b"\x00red"),)
    assert exported(book, tmp_path / "out").without_xattrs == 0
    assert os.listxattr(tmp_path / "out" / "a") == ["user.colour"]


def test_progress_counts_files_and_bytes(book: Book, source: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int, int, int]] = []

    def progress(*numbers: int) -> None:
        seen.append(numbers)  # type: ignore[arg-type]

    importing.plan(book.repository, book.store, bytes(source), SYSTEM, 5, "", progress)
    assert seen == [(1, 2, 12, 24), (2, 2, 24, 24)]
    brought_in(book, source)
    seen.clear()
    exporting.export(book.repository, book.store, None, bytes(tmp_path / "out"), progress)
    assert seen == [(1, 2, 12, 24), (2, 2, 24, 24)]


def test_places_that_cannot_be_imported_are_named(book: Book, source: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=f"there is no directory {tmp_path}/missing"):
        brought_in(book, tmp_path / "missing")
    with pytest.raises(UsageError, match=f"{source}/a is not a directory"):
        brought_in(book, source / "a")


def test_nothing_is_exported_over_what_is_there(book: Book, source: Path, tmp_path: Path) -> None:
    brought_in(book, source)
    before = described(source)
    with pytest.raises(Conflict, match=f"{source} is not empty"):
        exported(book, source)
    with pytest.raises(UsageError, match="is not a directory"):
        exported(book, source / "a")
    with pytest.raises(NotFound, match=f"there is no directory {tmp_path}/missing"):
        exported(book, tmp_path / "missing" / "out")
    with pytest.raises(Unavailable, match="no directory can be made in /proc"):
        exported(book, Path("/proc/out"))
    with pytest.raises(NotFound, match="has no version 9"):
        exported(book, tmp_path / "out", 9)
    assert described(source) == before
    assert not (tmp_path / "out").exists()


def test_set_uid_bits_are_not_exported(book: Book, source: Path, tmp_path: Path) -> None:
    (source / "a").chmod(0o6755)
    brought_in(book, source)
    assert book.tree()[b"a"].mode == 0o6755
    exported(book, tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out" / "a").stat().st_mode) == 0o755


def test_a_damaged_content_names_store_and_path(book: Book, source: Path, tmp_path: Path) -> None:
    brought_in(book, source)
    digest = book.tree()[b"d/b"].digest
    damaged = blobs.pack(b"content of b")[:-1] + b"!"
    book.repository.transact(lambda writer: writer.put(Table.BLOBS, keys.blob(digest, 0), damaged))
    with pytest.raises(
        Corrupt, match=r"store memory/digest/state, d/b: blob [0-9a-f]{64} has a wrong checksum"
    ):
        exported(book, tmp_path / "out")


def test_a_tree_of_every_kind_keeps_its_kinds(book: Book, source: Path) -> None:
    (source / "link").symlink_to("nowhere")
    brought_in(book, source)
    entry = book.tree()[b"link"]
    assert (entry.kind, entry.target, entry.size, entry.digest) == (Kind.SYMLINK, b"nowhere", 7, b"")
