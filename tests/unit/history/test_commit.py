"""One batch becomes one version, chained to the one before."""

from engramfs.history import catalog, log
from engramfs.history.commit import Commit, RowChange, apply
from engramfs.history.tree import resolve, tree_at
from engramfs.model.author import SYSTEM
from engramfs.model.entry import ROOT_NODE, Kind
from engramfs.model.version import chain
from engramfs.storage import keys
from engramfs.storage.protocol import Table

from .conftest import SECOND, Book, Shelf, replace


def test_versions_are_numbered_from_one_and_chained(book: Book) -> None:
    first, second = book.write(a=b"1"), book.write(a=b"2")
    assert (first.number, second.number) == (1, 2)
    assert first.parent_digest == b""
    assert second.parent_digest == first.digest == chain(first)
    assert book.head().digest == second.digest


def test_the_digest_proves_author_message_and_changes(book: Book) -> None:
    version = book.write(a=b"1")
    for altered in (
        replace(version, author=SYSTEM),
        replace(version, message="another"),
        replace(version, changes_digest=b"\0" * 32),
        replace(version, parent_digest=b"\0" * 32),
        replace(version, time=version.time + 1),
    ):
        assert chain(altered) != version.digest


def test_a_commit_without_changes_makes_no_version_and_keeps_its_rows(book: Book) -> None:
    book.write(a=b"1")
    entry = replace(book.tree()[b"a"], mtime=7)
    commit = Commit(
        store=book.store.id,
        author=SYSTEM,
        via="fs",
        time=book.clock,
        changes=[],
        rows=[RowChange(ROOT_NODE, b"a", entry, recorded=False)],
        next_node=9,
        journal_position=5,
    )
    assert book.repository.transact(lambda writer: apply(writer, commit)) is None
    assert book.tree()[b"a"].mtime == 7
    assert book.tree(1)[b"a"].mtime != 7
    assert (book.head().number, book.head().journal_position, book.head().next_node) == (1, 5, 9)


def test_a_clock_that_was_set_back_makes_no_version_earlier_than_the_one_before(book: Book) -> None:
    first = book.write(a=b"1")
    book.clock -= 3600 * SECOND
    assert book.write(a=b"2").time == first.time


def test_many_changes_are_kept_in_parts_and_come_back_in_order_of_path(book: Book) -> None:
    files = {b"f%05d" % number: b"x" for number in range(2 * keys.CHANGES_PER_PART + 1)}
    version = book.write_paths(files)
    with book.repository.engine.reading() as reader:
        assert [change.path for change in log.changes(reader, book.store.id, 1)] == sorted(files)
        start, stop = keys.changes(book.store.id, 1, 0), keys.changes(book.store.id, 2, 0)
        assert sum(1 for _ in reader.scan(Table.CHANGES, start, stop)) == 3
    assert version.change_count == len(files)


def test_stores_share_contents_and_nothing_else(shelf: Shelf) -> None:
    one, other = shelf("contexts/one"), shelf("contexts/other")
    one.write(a=b"same")
    other.write(b=b"same")
    with one.repository.engine.reading() as reader:
        assert resolve(tree_at(reader, one.store), b"b") is None
        assert sum(1 for _ in reader.scan(Table.BLOBS, b"", b"\xff" * 40)) == 1


def test_a_deleted_store_leaves_no_rows_and_its_number_is_not_given_again(shelf: Shelf) -> None:
    one, other = shelf("contexts/one"), shelf("contexts/other")
    one.write(a__b=b"1")
    kept = other.write(a=b"2")
    one.repository.transact(lambda writer: catalog.delete(writer, one.store))
    prefix = keys.u32(one.store.id)
    with one.repository.engine.reading() as reader:
        for table in (Table.LIVE, Table.HISTORY, Table.NODES, Table.CHANGES, Table.VERSIONS, Table.HEADS):
            assert list(reader.scan(table, prefix, keys.after(prefix))) == []
        assert log.version(reader, other.store, 1) == kept
    assert shelf("contexts/one").store.id > other.store.id


def test_the_root_of_a_new_store_is_an_ordinary_directory(book: Book) -> None:
    root = book.tree()[b""]
    assert (root.node, root.kind, root.mode) == (ROOT_NODE, Kind.DIRECTORY, 0o755)
