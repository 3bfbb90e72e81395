"""What a difference looks like is what `git apply` and `patch` take."""

import os
import random
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from engramfs.history.between import between
from engramfs.history.diff import with_renames
from engramfs.history.exporting import export
from engramfs.history.git_patch import git_patch
from engramfs.history.patch import content_of
from engramfs.model.entry import Kind
from engramfs.model.names import raw

from .conftest import Book

TOOLS = [["git", "apply", "--whitespace=nowarn", "-"], ["patch", "-p1", "--quiet", "--no-backup-if-mismatch"]]
NAMES = [b"a", b"b c", b"d\xff", "漢".encode(), b'q"\\', b"e\te"]
CONTENTS = [b"", b"one\ntwo\nthree\n", b"one\n2\nthree\n", b"no end", b"\xff\ttab\r\n-- x\n", b"x\n" * 40]


def patch_between(book: Book, old: int, new: int, *, binary: bool = False) -> bytes:
    with book.repository.engine.reading() as reader:
        return b"".join(
            raw(line) + b"\n"
            for one in with_renames(between(reader, book.store, old, new))
            for line in git_patch(
                one, content_of(reader, one.old), content_of(reader, one.new), binary=binary
            )
        )


def files(directory: Path) -> dict[bytes, tuple[bool, bytes]]:
    """Whether it may be run, and content or target, by path. Git keeps no empty directories."""
    found = {}
    for above, directories, names in os.walk(os.fsencode(directory)):
        for name in (*directories, *names):
            place = os.path.join(above, name)
            mode = os.lstat(place).st_mode
            path = os.path.relpath(place, os.fsencode(directory))
            if stat.S_ISLNK(mode):
                found[path] = (False, os.readlink(place))
            elif stat.S_ISREG(mode):
                with open(place, "rb") as file:
                    found[path] = (bool(mode & 0o100), file.read())
    return found


def check(book: Book, old: int, new: int, directory: Path, tool: list[str], *, binary: bool = False) -> None:
    """`tool` makes version `new` of `old`."""
    before, after = directory / "before", directory / "after"
    for number, place in ((old, before), (new, after)):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        if number:
            export(book.repository, book.store, number, os.fsencode(place))
    text = patch_between(book, old, new, binary=binary)
    if text:
        done = subprocess.run(tool, input=text, cwd=before, capture_output=True, timeout=20)
        assert done.returncode == 0, (done.stdout + done.stderr, text)
    assert files(before) == files(after), text


def write_history(book: Book, chosen: random.Random, count: int) -> None:
    """Files in all shapes that are written, moved with what is in them, made links, and removed."""
    book.write_paths(dict(zip(NAMES, CONTENTS, strict=True)))
    for number in range(count):
        known = book.tree()
        others = [path for path in known if path]
        moved = chosen.choice(others) if others else b""
        above = chosen.choice([b"", b"x/", b"x/y/"])
        name = above + chosen.choice(NAMES)
        way = {name[:end] for end in range(len(name)) if name[end : end + 1] == b"/"}
        in_the_way = any(path in known and known[path].digest for path in way)
        step = chosen.randrange(5)
        if step < 2 and moved and name not in known and not way - known.keys() and moved not in way:
            if not in_the_way:
                book.rename(os.fsdecode(moved), os.fsdecode(name))
        elif step == 2 and moved:
            book.remove(os.fsdecode(moved))
        elif step == 3 and f"link{number}".encode() not in known:
            book.symlink(f"link{number}", "to it")
        elif not in_the_way and (name not in known or known[name].digest):
            book.write_paths({name: chosen.choice(CONTENTS)}, chosen.choice([0o644, 0o755]))


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool[0])
@pytest.mark.parametrize("seed", range(3))
def test_tools_make_the_new_tree_of_the_old(book: Book, tmp_path: Path, seed: int, tool: list[str]) -> None:
    chosen = random.Random(seed)
    write_history(book, chosen, 14)
    newest = book.head().number
    for _ in range(12):
        old, new = chosen.sample(range(newest + 1), 2)
        if tool[0] == "git" or not _trade_places(book, old, new):
            check(book, old, new, tmp_path, tool)


def test_git_takes_binary_files_when_they_are_asked_for(book: Book, tmp_path: Path) -> None:
    chosen = random.Random(5)
    noise = [b"\0" + chosen.randbytes(size) for size in (1, 50, 51, 52, 53, 3000)]
    book.write_paths({b"%d" % number: content for number, content in enumerate(noise)})
    book.write_paths({b"0": b"text\n", b"1": noise[1] + b"more", b"new one": b"\0", b"plain": b"1\n"})
    book.write_paths({b"2": noise[2]}, 0o755)
    book.rename("5", "moved")
    book.write_paths({b"moved": noise[5][:2000] + b"end", b"3": b"\0now"}, 0o755)
    book.remove("4", "new one")
    for old in range(7):
        for new in range(7):
            check(book, old, new, tmp_path, TOOLS[0], binary=True)
    assert b"Binary files a/0 and /dev/null differ" in patch_between(book, 1, 0)


def _trade_places(book: Book, old: int, new: int) -> bool:
    """Whether a file stands where a directory was, or the other way round, which `patch` cannot do."""
    before, after = book.tree(old), book.tree(new)
    return any(
        Kind.DIRECTORY in (entry.kind, after[path].kind) and entry.kind is not after[path].kind
        for path, entry in before.items()
        if path in after
    )


def test_a_file_that_was_renamed_and_edited_is_one_difference_with_its_lines(book: Book) -> None:
    book.write(before=b"one\ntwo\nthree\n")
    book.rename("before", "after it")
    book.write_paths({b"after it": b"one\n2\nthree\n"}, 0o755)
    assert patch_between(book, 1, 3).decode().splitlines() == [
        'diff --git a/before "b/after it"',
        "old mode 100644",
        "new mode 100755",
        "rename from before",
        "rename to after it",
        "--- a/before",
        "+++ b/after it\t",
        "@@ -1,3 +1,3 @@",
        " one",
        "-two",
        "+2",
        " three",
    ]


def test_a_renamed_directory_takes_its_files_along(book: Book, tmp_path: Path) -> None:
    book.write(old__a=b"1", old__deep__b=b"2")
    book.rename("old", "new")
    assert patch_between(book, 1, 2).count(b"rename from") == 2
    for tool in TOOLS:
        check(book, 1, 2, tmp_path, tool)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool[0])
def test_a_symlink_may_lead_elsewhere(book: Book, tmp_path: Path, tool: list[str]) -> None:
    book.symlink("link", "old target")
    book.symlink("link", "new")
    check(book, 1, 2, tmp_path, tool)
