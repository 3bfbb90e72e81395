"""One version is undone and later ones stay; or nothing is done, and the paths are named."""

import hashlib
import random
import re

import pytest

from engramfs.errors import Conflict, NotFound, Redacted
from engramfs.history import commit, log, revert
from engramfs.history.commit import RowChange
from engramfs.history.redaction import redact
from engramfs.history.verify import verify
from engramfs.model.author import Author
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.version import ChangeKind, Version
from engramfs.storage import blobs
from engramfs.storage.protocol import Writer

from .conftest import SECOND, Book, change, replace
from .test_between import keep_from
from .test_lineage import save_atomically

ROOT = Author("person", actor="root")
Content = dict[str, bytes | None]


def undo(book: Book, number: int) -> Version | None:
    """Revert a version; the log must be sound afterwards."""
    book.clock += SECOND

    def body(writer: Writer) -> Version | None:
        return commit.apply(writer, revert.plan(writer, book.store, number, ROOT, book.clock))

    version = book.repository.transact(body)
    report = verify(book.repository)
    assert report.sound, report.findings
    return version


def refuse(book: Book, number: int) -> str:
    """What a refusal says; nothing was done."""
    before = (book.head(), book.tree())
    with pytest.raises(Conflict) as refused:
        undo(book, number)
    assert (book.head(), book.tree()) == before
    assert refused.value.exit_code == 4
    return refused.value.message


def contents(book: Book, number: int | None = None) -> Content:
    """path → content; None for a directory."""
    with book.repository.engine.reading() as reader:
        return {
            path.decode(): blobs.read(reader, entry.digest, entry.size) if entry.kind is Kind.FILE else None
            for path, entry in book.tree(number).items()
            if path
        }


def changes(book: Book) -> list[str]:
    """Of the newest version: "modified a"."""
    with book.repository.engine.reading() as reader:
        found = log.changes(reader, book.store.id, book.head().number)
        return [f"{one.op.label} {one.path.decode()}" for one in found]


def test_what_a_version_changed_is_what_it_was_and_later_changes_stay(book: Book) -> None:
    book.write(a=b"1", gone=b"1", d__f=b"1")
    book.write(a=b"2", new=b"2")
    book.remove("gone")
    book.write(later=b"4")
    version = undo(book, 2)
    assert version is not None
    assert (version.via, version.message) == ("revert", f"revert of {book.store.name}@2")
    assert version.author == ROOT
    assert changes(book) == ["modified a", "deleted new"]
    undo(book, 3)
    assert contents(book) == {"a": b"1", "gone": b"1", "d": None, "d/f": b"1", "later": b"4"}
    assert book.tree()[b"gone"].node == book.tree(1)[b"gone"].node


def test_the_first_version_can_be_undone(book: Book) -> None:
    book.write(a=b"1", d__f=b"1")
    undo(book, 1)
    assert contents(book) == {}
    undo(book, 2)
    assert contents(book) == contents(book, 1)


def test_undoing_twice_changes_nothing(book: Book) -> None:
    book.write(a=b"1")
    book.write(a=b"2")
    undo(book, 2)
    assert undo(book, 2) is None
    assert contents(book) == {"a": b"1"}


def test_a_text_that_changed_since_is_merged_line_by_line(book: Book) -> None:
    book.write(a=b"one\ntwo\nthree\nfour\n")
    book.write(a=b"one\nTWO\nthree\nfour\n")
    book.write(a=b"one\nTWO\nthree\nfour\nfive\n")
    undo(book, 2)
    assert contents(book) == {"a": b"one\ntwo\nthree\nfour\nfive\n"}


def test_what_cannot_be_merged_is_named_and_nothing_is_done(book: Book) -> None:
    book.write(a=b"one\n", b=b"one\n", c=b"one\n")
    book.write(a=b"two\n", b=b"two\n", c=b"two\n")
    book.write(a=b"three\n")
    book.remove("b")
    said = refuse(book, 2)
    assert re.search(r"version 2 of \S+ cannot be undone, a, b changed since", said)


def test_a_file_that_changed_after_it_was_created_or_deleted_is_a_conflict(book: Book) -> None:
    book.write(a=b"1", keep=b"1")
    book.write(new=b"1")
    book.remove("a")
    book.write(new=b"2", a=b"another")
    assert "new changed" in refuse(book, 2)
    assert "a changed" in refuse(book, 3)


def test_a_file_that_was_saved_anew_with_the_same_bytes_did_not_change(book: Book) -> None:
    book.write(a=b"1")
    book.write(a=b"2", new=b"2")
    save_atomically(book, "a", b"2")
    node = book.tree()[b"a"].node
    undo(book, 2)
    assert contents(book) == {"a": b"1"}
    assert book.tree()[b"a"].node == node


def test_a_rename_is_undone_with_what_the_file_holds_now(book: Book) -> None:
    book.write(a=b"1", d__f=b"1")
    book.rename("a", "b")
    book.rename("d", "e")
    book.write(b=b"2", e__f=b"2")
    undo(book, 2)
    assert changes(book) == ["renamed a"]
    undo(book, 3)
    assert contents(book) == {"a": b"2", "d": None, "d/f": b"2"}


def test_a_rename_whose_old_name_was_taken_is_a_conflict(book: Book) -> None:
    book.write(a=b"1")
    book.rename("a", "b")
    book.write(a=b"another")
    assert "a changed" in refuse(book, 2)
    book.rename("b", "c")
    book.remove("a")
    assert "a changed" in refuse(book, 2)


def test_a_file_that_was_renamed_since_is_changed_under_its_new_name(book: Book) -> None:
    book.write(a=b"one\ntwo\nthree\n", d__f=b"1")
    book.write(a=b"one\nTWO\nthree\n", d__f=b"2")
    book.rename("a", "d/b")
    book.rename("d", "e")
    version = undo(book, 2)
    assert version is not None
    assert changes(book) == ["modified e/b", "modified e/f"]
    assert contents(book) == {"e": None, "e/b": b"one\ntwo\nthree\n", "e/f": b"1"}
    assert undo(book, 2) is None


def test_a_file_that_was_renamed_and_changed_since_is_merged(book: Book) -> None:
    book.write(a=b"one\ntwo\nthree\nfour\n")
    book.write(a=b"one\nTWO\nthree\nfour\n")
    book.rename("a", "b")
    book.write(b=b"one\nTWO\nthree\nfour\nfive\n")
    undo(book, 2)
    assert contents(book) == {"b": b"one\ntwo\nthree\nfour\nfive\n"}
    book.write(b=b"another\n")
    assert re.search(r"undone, b changed since", refuse(book, 2))


def test_a_file_that_was_renamed_and_then_saved_anew_is_found(book: Book) -> None:
    book.write(a=b"1\n2\n3\n")
    book.write(a=b"1\n2\nthree\n")
    book.rename("a", "b")
    save_atomically(book, "b", b"1\n2\nthree\n")
    undo(book, 2)
    assert contents(book) == {"b": b"1\n2\n3\n"}


def test_a_file_that_was_saved_anew_and_then_renamed_is_found(book: Book) -> None:
    book.write(a=b"1\n2\n3\n")
    book.write(a=b"1\n2\nthree\n")
    save_atomically(book, "a", b"one\n2\nthree\n")
    book.rename("a", "b")
    save_atomically(book, "b", b"zero\none\n2\nthree\n")
    book.rename("b", "c")
    undo(book, 2)
    assert contents(book) == {"c": b"zero\none\n2\n3\n"}
    book.write(c=b"another\n")
    assert re.search(r"undone, c changed since", refuse(book, 2))


def test_a_file_that_was_saved_anew_and_renamed_by_one_version_is_found(book: Book) -> None:
    book.write(a=b"1\n2\n3\n", d__f=b"1")
    book.write(a=b"1\n2\nthree\n")
    old, node, content = book.tree()[b"a"], book.head().next_node, b"one\n2\nthree\n"
    digest = hashlib.sha256(content).digest()
    entry = replace(old, node=node, digest=digest, size=len(content))
    rows = RowChange(ROOT_NODE, b"a", None), RowChange(book.tree()[b"d"].node, b"b", entry)
    renamed = replace(change(ChangeKind.RENAMED, b"d/b", entry), from_path=b"a")
    book.commit(*rows, changes=[renamed], contents={digest: content})
    undo(book, 2)
    assert contents(book) == {"d": None, "d/b": b"one\n2\n3\n", "d/f": b"1"}


def test_another_file_under_the_name_of_one_that_went_is_not_taken_for_it(book: Book) -> None:
    book.write(a=b"1")
    book.write(a=b"2")
    book.remove("a")
    book.write(a=b"another")
    book.rename("a", "b")
    assert re.search(r"undone, a changed since", refuse(book, 2))


def test_the_mode_of_what_was_renamed_since_comes_back(book: Book) -> None:
    book.write(a=b"1")
    book.write(mode=0o600, a=b"1")
    book.rename("a", "b")
    undo(book, 2)
    assert book.tree()[b"b"].mode == 0o644


def test_what_was_created_and_renamed_since_goes_unless_it_changed(book: Book) -> None:
    book.write(a=b"1")
    book.write(new=b"1", d__f=b"1")
    book.rename("new", "newer")
    book.rename("d", "e")
    undo(book, 2)
    assert contents(book) == {"a": b"1"}
    undo(book, 5)
    book.write(newer=b"2")
    assert re.search(r"undone, newer changed since", refuse(book, 2))


def test_a_link_that_is_gone_does_not_take_the_file_with_it(book: Book) -> None:
    book.write(a=b"1")
    book.link("a", "b")
    entry = book.tree()[b"a"]
    rows = RowChange(ROOT_NODE, b"b", None), RowChange(ROOT_NODE, b"a", replace(entry, links=1))
    book.commit(*rows, changes=[change(ChangeKind.DELETED, b"b", entry)], contents={})
    assert undo(book, 2) is None
    assert contents(book) == {"a": b"1"}


def test_the_file_is_found_though_another_has_taken_its_name(book: Book) -> None:
    book.write(a=b"1")
    book.write(a=b"2")
    book.rename("a", "b")
    book.write(a=b"another file")
    undo(book, 2)
    assert contents(book) == {"a": b"another file", "b": b"1"}


def test_names_that_conflict_are_a_conflict(book: Book) -> None:
    book.write(a=b"1")
    book.rename("a", "b")
    book.rename("b", "c")
    assert re.search(r"undone, a changed since", refuse(book, 2))


def test_a_directory_that_has_got_files_since_is_not_taken_away(book: Book) -> None:
    book.write(a=b"1")
    book.write(d__f=b"1")
    book.write(d__later=b"2")
    assert "d/later" in refuse(book, 2)
    undo(book, 3)
    undo(book, 2)
    assert contents(book) == {"a": b"1"}


def test_what_was_in_a_directory_that_is_gone_is_a_conflict(book: Book) -> None:
    book.write(d__f=b"1", d__g=b"1")
    book.remove("d/f")
    book.remove("d")
    assert "d/f" in refuse(book, 2)
    undo(book, 3)
    undo(book, 2)
    assert contents(book) == contents(book, 1)


def test_a_removed_link_comes_back_as_one_more_name_of_the_file(book: Book) -> None:
    book.write(a=b"1")
    book.link("a", "b")
    undo(book, 2)
    assert {path: entry.links for path, entry in book.tree().items() if path} == {b"a": 1}
    undo(book, 3)
    entries = {path: entry for path, entry in book.tree().items() if path}
    assert entries[b"a"] == entries[b"b"]
    assert entries[b"a"].links == 2


def test_the_mode_of_the_root_and_of_a_directory_come_back(book: Book) -> None:
    book.write(d__f=b"1")
    root, directory = (replace(book.tree()[path], mode=0o700) for path in (b"", b"d"))
    rows = [RowChange(0, b"", root), RowChange(ROOT_NODE, b"d", directory)]
    done = [change(ChangeKind.MODIFIED, b"", root), change(ChangeKind.MODIFIED, b"d", directory)]
    book.commit(*rows, changes=done, contents={})
    undo(book, 2)
    assert [book.tree()[path].mode for path in (b"", b"d")] == [0o755, 0o755]


def test_a_version_that_does_not_exist_or_whose_predecessor_is_gone_is_not_found(book: Book) -> None:
    for content in (b"1", b"2", b"3"):
        book.write(a=content)
    with pytest.raises(NotFound, match="no version 9"):
        undo(book, 9)
    keep_from(book, 2)
    with pytest.raises(NotFound, match="before 2"):
        book.repository.transact(lambda writer: revert.plan(writer, book.store, 2, ROOT, book.clock))


@pytest.mark.parametrize("seed", range(10))
def test_undoing_the_newest_version_always_gives_the_tree_before_it(book: Book, seed: int) -> None:
    rng = random.Random(seed)
    book.write(a__b__x=b"0", a__y=b"0", b__c__z=b"0", top=b"0")
    for number in range(10):
        change_something(book, rng, number)
        newest = book.head().number
        undo(book, newest)
        assert _looks(book.tree()) == _looks(book.tree(newest - 1))
        undo(book, newest + 1)
        assert _looks(book.tree()) == _looks(book.tree(newest))


def change_something(book: Book, rng: random.Random, number: int) -> None:
    known = book.tree()
    directories = [path for path, entry in known.items() if entry.kind is Kind.DIRECTORY]
    name = b"/".join(filter(None, [rng.choice(directories), rng.choice([b"a", b"b", b"c", b"x"])]))
    moved = rng.choice([path for path in known if path] or [b""])
    inside = (name + b"/").startswith(moved + b"/")
    if rng.random() < 0.4 and moved and name not in known and not inside:
        book.rename(moved.decode(), name.decode())
    elif rng.random() < 0.3 and moved:
        book.remove(moved.decode())
    else:
        book.write_paths({b"top" if name in directories else name: b"version %d" % number})


def _looks(tree: dict[bytes, Entry]) -> dict[bytes, tuple[Kind, int, bytes]]:
    return {path: (entry.kind, entry.mode, entry.digest) for path, entry in tree.items()}


@pytest.mark.parametrize("head", [b"clean", b"clean\nmore\n"], ids=["as it left it", "changed since"])
def test_what_would_bring_back_a_redacted_content_is_refused_and_named(book: Book, head: bytes) -> None:
    book.write(a=b"secret", b=b"1")
    book.write(a=b"clean", b=b"2")
    book.write(a=head, c=b"3")
    redact(book.repository, book.store.name, 1, b"a", ROOT, "a reason", 5)
    before = book.tree()
    with pytest.raises(Redacted, match="what a held before version 2"):
        undo(book, 2)
    assert book.tree() == before


def test_a_rename_from_a_redacted_name_is_not_undone_by_removing_the_file(book: Book) -> None:
    book.write(secret=b"1")
    book.rename("secret", "b")
    redact(book.repository, book.store.name, 1, b"secret", ROOT, "a reason", 5)
    with pytest.raises(Redacted, match=r"version 2 of .* was redacted"):
        undo(book, 2)
    assert contents(book) == {"b": b"1"}


def test_no_version_brings_what_has_no_content(book: Book) -> None:
    book.write(a=b"1")
    gone = book.tree()[b"a"].redacted()
    with pytest.raises(Redacted, match="no version can bring it"):
        book.commit(RowChange(ROOT_NODE, b"a", gone), changes=[], contents={})
