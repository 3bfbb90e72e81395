"""Where a worker died, the next one goes on, with all that was open; and if that dies too, the one after."""

import contextlib
import random

import pytest
import trio

from engramfs.errors import EngramError, PosixError
from engramfs.model.file_edit import Create

from .conftest import Boot
from .machine import Descriptor, Machine, Tree
from .test_asking_at_random import act, shown, somewhere
from .test_held_still import call

ACTORS = ["ann", "bob", "cat"]  # the last one asks
LARGE = 100_000  # bytes, too many for the journal


async def written(machine: Machine) -> None:
    """Wait until what was cut is in the log; what is open stays so."""
    with trio.fail_after(5):
        while machine.live().coming:
            await trio.sleep(0.01)


def everything(machine: Machine, held: dict[str, list[int]]) -> dict[str, tuple[Tree, list[bytes]]]:
    """All that each program sees by names, and in what it has open."""
    return {
        actor: (shown(program), [program.read_node(node) for node in held[actor]])
        for actor, program in machine.programs.items()
    }


async def test_a_second_crash_finds_what_the_first_one_left(boot: Boot) -> None:
    """The first comes when nothing that was cut is in the log yet, the second when all of it is."""
    first = await boot()
    ann, bob = first.writes("ann"), first.writes("bob")
    ann.mkdir("from")
    ann.mkdir("to")
    await first.seal()
    first.tasks.cancel()
    held = ann.create("from/held")
    await bob.save("x", b"")
    ann.rename("from/held", "to/held")
    ann.rmdir("from")
    await bob.save("y", b"")
    first.crash()
    second = await boot(crashed=first)
    await written(second)
    second.crash()
    third = await boot(crashed=second)
    assert third.recovered.skipped == ()
    again = Descriptor(third.programs["ann"], held.node, write=True)
    await again.write(b"content")
    await again.close()
    await third.seal()
    assert third.tree() == {"to": None, "to/held": b"content", "x": b"", "y": b""}


async def test_what_was_recorded_and_is_still_open_does_not_come_back_over_what_others_wrote_since(
    boot: Boot,
) -> None:
    first = await boot()
    ann, bob = first.writes("ann"), first.writes("bob")
    held = ann.create("file")
    await held.write(b"of ann")
    await held.sync()
    await bob.save("file", b"of bob")
    first.crash()
    second = await boot(crashed=first)
    assert second.programs["ann"].read("file") == b"of bob"
    await Descriptor(second.programs["ann"], held.node, write=True).close()
    await second.seal()
    assert second.tree() == {"file": b"of bob"}


@pytest.mark.parametrize("asking", [False, True])
async def test_what_came_to_nothing_is_not_done_again_over_a_call_that_came_later(
    boot: Boot, *, asking: bool
) -> None:
    first = await boot()
    ann = first.asks("ann") if asking else first.writes("ann")
    ann.create("open")  # which keeps the journal
    await ann.save("file", b"for a moment")
    ann.unlink("file")
    await call(first, Create("file", "of a tool"))
    first.crash()
    second = await boot(crashed=first)
    assert second.programs["ann"].read("file") == b"of a tool"
    await second.seal()
    assert second.tree() == {"file": b"of a tool"}


async def test_what_asks_keeps_a_file_that_has_its_own_name_in_a_directory_nobody_looked_at(
    boot: Boot,
) -> None:
    first = await boot()
    bob, asks = first.writes("bob"), first.asks("cat")
    bob.mkdir("looked at")
    await bob.save("looked at/file", b"first")
    asks.mkdir("other")
    await asks.save("looked at/open~", b"")  # which the next worker looks at
    asks.link("looked at/file", "other/name")
    await first.seal()
    await bob.save("looked at/file", b"second")
    first.crash()
    second = await boot(crashed=first)
    again = second.programs["cat"]
    assert (again.read("looked at/file"), again.read("other/name")) == (b"first", b"first")


async def work(chance: random.Random, machine: Machine, held: dict[str, list[int]], steps: int) -> None:
    """Programs do what they do; now and then something is sealed, or nothing gets to the log any more."""
    for number in range(steps):
        actor = chance.choice(list(held))
        program, nodes = machine.programs[actor], held[actor]
        with contextlib.suppress(EngramError, PosixError):
            match chance.randrange(12):
                case 0:
                    nodes.append(program.create(f"{somewhere(chance, program)} open").node)
                case 1:
                    await program.save(f"{somewhere(chance, program)}~", b"transient %d" % number)
                case 2 if nodes:
                    await Descriptor(program, chance.choice(nodes), write=True).write(b"held %d" % number)
                case 3 if nodes:
                    node = nodes.pop(chance.randrange(len(nodes)))
                    await Descriptor(program, node, write=True).close()
                case 4:
                    machine.live().cut()
                case 5 if not machine.tasks.cancel_called:
                    await machine.seal()
                case 6 if chance.random() < 0.2:
                    machine.tasks.cancel()
                case 7 if not machine.tasks.cancel_called:
                    await program.save(somewhere(chance, program), b"%d" % number * LARGE)
                case _:
                    await act(chance, program, number)


@pytest.mark.parametrize("seed", [*range(6), 77, 193, 213])
async def test_what_every_program_sees_goes_on_over_crash_after_crash(boot: Boot, seed: int) -> None:
    chance = random.Random(seed)
    machine = await boot()
    held: dict[str, list[int]] = {actor: [] for actor in ACTORS}
    for actor in ACTORS[:2]:
        machine.writes(actor)
    machine.asks(ACTORS[2])
    for _ in range(6):
        await work(chance, machine, held, chance.randrange(25))
        before = everything(machine, held)
        machine.crash()
        machine = await boot(crashed=machine)
        assert machine.recovered.skipped == ()
        assert everything(machine, held) == before
        if chance.random() < 0.5:
            await written(machine)
    for actor, nodes in held.items():
        for node in nodes:
            await Descriptor(machine.programs[actor], node, write=True).close()
    await machine.seal()
    assert machine.tree() == shown(machine.reads())
    asks = machine.programs[ACTORS[2]]
    assert machine.fork_tree(machine.live_fork(asks).store) == {
        path: content for path, content in shown(asks).items() if not path.endswith("~")
    }
