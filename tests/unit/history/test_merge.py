"""Two changes of one text, made into one."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engramfs.history.lines import matches, split_lines
from engramfs.history.merge import merge

BASE = b"one\ntwo\nthree\nfour\nfive\n"

texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d", b"\n"]), max_size=12).map(b"".join)


def test_what_each_side_changed_is_taken_from_it() -> None:
    ours = BASE.replace(b"one", b"ONE")
    theirs = BASE.replace(b"five\n", b"five\nsix\n").replace(b"three\n", b"")
    assert merge(BASE, ours, theirs) == b"ONE\ntwo\nfour\nfive\nsix\n"


def test_a_line_that_both_changed_is_a_conflict_unless_both_made_the_same_of_it() -> None:
    changed = BASE.replace(b"two", b"2")
    assert merge(BASE, changed, BASE.replace(b"two", b"zwei")) is None
    assert merge(BASE, changed, changed + b"six\n") == changed + b"six\n"


def test_changes_of_neighbouring_lines_are_a_conflict() -> None:
    assert merge(BASE, BASE.replace(b"two", b"2"), BASE.replace(b"three", b"3")) is None


def test_a_line_that_one_removed_and_the_other_changed_is_a_conflict() -> None:
    assert merge(BASE, BASE.replace(b"three\n", b""), BASE.replace(b"three", b"3")) is None


def test_two_appends_both_stay() -> None:
    assert merge(BASE, BASE + b"ours\n", BASE + b"theirs\n") == BASE + b"ours\ntheirs\n"
    assert merge(b"", b"ours\n", b"theirs\n") is None, "two files of the same name are no appends"
    assert merge(b"no end", b"no end, ours\n", b"no end, theirs\n") is None


def test_a_binary_file_merges_only_when_one_side_left_it_alone() -> None:
    base, ours, theirs = b"\0one\n\n\ntwo\n", b"\0ONE\n\n\ntwo\n", b"\0one\n\n\nTWO\n"
    assert merge(base, ours, theirs) is None
    assert merge(base, base, theirs) == theirs
    assert merge(base, ours, base) == ours


def test_a_missing_line_end_is_kept() -> None:
    assert merge(b"a\nb\nc\nd", b"A\nb\nc\nd", b"a\nb\nc\nd") == b"A\nb\nc\nd"
    assert merge(b"a\nb\nc\nd", b"A\nb\nc\nd", b"a\nb\nc\nd\n") == b"A\nb\nc\nd\n"


@given(texts, texts, texts)
def test_the_side_does_not_matter_but_for_two_appends(base: bytes, ours: bytes, theirs: bytes) -> None:
    merged = merge(base, ours, theirs)
    if not (ours.startswith(base) and theirs.startswith(base)):
        assert merged == merge(base, theirs, ours)
    assert merge(base, ours, base) == ours
    assert merge(base, base, theirs) == theirs


@given(texts, texts)
def test_matches_are_equal_lines_in_order(old: bytes, new: bytes) -> None:
    before, after = split_lines(old), split_lines(new)
    assert b"".join(before) == old
    at_old = at_new = 0
    for match in matches(before, after):
        assert match.old >= at_old
        assert match.new >= at_new
        assert match.length > 0
        at_old, at_new = match.old + match.length, match.new + match.length
        assert before[match.old : at_old] == after[match.new : at_new]


@pytest.mark.parametrize("distance", [0, 1, 2, 5])
def test_git_agrees(tmp_path: Path, distance: int) -> None:
    base = b"".join(b"line %d\n" % number for number in range(20))
    ours = base.replace(b"line 7\n", b"ours\n")
    theirs = base.replace(b"line %d\n" % (7 + distance), b"theirs\n")
    names = ["ours", "base", "theirs"]
    for name, content in zip(names, [ours, base, theirs], strict=True):
        (tmp_path / name).write_bytes(content)
    git = subprocess.run(
        ["git", "merge-file", "-p", *names], cwd=tmp_path, capture_output=True, check=False, timeout=30
    )
    assert merge(base, ours, theirs) == (git.stdout if git.returncode == 0 else None)
