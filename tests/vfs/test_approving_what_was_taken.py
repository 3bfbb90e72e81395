"""Nothing comes into a store with an approval that was rejected before, or that its difference does not show.

What a change renames or links has to be in the store as it was: the change itself does not show its content.
"""

from collections.abc import Awaitable, Callable

import pytest

from engramfs.errors import Conflict
from engramfs.vfs.renaming import EXCHANGE

from .machine import Machine, Program, Tree

Both = tuple[Program, Program]
Step = Callable[[Program], Awaitable[None]]


@pytest.fixture
async def both(machine: Machine) -> Both:
    """Ann, who has to ask, and Bob, who writes; `file` and `directory` are in version 1."""
    bob = machine.writes("bob")
    await bob.save("file", b"file\n")
    bob.mkdir("directory")
    await machine.seal()
    return machine.asks("ann"), bob


async def rename(ann: Program) -> None:
    ann.rename("mine", "renamed")


async def rename_over(ann: Program) -> None:
    ann.rename("mine", "file")


async def rename_into(ann: Program) -> None:
    ann.rename("mine", "directory/mine")


async def exchange(ann: Program) -> None:
    ann.rename("mine", "file", EXCHANGE)


async def link(ann: Program) -> None:
    ann.link("mine", "linked")


async def link_and_remove(ann: Program) -> None:
    ann.link("mine", "linked")
    ann.unlink("mine")


async def save_anew_and_rename(ann: Program) -> None:
    await ann.save_atomically("mine", b"rejected\nand more\n", ".tmp-1")
    ann.rename("mine", "renamed")


@pytest.mark.parametrize(
    "step", [rename, rename_over, rename_into, exchange, link, link_and_remove, save_anew_and_rename]
)
async def test_a_rejected_file_does_not_come_under_another_name(
    machine: Machine, both: Both, step: Step
) -> None:
    ann, _ = both
    await ann.save("mine", b"rejected\n")
    await machine.seal()
    await step(ann)
    await machine.seal()
    with pytest.raises(Conflict, match=r"pending 2 .* builds on pending 1, still open"):
        await machine.approve(2)
    await machine.reject(1)
    before = machine.tree()
    for merge in (False, True):
        with pytest.raises(Conflict, match=r"mine .*that version") as refused:
            await machine.approve(2, merge=merge)
        assert "--merge" not in refused.value.message
    assert machine.tree() == before


async def test_neither_does_one_that_was_renamed_twice(machine: Machine, both: Both) -> None:
    ann, _ = both
    await ann.save("mine", b"rejected\n")
    for old, new in (("mine", "second"), ("second", "third")):
        await machine.seal()
        ann.rename(old, new)
    await machine.seal()
    await machine.reject(1)
    await machine.reject(2)
    with pytest.raises(Conflict, match="second is not what it was"):
        await machine.approve(3)


async def test_a_rejected_directory_does_not_come_empty(machine: Machine, both: Both) -> None:
    ann, _ = both
    ann.mkdir("mine")
    await ann.save("mine/inner", b"rejected\n")
    await machine.seal()
    ann.rename("mine", "renamed")
    await machine.seal()
    ann.rename("renamed/inner", "inner")
    await machine.seal()
    await machine.reject(1)
    with pytest.raises(Conflict, match="mine is not what it was"):
        await machine.approve(2)
    await machine.reject(2)
    with pytest.raises(Conflict, match="inner is not what it was"):
        await machine.approve(3)
    assert set(machine.tree()) == {"file", "directory"}


async def test_after_a_rejected_rename_the_file_does_not_get_a_second_name(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    ann.rename("file", "second")
    await machine.seal()
    ann.rename("second", "third")
    await machine.seal()
    await machine.reject(1)
    with pytest.raises(Conflict, match=r"second"):
        await machine.approve(2)
    assert bob.list() == ["directory", "file"]


async def test_a_merged_rename_of_a_file_brings_no_rejected_edit(machine: Machine, both: Both) -> None:
    ann, _ = both
    await ann.save("file", b"file\nrejected\n")
    await machine.seal()
    ann.rename("file", "renamed")
    await machine.seal()
    await machine.reject(1)
    with pytest.raises(Conflict, match="file is not what it was"):
        await machine.approve(2)
    await machine.approve(2, merge=True)
    assert machine.tree() == {"directory": None, "renamed": b"file\n"}


async def test_a_file_that_another_removed_does_not_come_back_by_its_rename(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    ann.rename("file", "renamed")
    await machine.seal()
    bob.unlink("file")
    with pytest.raises(Conflict, match="file is not what it was"):
        await machine.approve(1)


async def test_a_link_does_not_undo_what_another_wrote_meanwhile(machine: Machine, both: Both) -> None:
    ann, bob = both
    ann.link("file", "linked")
    await machine.seal()
    await bob.save("file", b"bob\n")
    with pytest.raises(Conflict, match="file is not what it was"):
        await machine.approve(1)
    await bob.save("file", b"file\n")
    await machine.approve_sealed(1)
    assert bob.stat("file").links == 2


async def test_what_is_in_the_store_under_the_new_name_needs_no_old_one(machine: Machine, both: Both) -> None:
    ann, bob = both
    await ann.save("mine", b"same\n")
    await machine.seal()
    ann.rename("mine", "renamed")
    await machine.seal()
    await machine.reject(1)
    await bob.save("renamed", b"same\n")
    await machine.approve_sealed(2)
    expected: Tree = {"file": b"file\n", "directory": None, "renamed": b"same\n"}
    assert machine.tree() == expected
    assert [name for name in ann.list() if name != "mine"] == bob.list()


async def test_an_approved_file_goes_on_under_another_name(machine: Machine, both: Both) -> None:
    ann, bob = both
    await ann.save("mine", b"mine\n")
    await machine.seal()
    await save_anew_and_rename(ann)
    await machine.seal()
    await machine.approve(1)
    await machine.approve(2)
    assert bob.list() == ["directory", "file", "renamed"]
