"""The past of a file, through renames; and who wrote its lines."""

import hashlib

import pytest

from engramfs.errors import NotFound, UsageError
from engramfs.history.blame import blame
from engramfs.history.commit import RowChange
from engramfs.history.lineage import lineage
from engramfs.history.selection import Selection, select
from engramfs.model.entry import ROOT_NODE
from engramfs.model.version import ChangeKind, Version

from .conftest import SECOND, Book, change, replace


def past(book: Book, path: str, newest: int | None = None) -> list[tuple[int, str]]:
    with book.repository.engine.reading() as reader:
        steps = lineage(reader, book.store, path.encode(), newest or book.head().number)
        return [(step.number, step.path.decode()) for step in steps]


def blamed(book: Book, path: str, number: int | None = None) -> list[tuple[int, bytes]]:
    with book.repository.engine.reading() as reader:
        lines = blame(reader, book.store, path.encode(), number or book.head().number)
        return [(line.number, line.content) for line in lines]


def save_atomically(book: Book, name: str, content: bytes) -> Version:
    """What a rename of a temporary file over another makes: a new node with the origin of the old."""
    old, node = book.tree()[name.encode()], book.head().next_node
    digest = hashlib.sha256(content).digest()
    entry = replace(old, node=node, digest=digest, size=len(content))
    row = RowChange(ROOT_NODE, name.encode(), entry)
    modified = change(ChangeKind.MODIFIED, name.encode(), entry)
    return book.commit(row, changes=[modified], contents={digest: content})


def test_a_file_is_followed_through_renames_of_its_own_and_of_directories_above_it(book: Book) -> None:
    book.write(a=b"1", other=b"1", d__e__there=b"1")
    book.write(a=b"2")
    book.rename("a", "b")
    book.write(other=b"2")
    book.rename("b", "d/e/c")
    book.rename("d", "D")
    book.write(D__e__c=b"3")
    book.rename("D/e", "e")
    assert past(book, "e/c") == [
        (8, "e/c"),
        (7, "D/e/c"),
        (6, "D/e/c"),
        (5, "d/e/c"),
        (3, "b"),
        (2, "a"),
        (1, "a"),
    ]
    assert past(book, "d/e/c", 5) == [(5, "d/e/c"), (3, "b"), (2, "a"), (1, "a")]


def test_another_file_that_had_the_name_before_or_after_is_not_followed(book: Book) -> None:
    book.write(a=b"1")
    book.rename("a", "b")
    book.write(a=b"another")
    assert past(book, "a") == [(3, "a")]
    assert past(book, "b") == [(2, "b"), (1, "a")]


def test_a_file_that_is_saved_anew_is_the_same_file(book: Book) -> None:
    book.write(a=b"1")
    save_atomically(book, "a", b"2")
    book.rename("a", "b")
    save_atomically(book, "b", b"3")
    assert past(book, "b") == [(4, "b"), (3, "b"), (2, "a"), (1, "a")]


def test_a_file_that_is_saved_anew_and_renamed_in_one_version_is_the_same_file(book: Book) -> None:
    book.write(before=b"one\ntwo\n", other=b"o")
    old, node, content = book.tree()[b"before"], book.head().next_node, b"one\n2\n"
    entry = replace(old, node=node, digest=hashlib.sha256(content).digest(), size=len(content))
    rows = [RowChange(ROOT_NODE, b"before", None), RowChange(ROOT_NODE, b"after", entry)]
    renamed = replace(change(ChangeKind.RENAMED, b"after", entry), from_path=b"before")
    book.commit(*rows, changes=[renamed], contents={entry.digest: content})
    assert past(book, "after") == [(2, "after"), (1, "before")]
    assert blamed(book, "after") == [(1, b"one\n"), (2, b"2\n")]


def test_one_that_is_not_there_any_more_is_followed_from_how_it_went(book: Book) -> None:
    book.write(d__a=b"1")
    book.write(d__a=b"2", keep=b"1")
    book.remove("d")
    book.write(keep=b"2")
    assert past(book, "d/a") == [(3, "d/a"), (2, "d/a"), (1, "d/a")]
    book.rename("keep", "kept")
    assert past(book, "keep") == [(5, "keep"), (4, "keep"), (2, "keep")]
    with pytest.raises(NotFound, match="has never"):
        past(book, "never")


def test_how_it_went_before_it_came_back_is_part_of_its_past(book: Book) -> None:
    book.write(a=b"1\n", other=b"1\n")
    entry = book.tree()[b"a"]
    book.remove("a")
    book.write(other=b"2\n")
    back = replace(entry, mode=0o600)
    book.commit(
        RowChange(ROOT_NODE, b"a", back), changes=[change(ChangeKind.CREATED, b"a", back)], contents={}
    )
    assert past(book, "a") == [(4, "a"), (2, "a"), (1, "a")]
    with book.repository.engine.reading() as reader:
        shown = select(reader, book.store, Selection(path=b"a", follow=True), 4)
        assert [one.version.number for one in shown] == [4, 2, 1]
    assert blamed(book, "a") == [(1, b"1\n")]


def test_a_directory_can_be_followed_too(book: Book) -> None:
    book.write(d__a=b"1")
    book.rename("d", "e")
    assert past(book, "e") == [(2, "e"), (1, "d")]


def test_each_line_has_the_version_that_wrote_it(book: Book) -> None:
    book.write(a=b"one\ntwo\nthree\n")
    book.write(a=b"one\n2\nthree\n")
    book.rename("a", "b")
    save_atomically(book, "b", b"zero\none\n2\nthree\nlast")
    book.write(b=b"zero\none\n2\nthree\nlast", mode=0o600)
    expected = [(4, b"zero\n"), (1, b"one\n"), (2, b"2\n"), (1, b"three\n"), (4, b"last")]
    assert blamed(book, "b") == expected
    assert blamed(book, "a", 2) == [(1, b"one\n"), (2, b"2\n"), (1, b"three\n")]


def test_a_line_that_came_back_was_written_when_it_came_back(book: Book) -> None:
    for content in (b"a\nb\n", b"a\n", b"a\nb\n"):
        book.write(f=content)
    assert blamed(book, "f") == [(1, b"a\n"), (3, b"b\n")]


def test_an_empty_file_has_no_lines_and_a_binary_one_cannot_be_blamed(book: Book) -> None:
    book.write(empty=b"", binary=b"\0", d__f=b"")
    assert blamed(book, "empty") == []
    for path in ("binary", "d"):
        with pytest.raises(UsageError):
            blamed(book, path)
    with pytest.raises(NotFound):
        blamed(book, "nothing")


def test_each_of_many_versions_is_found(book: Book) -> None:
    lines: list[bytes] = []
    for number in range(100):
        lines.insert(number * 7 % (len(lines) + 1), b"line %d\n" % number)
        book.write(f=b"".join(lines))
    assert blamed(book, "f") == [(int(line.split()[1]) + 1, line) for line in lines]


def selected(book: Book, newest: int | None = None, **conditions: object) -> list[int]:
    with book.repository.engine.reading() as reader:
        wanted = Selection(**conditions)  # type: ignore[arg-type]
        found = select(reader, book.store, wanted, newest or book.head().number)
        return [one.version.number for one in found]


def test_versions_are_selected_by_every_condition_that_is_given(book: Book) -> None:
    book.write(a=b"1")
    second = book.write(b=b"1")
    book.write(a=b"2")
    assert selected(book) == [3, 2, 1]
    assert selected(book, author="ALICE", by="agent", session="s") == [3, 2, 1]
    assert selected(book, author="bob") == selected(book, by="person") == selected(book, session="x") == []
    assert selected(book, since=second.time) == [3, 2]
    assert selected(book, since=second.time + 1) == [3]
    assert selected(book, path=b"a") == [3, 1]
    assert selected(book, path=b"a", since=second.time) == [3]
    assert selected(book, newest=2, path=b"a") == [1]
    assert selected(book, flag="concurrent") == []


def test_nothing_older_is_read_than_was_asked_for(book: Book) -> None:
    for number in range(50):
        book.write(a=b"%d" % number)
    with book.repository.engine.reading() as reader:
        read: list[object] = []
        scan = reader.scan

        def counting(*arguments: object, **how: object) -> object:
            for row in scan(*arguments, **how):  # type: ignore[arg-type]
                read.append(row)
                yield row

        reader.scan = counting  # type: ignore[method-assign,assignment]
        wanted = Selection(since=book.clock - 3 * SECOND)
        assert len(list(select(reader, book.store, wanted, 50))) == 4
        assert len(read) == 5


def test_a_followed_file_is_selected_under_its_earlier_names(book: Book) -> None:
    book.write(a=b"1")
    book.rename("a", "b")
    book.write(b=b"2")
    assert selected(book, path=b"b") == [3, 2]
    assert selected(book, path=b"b", follow=True) == [3, 2, 1]
