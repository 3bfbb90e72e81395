"""Undoing one version of a store that two sessions write, with a daemon and without one."""

import os
from collections.abc import Iterator

import pytest

from ..harness.command import Command
from ..harness.daemon import Place


@pytest.fixture
def bob(place: Place) -> Iterator[Place]:
    """Another session over the same store."""
    bob = place.daemon.up(agent=place.agent, actor="bob")
    yield bob
    place.daemon.end(bob)


def newest(place: Place) -> int:
    place.daemon.barrier()
    number: int = place.log()[-1]["number"]
    return number


def test_a_session_that_overwrote_another_is_undone_in_every_mount(place: Place, bob: Place) -> None:
    place.write("plan", b"one\ntwo\nthree\n")
    newest(place)
    descriptor = bob.inside.call("os.open", bob.path("plan"), os.O_WRONLY | os.O_TRUNC)
    bob.inside.call("os.pwrite", descriptor, b"bob's\n", 0)
    place.write("plan", b"one\ntwo\nthree\nfour\n")
    bob.inside.call("os.close", descriptor)
    overwriting = newest(place)
    assert place.log()[-1]["flags"] == ["concurrent"]
    place.write("other", b"later\n")
    undone = place.daemon.json("revert", place.store, str(overwriting))
    assert undone["via"] == "revert"
    assert undone["message"] == f"revert of {place.store}@{overwriting}"
    for each in (place, bob):
        assert each.read("plan") == b"one\ntwo\nthree\nfour\n"
        assert each.read("other") == b"later\n"
    assert "undid" not in place.daemon.ok("revert", f"{place.store}@{overwriting}"), "there is nothing left"


def test_what_stands_against_it_is_named_and_nothing_is_done(place: Place, bob: Place) -> None:
    place.write("a", b"one\n")
    place.write("b", b"one\n")
    newest(place)
    source = place.daemon.directory / f"{place.agent}-both"
    source.mkdir()
    for name in ("a", "b"):
        (source / name).write_bytes(b"two\n")
    changed = place.daemon.json("import", place.store, str(source))["number"]
    bob.write("a", b"three\n")
    refused = place.daemon.command("revert", place.store, str(changed))
    assert refused.code == 4
    assert "a changed since" in refused.err
    assert (place.read("a"), place.read("b")) == (b"three\n", b"two\n")
    assert newest(place) == changed + 1


@pytest.mark.parametrize("is_one_version", [False, True])
def test_a_file_is_found_that_an_editor_saved_and_somebody_renamed_since(
    place: Place, is_one_version: bool
) -> None:
    place.write("aa", b"1\n2\n3\n")
    newest(place)
    place.write("aa", b"1\n2\nthree\n")
    changed = newest(place)
    place.write("aa.new", b"one\n2\nthree\n")
    place.inside.call("os.rename", place.path("aa.new"), place.path("aa"))
    if not is_one_version:
        newest(place)
    place.inside.call("os.rename", place.path("aa"), place.path("ab"))
    newest(place)
    place.daemon.ok("revert", place.store, str(changed))
    assert place.read("ab") == b"one\n2\n3\n"


def test_moved_removed_and_merged_things_come_back_where_they_were(place: Place, bob: Place) -> None:
    place.inside.shell(f"mkdir -p {place.path('d/e')}; seq 9 > {place.path('d/e/numbers')}")
    newest(place)
    place.inside.shell(f"mv {place.path('d')} {place.path('moved')}")
    moved = newest(place)
    bob.inside.shell(f"sed -i s/1/one/ {bob.path('moved/e/numbers')}")
    edited = newest(place)
    place.inside.shell(f"echo ten >> {place.path('moved/e/numbers')}")
    newest(place)
    assert place.names() == bob.names() == ["moved"]
    place.daemon.ok("revert", place.store, str(moved))
    place.daemon.ok("revert", place.store, str(edited))
    numbers = b"".join(b"%d\n" % number for number in range(1, 10))
    for each in (place, bob):
        assert each.names() == ["d"]
        assert each.read("d/e/numbers") == numbers + b"ten\n"
    bob.inside.shell(f"rm -r {bob.path('d')}")
    removed = newest(place)
    assert place.names() == []
    place.daemon.ok("revert", place.store, str(removed))
    assert place.read("d/e/numbers") == bob.read("d/e/numbers") == numbers + b"ten\n"
    bob.write("d/e/numbers", b"it can be written\n")
    assert place.read("d/e/numbers") == b"it can be written\n"


def test_the_first_version_is_undone_without_a_daemon(handbook: Command) -> None:
    store = "contexts/handbook"
    assert "notes.md" in handbook.refused(4, "revert", store, "1")
    assert "undid @2" in handbook.ok("revert", store, "2")
    assert "3 changes" in handbook.ok("revert", f"{store}@1")
    assert handbook.json("tree", store) == []
    handbook.ok("verify")
    assert "no version 9" in handbook.refused(3, "revert", store, "9")
    handbook.refused(2, "revert", store)
    handbook.refused(2, "revert", f"{store}@1", "1")
    handbook.ok("store", "archive", store)
    handbook.refused(5, "revert", store, "1")
