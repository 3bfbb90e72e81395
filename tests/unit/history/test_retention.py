"""Old versions go by the rules of their store; the trees that are kept, and who wrote what is live, stay."""

from pathlib import Path

import msgspec
import pytest

from engramfs.errors import NotFound
from engramfs.history import catalog, log, transplant
from engramfs.history.collection import Collected, collect
from engramfs.history.collection.carrier import Alone
from engramfs.history.repository import Repository
from engramfs.history.tree import VersionTree, tree_at, walk
from engramfs.history.verify import verify
from engramfs.model.store import Retention
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Table

from .conftest import SECOND, Book, replace

DAY = 86_400


class Pinned(Alone):
    """As if sessions were pinned to these versions."""

    def __init__(self, repository: Repository, *versions: int) -> None:
        super().__init__(repository)
        self._versions = versions

    def set_oldest(self, store: int, oldest: int) -> list[int]:
        super().set_oldest(store, oldest)
        return list(self._versions)


def keep(book: Book, *, days: int = 0, versions: int = 0) -> None:
    store = replace(book.store, retention=Retention(days, versions))
    book.repository.transact(lambda writer: catalog.put(writer, store))


def gc(book: Book, *pinned: int, now: int | None = None) -> Collected:
    collected = Collected()
    now = book.clock if now is None else now
    collect(book.repository, Pinned(book.repository, *pinned), now, lambda *_: None, collected)
    report = verify(book.repository)
    assert report.sound, report.findings
    return collected


def headers(book: Book) -> list[int]:
    with book.repository.engine.reading() as reader:
        return sorted(version.number for version in log.versions(reader, book.store.id))


def rows(book: Book, table: Table) -> int:
    prefix = keys.u32(book.store.id)
    with book.repository.engine.reading() as reader:
        return sum(1 for _ in reader.keys(table, prefix, keys.after(prefix)))


def trees(book: Book, first: int) -> list[dict[bytes, bytes]]:
    """The contents by path of each version from `first` on."""
    found = []
    for number in range(first, book.head().number + 1):
        with book.repository.engine.reading() as reader:
            entries = walk(tree_at(reader, book.store, number))
            found.append(
                {path: blobs.read(reader, one.digest, one.size) for path, one in entries if one.digest}
            )
    return found


@pytest.fixture
def written(book: Book) -> Book:
    """Twenty versions: one file that never changes, one that always does, and one that comes and goes."""
    book.write(old=b"old", log=b"1")
    for number in range(2, 21):
        if number % 4 == 0:
            book.write(log=b"%d" % number, comes=b"and goes")
        elif number % 4 == 2 and number > 4:
            book.remove("comes")
        else:
            book.write(log=b"%d" % number)
    return book


def test_without_a_rule_everything_stays(written: Book) -> None:
    assert gc(written).versions == 0
    assert headers(written) == list(range(1, 21))


def test_the_newest_versions_stay_as_they_were_and_the_others_cannot_be_entered(written: Book) -> None:
    before = trees(written, 16)
    keep(written, versions=5)
    assert gc(written).versions == 14  # of 15: the first one brought a file that is live
    assert headers(written) == [1, *range(16, 21)]
    assert written.head().oldest == 16
    assert trees(written, 16) == before
    with pytest.raises(NotFound, match=r"version 15 of store .* was removed by retention; its oldest is 16"):
        written.tree(15)
    with pytest.raises(NotFound, match=r"@1 is kept only in part: retention .* or a version from 16 on"):
        written.tree(1)
    with written.repository.engine.reading() as reader, pytest.raises(NotFound, match="removed by retention"):
        log.version(reader, written.store, 15)


def test_who_wrote_what_is_live_is_known_however_old_it_is(written: Book) -> None:
    keep(written, versions=1)
    gc(written)
    with written.repository.engine.reading() as reader:
        assert log.version(reader, written.store, 1).number == 1
        assert [change.path for change in log.changes(reader, written.store.id, 1)] == [b"log", b"old"]
    assert trees(written, 20) == [{b"log": b"20", b"old": b"old", b"comes": b"and goes"}]


def test_contents_rows_and_places_of_what_went_go_too(written: Book) -> None:
    history, contents = rows(written, Table.HISTORY), verify(written.repository).blobs
    keep(written, versions=1)
    gc(written)
    assert rows(written, Table.HISTORY) == 3 < history
    assert rows(written, Table.CHANGES) == 2
    assert rows(written, Table.NODES) == 3
    assert verify(written.repository).blobs == 3 < contents


def test_versions_of_so_many_days_stay_and_either_rule_keeps(book: Book) -> None:
    for number in range(10):
        book.write(a=b"%d" % number)
        book.clock += DAY * SECOND
    keep(book, days=3)
    gc(book, now=book.clock - 60 * SECOND)
    assert headers(book) == [8, 9, 10]
    keep(book, days=2, versions=3)
    gc(book, now=book.clock - 60 * SECOND)
    assert headers(book) == [8, 9, 10]
    keep(book, days=2)
    gc(book, now=book.clock - 60 * SECOND)
    assert headers(book) == [9, 10]
    keep(book, days=1)
    gc(book, now=book.clock + 99 * DAY * SECOND)
    assert headers(book) == [10]


def test_the_horizon_never_goes_back(written: Book) -> None:
    keep(written, versions=2)
    gc(written)
    keep(written, versions=10)
    gc(written)
    assert written.head().oldest == 19
    written.write(log=b"more")
    assert gc(written).versions == 0


def test_the_tree_of_a_version_that_is_pinned_stays_until_it_is_not(written: Book) -> None:
    with written.repository.engine.reading() as reader:
        pinned = dict(walk(tree_at(reader, written.store, 9)))
    keep(written, versions=2)
    gc(written, 9)
    assert headers(written) == [1, 9, 19, 20]
    with written.repository.engine.reading() as reader:
        assert dict(walk(VersionTree(reader, written.store, 9))) == pinned
        for entry in pinned.values():
            if entry.digest:
                blobs.read(reader, entry.digest, entry.size)
    gc(written)
    assert headers(written) == [1, 19, 20]


def test_a_moment_before_the_oldest_version_has_no_tree(written: Book) -> None:
    with written.repository.engine.reading() as reader:
        times = {version.number: version.time for version in log.versions(reader, written.store.id)}
    keep(written, versions=5)
    gc(written)
    with written.repository.engine.reading() as reader:
        assert log.at_time(reader, written.store.id, times[17]) == 17
        assert log.at_time(reader, written.store.id, times[20] + 1) == 20
        with pytest.raises(NotFound, match="kept only in part"):
            tree_at(reader, written.store, log.at_time(reader, written.store.id, times[12]))


def test_a_header_that_stayed_alone_is_still_proved(written: Book) -> None:
    keep(written, versions=5)
    gc(written)
    key = keys.version(written.store.id, 1)
    with written.repository.engine.reading() as reader:
        forged = replace(log.version(reader, written.store, 1), message="forged")
    written.repository.transact(
        lambda writer: writer.put(Table.VERSIONS, key, msgspec.msgpack.encode(forged))
    )
    [finding] = verify(written.repository).findings
    assert finding.problem == "version 1 does not have its digest: its header was altered"


def test_a_backup_of_it_comes_back_whole(written: Book, tmp_path: Path) -> None:
    keep(written, versions=5)
    gc(written)
    with Repository.open(str(tmp_path / "other"), write="the tests") as other:
        transplant.adopt(written.repository, written.store, other)
        report = verify(other)
    assert report.sound, report.findings
    assert report.versions == 6


def test_a_version_that_is_missing_among_the_kept_ones_is_found(written: Book) -> None:
    keep(written, versions=5)
    gc(written)
    written.repository.transact(
        lambda writer: writer.delete(Table.VERSIONS, keys.version(written.store.id, 18))
    )
    assert "version 18 is missing" in [finding.problem for finding in verify(written.repository).findings]
