"""Editors' scratch files are told from files that people mean."""

import pytest

from engramfs.model.transient import TransientNames

SCRATCH = [b".a.md.swp", b".x.swo", b"4913", b"notes~", b".#lock", b".tmp-1", b".fuse_hidden01", b".\xff.swx"]
ORDINARY = [b"notes.md", b"49130", b"tmp-1", b"a.swp", b".gitignore", b"~notes", b".swp", b"#x#"]


@pytest.mark.parametrize("name", SCRATCH)
def test_scratch_names(name: bytes) -> None:
    assert name in TransientNames()


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_names(name: bytes) -> None:
    assert name not in TransientNames()


def test_other_patterns_replace_the_built_in_ones() -> None:
    names = TransientNames(("*.part",))
    assert b"x.part" in names
    assert b"x.part.txt" not in names
    assert b"4913" not in names


def test_no_patterns_match_nothing() -> None:
    names = TransientNames(())
    assert b"" not in names
    assert b"4913" not in names
