"""Two who move directories into each other: a session that asks sees one of the two trees, and all of it."""

import pytest

from engramfs.errors import Busy, Conflict
from engramfs.history import offered, pending

from .conftest import Boot
from .machine import Machine, Program
from .test_asking_at_random import check, shown

Both = tuple[Program, Program]
OF_THE_STORE = {"p": None, "p/one": b"1\n", "p/q": None, "p/q/two": b"2\n"}


@pytest.fixture
async def both(machine: Machine) -> Both:
    """Ann, who has to ask, and Bob, who writes; `p/one` and `q/two` are in version 1."""
    bob = machine.writes("bob")
    for directory, name, content in (("p", "one", b"1\n"), ("q", "two", b"2\n")):
        bob.mkdir(directory)
        await bob.save(f"{directory}/{name}", content)
    await machine.seal()
    return machine.asks("ann"), bob


@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "unsealed"])
@pytest.mark.parametrize("looked", [True, False], ids=["looked", "not looked"])
async def test_what_would_lie_in_each_other_is_where_the_store_has_it(
    machine: Machine, both: Both, sealed: bool, looked: bool
) -> None:
    ann, bob = both
    ann.rename("p", "q/p")
    if sealed:
        await machine.seal()
    if looked:
        shown(ann)
    bob.rename("q", "p/q")
    assert shown(ann) == OF_THE_STORE
    said = "p is shown where the store has it: you moved it into a directory that another moved into it"
    assert said in ann.read(".versions/status").decode()
    await check(machine, ann, bob)
    with pytest.raises(Conflict, match="p "):
        await machine.approve(1)
    assert shown(bob) == OF_THE_STORE
    await machine.reject(1)
    assert shown(ann) == OF_THE_STORE
    await check(machine, ann, bob)
    await bob.save("p/q/three", b"3\n")
    assert ann.read("p/q/three") == b"3\n"


async def test_once_they_do_not_what_waits_is_shown_again(machine: Machine, both: Both) -> None:
    ann, bob = both
    ann.rename("p", "q/p")
    await machine.seal()
    moved = shown(ann)
    bob.rename("q", "p/q")
    await machine.seal()
    bob.rename("p/q", "q")
    assert shown(ann) == moved
    await check(machine, ann, bob)
    await machine.approve(1)
    assert shown(ann) == shown(bob) == moved


async def test_so_it_is_after_a_crash_and_for_who_comes_later(
    boot: Boot, machine: Machine, both: Both
) -> None:
    ann, bob = both
    fork = machine.live_fork(ann).store.id
    ann.rename("p", "q/p")
    await machine.seal()
    bob.rename("q", "p/q")
    machine.crash()
    again = await boot(state=machine.state)
    ann, bob = again.asks("ann", fork=fork), again.writes("bob")
    assert shown(ann) == shown(bob) == OF_THE_STORE
    await check(again, ann, bob)


async def test_what_is_written_meanwhile_waits_and_its_difference_shows_it(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    ann.rename("p", "q/p")
    await machine.seal()
    bob.rename("q", "p/q")
    await ann.save("p/q/mine", b"mine\n")
    await ann.save("p/mine", b"mine\n")
    await check(machine, ann, bob)
    with machine.repository.engine.reading() as reader:
        waiting = pending.get(reader, machine.live().store, 2)
        found = [each.path for each in offered.differences(reader, waiting)]
    assert found == [b"p/mine", b"p/q/mine"]
    with pytest.raises(Conflict, match="builds on pending 1"):
        await machine.approve(2)
    await machine.reject(1)
    await machine.approve(2)
    assert shown(ann) == shown(bob) == OF_THE_STORE | {"p/mine": b"mine\n", "p/q/mine": b"mine\n"}
    await check(machine, ann, bob)


async def test_who_moves_it_once_more_sees_it_there(machine: Machine, both: Both) -> None:
    ann, bob = both
    ann.rename("p", "q/p")
    await machine.seal()
    bob.rename("q", "p/q")
    await machine.seal()
    ann.rename("p", "there")
    expected = {path.replace("p", "there", 1): content for path, content in OF_THE_STORE.items()}
    assert shown(ann) == expected
    await check(machine, ann, bob)
    bob.rename("p/q", "q")
    await check(machine, ann, bob)
    assert {path.rpartition("/")[2] for path in shown(ann)} == {"there", "one", "q", "two"}


async def test_nothing_else_is_put_where_it_waits_to_be_moved_to(machine: Machine, both: Both) -> None:
    ann, bob = both
    ann.rename("p", "q/p")
    await machine.seal()
    bob.rename("q", "p/q")
    with pytest.raises(Busy, match="p/q/p is where a directory waits to be moved to"):
        ann.mkdir("p/q/p")
    await ann.save("p/q/other", b"other\n")
    await check(machine, ann, bob)
    assert shown(ann) == OF_THE_STORE | {"p/q/other": b"other\n"}


async def test_what_is_in_a_directory_that_another_moved_into_a_hidden_one_is_there_once_that_is_shown(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    ann.mkdir("q/new")
    await machine.seal()
    shown(ann)
    bob.mkdir("q/new")
    bob.mkdir("q/new/inner")
    bob.rename("p", "q/new/inner/p")
    await machine.reject(1)
    assert shown(ann) == shown(bob)
    assert ann.read("q/new/inner/p/one") == b"1\n"


async def test_what_was_moved_into_a_new_directory_is_back_with_all_of_it_after_a_rejection(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    ann.mkdir("new")
    ann.rename("p", "new/p")
    await machine.seal()
    ann.list("new/p")
    await machine.reject(1)
    assert shown(ann) == shown(bob)
    assert "is not shown" not in ann.read(".versions/status").decode()


async def test_a_directory_that_both_moved_is_where_the_session_moved_it(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    ann.rename("p", "q/p")
    bob.rename("p", "third")
    expected = {"q": None, "q/two": b"2\n", "q/p": None, "q/p/one": b"1\n"}
    assert shown(ann) == expected
    await check(machine, ann, bob)
    await machine.reject(1)
    assert shown(ann) == shown(bob)
    await check(machine, ann, bob)
