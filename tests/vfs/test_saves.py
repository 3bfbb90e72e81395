"""How programs save files: atomic saves, editors' backups and scratch files."""

import pytest

from engramfs.errors import CrossesViews

from .machine import Machine, Program


@pytest.fixture
async def ann(machine: Machine) -> Program:
    """A program in a store that has `notes`, in version 1."""
    ann = machine.writes()
    await ann.save("notes", b"one\n")
    await machine.seal()
    return ann


@pytest.mark.parametrize("temporary", [".tmp-1", "notes.new", "notes~", ".notes.swp"])
async def test_an_atomic_save_is_one_change(machine: Machine, ann: Program, temporary: str) -> None:
    await ann.save_atomically("notes", b"two\n", temporary)
    await machine.seal()
    assert machine.changes()[1:] == [["modified notes"]]
    assert machine.tree() == {"notes": b"two\n"}


async def test_an_atomic_save_keeps_the_identity_of_the_file(machine: Machine, ann: Program) -> None:
    origin = machine.live().tree.nodes[ann.node("notes")].entry.origin
    await ann.save_atomically("notes", b"two\n", ".tmp-1")
    await machine.seal()
    assert machine.live().tree.nodes[ann.node("notes")].entry.origin == origin


async def test_a_temporary_that_was_sealed_before_the_rename_is_still_a_change_of_the_file(
    machine: Machine, ann: Program
) -> None:
    await ann.save("notes.new", b"two\n")
    await machine.seal()
    ann.rename("notes.new", "notes")
    await machine.seal()
    assert machine.changes()[1:] == [["created notes.new"], ["modified notes", "deleted notes.new"]]


async def test_a_file_that_is_renamed_and_saved_anew_in_one_batch_is_renamed(
    machine: Machine, ann: Program
) -> None:
    ann.rename("notes", "better")
    await ann.save_atomically("better", b"two\n", ".tmp-1")
    await machine.seal()
    assert machine.changes()[1:] == [["renamed notes -> better"]]
    assert machine.tree() == {"better": b"two\n"}


async def test_vim_with_a_backup_that_it_removes(machine: Machine, ann: Program) -> None:
    swap = ann.create(".notes.swp")
    await swap.write(b"b0VIM")
    await ann.save("4913", b"")
    ann.unlink("4913")
    ann.rename("notes", "notes~")
    await ann.save("notes", b"two\n")
    ann.unlink("notes~")
    await swap.close()
    ann.unlink(".notes.swp")
    await machine.seal()
    assert machine.changes()[1:] == [["modified notes"]]
    assert machine.tree() == {"notes": b"two\n"}


async def test_a_backup_that_stays_is_seen_in_its_view_and_in_no_version(
    machine: Machine, ann: Program
) -> None:
    ann.rename("notes", "notes~")
    await ann.save("notes", b"two\n")
    await machine.seal()
    assert machine.changes()[1:] == [["modified notes"]]
    assert ann.list() == ["notes", "notes~"]
    assert ann.read("notes~") == b"one\n"
    assert machine.writes("bob").list() == machine.reads().list() == ["notes"]
    ann.rename("notes~", "notes")
    await machine.seal()
    assert machine.tree() == {"notes": b"one\n"}


async def test_each_view_has_transient_names_of_its_own(machine: Machine) -> None:
    ann, bob = machine.writes("ann"), machine.writes("bob")
    await ann.save(".#lock", b"ann")
    await bob.save(".#lock", b"bob")
    assert (ann.read(".#lock"), bob.read(".#lock")) == (b"ann", b"bob")
    ann.unlink(".#lock")
    assert bob.exists(".#lock")
    await machine.seal()
    assert machine.versions() == []


async def test_a_transient_directory_enters_the_log_whole_when_it_is_renamed(machine: Machine) -> None:
    ann = machine.writes()
    ann.mkdir(".tmp-1")
    ann.mkdir(".tmp-1/sub")
    await ann.save(".tmp-1/file", b"one")
    await ann.save(".tmp-1/sub/file", b"x" * 100_000)
    ann.symlink("file", ".tmp-1/link")
    await ann.save("other", b"")
    await machine.seal()
    assert machine.tree() == {"other": b""}
    assert machine.reads().list() == ["other"]
    ann.rename(".tmp-1", "final")
    await machine.seal()
    assert machine.changes()[-1] == [
        "created final",
        "created final/file",
        "created final/link",
        "created final/sub",
        "created final/sub/file",
    ]
    assert machine.tree(2) == {
        "final": None,
        "final/file": b"one",
        "final/link": b"file",
        "final/sub": None,
        "final/sub/file": b"x" * 100_000,
        "other": b"",
    }


async def test_a_file_moved_out_of_a_transient_directory_enters_the_log(machine: Machine) -> None:
    ann = machine.writes()
    ann.mkdir(".tmp-1")
    await ann.save(".tmp-1/file", b"one")
    await machine.seal()
    ann.rename(".tmp-1/file", "file")
    ann.rmdir(".tmp-1")
    await machine.seal()
    assert machine.changes() == [["created file"]]


async def test_a_file_moved_into_a_transient_directory_leaves_the_log(machine: Machine, ann: Program) -> None:
    ann.mkdir(".tmp-1")
    ann.rename("notes", ".tmp-1/notes")
    await machine.seal()
    assert machine.changes()[1:] == [["deleted notes"]]
    assert ann.read(".tmp-1/notes") == b"one\n"


async def test_a_directory_stays_in_the_log_whatever_it_is_renamed_to(machine: Machine) -> None:
    ann = machine.writes()
    ann.mkdir("state")
    await ann.save("state/file", b"one")
    ann.rename("state", "state~")
    await machine.seal()
    assert machine.tree() == {"state~": None, "state~/file": b"one"}
    ann.rename("state~", ".tmp-state")
    await machine.seal()
    assert machine.changes()[-1] == ["renamed state~ -> .tmp-state"]
    assert machine.reads().read(".tmp-state/file") == b"one"


async def test_a_directory_cannot_be_moved_below_a_transient_one(machine: Machine) -> None:
    ann = machine.writes()
    for name in ("state", ".tmp-1", ".tmp-1/sub"):
        ann.mkdir(name)
    with pytest.raises(CrossesViews):
        ann.rename("state", ".tmp-1/state")
    with pytest.raises(CrossesViews):
        ann.rename(".tmp-1/sub", "state", 2)


async def test_transient_names_do_not_outlive_a_directory_that_another_view_removes(
    machine: Machine,
) -> None:
    ann, bob = machine.writes("ann"), machine.writes("bob")
    ann.mkdir("directory")
    await ann.save("directory/file~", b"")
    bob.rmdir("directory")
    await machine.seal()
    assert machine.journal.records == 0
