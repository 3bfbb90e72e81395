"""Files that a commit moved are the same files in the store."""

import random
from pathlib import Path

import pytest

from engramfs.history.blame import blame
from engramfs.history.lineage import lineage
from engramfs.history.log import changes
from engramfs.model.version import ChangeKind

from .conftest import Book
from .git_work import Importing

TEXT = b"".join(b"line %d\n" % number for number in range(20))


def renames(book: Book, number: int) -> dict[bytes, bytes]:
    """Where to each file went, by where it was."""
    with book.repository.engine.reading() as reader:
        found = [one for one in changes(reader, book.store.id, number) if one.op is ChangeKind.RENAMED]
    return {one.from_path: one.path for one in found if one.from_path is not None}


def operations(book: Book, number: int) -> dict[bytes, str]:
    with book.repository.engine.reading() as reader:
        return {one.path: one.op.label for one in changes(reader, book.store.id, number)}


def history(book: Book, path: bytes) -> list[tuple[int, bytes]]:
    """The versions of a file with its path then, newest first."""
    with book.repository.engine.reading() as reader:
        return [(step.number, step.path) for step in lineage(reader, book.store, path, book.head().number)]


def blamed(book: Book, path: bytes) -> list[int]:
    with book.repository.engine.reading() as reader:
        lines = blame(reader, book.store, path, book.head().number)
    return [line.version.number for line in lines if line.version is not None]


@pytest.mark.parametrize("apart", [False, True])
def test_blame_and_log_follow_a_file_that_was_moved_and_edited(importing: Importing, apart: bool) -> None:
    """Also where the move is the first commit that a later import reads."""
    importing.work.commit("first", notes=TEXT)
    if apart:
        importing()
    importing.work.git("mv", "notes", "ideas")
    importing.work.commit("second", ideas=TEXT + b"more\n")
    importing.work.git("rm", "-q", "ideas")
    importing.work.commit("third", deep__er__ideas=TEXT + b"more\n", other=b"o")
    importing()
    book = importing.book
    assert [renames(book, number) for number in (2, 3)] == [
        {b"notes": b"ideas"},
        {b"ideas": b"deep/er/ideas"},
    ]
    assert history(book, b"deep/er/ideas") == [(3, b"deep/er/ideas"), (2, b"ideas"), (1, b"notes")]
    assert blamed(book, b"deep/er/ideas") == [1] * 20 + [2]
    entry = book.tree()[b"deep/er/ideas"]
    assert (entry.node, entry.origin) == (book.tree(1)[b"notes"].node, book.tree(1)[b"notes"].origin)
    assert operations(book, 3) == {
        b"deep": "created",
        b"deep/er": "created",
        b"deep/er/ideas": "renamed",
        b"other": "created",
    }


@pytest.mark.parametrize("apart", [False, True])
def test_a_directory_that_was_moved_takes_its_files_along(importing: Importing, apart: bool) -> None:
    names = {
        f"old/{number}/{letter}": TEXT + b"%d%s" % (number, letter.encode())
        for number in range(3)
        for letter in "ab"
    }
    importing.work.commit_paths({**names, "old/empty": b""})
    if apart:
        importing()
    importing.work.git("mv", "old", "new")
    importing.work.commit()
    importing()
    expected = {name.encode(): b"new" + name[3:].encode() for name in [*names, "old/empty"]}
    assert renames(importing.book, 2) == expected
    before, after = importing.book.tree(1), importing.book.tree()
    assert {path for path in after if path.startswith(b"old")} == set()
    for source, target in expected.items():
        assert before[source].node == after[target].node


@pytest.mark.parametrize("apart", [False, True])
def test_a_file_moves_below_its_own_name_and_back(importing: Importing, apart: bool) -> None:
    importing.work.commit(a=TEXT)
    if apart:
        importing()
    for path in ("a/b", "a"):
        _write(importing.work.directory, {path: TEXT})
        importing.work.commit()
    importing()
    book = importing.book
    assert [renames(book, number) for number in (2, 3)] == [{b"a": b"a/b"}, {b"a/b": b"a"}]
    assert history(book, b"a") == [(3, b"a"), (2, b"a/b"), (1, b"a")]
    assert len({book.tree(1)[b"a"].node, book.tree(2)[b"a/b"].node, book.tree()[b"a"].node}) == 1


@pytest.mark.parametrize("name", ["a b", 'quo"ted and', "back\\slash", "new\nline", " ü ", "\udcff\udcfe "])
def test_names_that_move_may_hold_any_bytes(importing: Importing, name: str) -> None:
    importing.work.commit_paths({name: TEXT})
    (importing.work.directory / name).rename(importing.work.directory / f"to {name}")
    importing.work.commit()
    importing()
    assert list(renames(importing.book, 2)) == [name.encode("utf-8", "surrogateescape")]
    assert importing.files() == {b"to " + name.encode("utf-8", "surrogateescape"): TEXT}


def test_a_symlink_moves_and_what_only_looks_alike_stays_apart(importing: Importing) -> None:
    work = importing.work
    (work.directory / "link").symlink_to("somewhere")
    work.commit(one=TEXT, two=b"something else\n")
    work.git("mv", "link", "other")
    work.commit(one=None, fresh=b"nothing of it\n")
    importing()
    assert operations(importing.book, 2) == {b"one": "deleted", b"fresh": "created", b"other": "renamed"}


def test_over_what_others_wrote_a_move_is_one_where_the_file_still_is(importing: Importing) -> None:
    work, book = importing.work, importing.book
    work.commit(a=TEXT, b=TEXT + b"b", c=TEXT + b"c")
    importing()
    book.remove("a")
    book.write(b=b"agent", d=b"agent")
    for source, target in ("ax", "by", "cd"):
        work.git("mv", source, target)
    work.commit()
    importing(over=True)
    assert importing.files() == {b"x": TEXT, b"y": TEXT + b"b", b"d": TEXT + b"c"}
    assert renames(book, 4) == {b"b": b"y"}
    assert operations(book, 4) == {b"x": "created", b"y": "renamed", b"c": "deleted", b"d": "modified"}


def test_what_is_left_out_can_come_from_its_place_and_go_there(importing: Importing) -> None:
    work = importing.work
    work.commit_paths({".versions/x": TEXT, "a": TEXT + b"a", "c": b"c"})
    importing()
    work.git("mv", ".versions/x", "b")
    work.git("mv", "a", ".versions")
    work.git("commit", "-qm", "moved")
    assert importing().skipped == {b".versions/a"}
    assert importing.files() == {b"b": TEXT, b"c": b"c"}


@pytest.mark.parametrize("apart", [False, True])
def test_a_submodule_that_moves_is_left_out_there_too(importing: Importing, apart: bool) -> None:
    work = importing.work
    base = work.commit(a=TEXT)
    work.git("update-index", "--add", "--cacheinfo", f"160000,{base},sub")
    work.git("commit", "-qm", "with a submodule")
    if apart:
        importing()
    work.git("mv", "a", "b")
    work.git("update-index", "--force-remove", "sub")
    work.git("update-index", "--add", "--cacheinfo", f"160000,{base},moved")
    work.git("commit", "-qm", "moved")
    assert importing().skipped == {b"sub", b"moved"}
    assert importing.files() == {b"b": TEXT}


@pytest.mark.parametrize("seed", range(2))
def test_each_version_has_the_files_of_its_commit_however_they_moved(importing: Importing, seed: int) -> None:
    chosen, work = random.Random(seed), importing.work
    files = {f"{letter}/{number}": TEXT + b"%d" % number * 9 for letter in "abc" for number in range(4)}
    work.commit_paths(files)
    expected = [files]
    for _ in range(12):
        now = dict(expected[-1])
        for source in chosen.sample(sorted(now), 4):
            content, target = now.pop(source), _free(chosen, now)
            now[target] = content + chosen.choice([b"", b"more\n"])
        _write(work.directory, now)
        work.commit()
        expected.append(now)
        if chosen.random() < 0.3:
            importing()
    importing()
    for number, then in enumerate(expected, start=1):
        assert importing.files(number) == {path.encode(): content for path, content in then.items()}
    assert sum(len(renames(importing.book, number)) for number in range(2, 14)) > 12


def _free(chosen: random.Random, taken: dict[str, bytes]) -> str:
    """A path that names no file, and has none on its way or below it."""
    while True:
        path = "/".join(chosen.choices("abcd0123", k=chosen.randint(1, 3)))
        if not any(f"{one}/".startswith(f"{path}/") or f"{path}/".startswith(f"{one}/") for one in taken):
            return path


def _write(directory: Path, files: dict[str, bytes]) -> None:
    """Nothing but these."""
    for path in sorted(directory.rglob("*"), reverse=True):
        if ".git" not in path.relative_to(directory).parts:
            path.rmdir() if path.is_dir() else path.unlink()
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
