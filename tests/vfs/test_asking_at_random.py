"""Two sessions at random, one of which asks, and a person who decides: views are what the log says."""

import random
from collections.abc import Awaitable, Callable

import pytest

from engramfs.errors import Conflict, EngramError, PosixError
from engramfs.vfs.renaming import EXCHANGE

from .conftest import Boot
from .machine import Machine, Program, Tree

NAMES = ["a", "b", "c"]
STEPS = 60
Step = Callable[[random.Random, Program, int], Awaitable[None]]


def shown(program: Program, path: str = "") -> Tree:
    """Everything that a program sees, by path."""
    found: Tree = {}
    for name in program.list(path):
        where = f"{path}/{name}" if path else name
        if program.stat(where).mode & 0o40000:
            found[where] = None
            found |= shown(program, where)
        else:
            found[where] = program.read(where)
    return found


def somewhere(random: random.Random, program: Program) -> str:
    """A path that may be there: in the root, or in a directory that is."""
    directories = ["", *(path for path, content in shown(program).items() if content is None)]
    above = random.choice(directories)
    name = random.choice(NAMES)
    return f"{above}/{name}" if above else name


async def act(random: random.Random, program: Program, number: int) -> None:
    """One step of a program; what makes no sense fails, as it would for a shell."""
    path, other = somewhere(random, program), somewhere(random, program)
    match random.randrange(8):
        case 0 | 1 | 2:
            await program.save(path, b"%d\n" % number)
        case 3:
            program.mkdir(path)
        case 4:
            program.unlink(path)
        case 5:
            program.rmdir(path)
        case 6:
            program.rename(path, other)
        case 7:
            program.link(path, other)


async def move(random: random.Random, program: Program, number: int) -> None:
    """One step of a program that hardly does anything but move directories."""
    path, other = somewhere(random, program), somewhere(random, program)
    match random.randrange(8):
        case 0:
            await program.save(path, b"%d\n" % number)
        case 1:
            program.mkdir(path)
        case 2:
            program.rename(path, other, EXCHANGE)
        case _:
            program.rename(path, other)


async def decide(random: random.Random, machine: Machine) -> None:
    waiting = [number for number, state, _ in machine.pending() if state == "open"]
    if waiting:
        number = random.choice(waiting)
        if random.random() < 0.6:
            await machine.approve(number, merge=random.random() < 0.3)
        else:
            await machine.reject(number)


async def check(machine: Machine, ann: Program, bob: Program) -> None:
    await machine.seal()
    assert shown(bob) == machine.tree()
    assert shown(ann) == machine.fork_tree(machine.live_fork(ann).store)


@pytest.mark.parametrize("step", [act, move])
@pytest.mark.parametrize("seed", [*range(6), 240])
async def test_views_are_what_the_log_says(boot: Boot, machine: Machine, seed: int, step: Step) -> None:
    chance = random.Random(seed)
    ann, bob = machine.asks("ann"), machine.writes("bob")
    for name in NAMES if step is move else []:
        bob.mkdir(name)
        await bob.save(f"{name}/{name}", b"first\n")
    fork = machine.live_fork(ann).store.id
    for number in range(STEPS):
        try:
            if chance.random() < 0.15:
                await decide(chance, machine)
            else:
                await step(chance, chance.choice([ann, bob]), number)
        except (PosixError, Conflict):
            continue
        except EngramError:
            raise
        if chance.random() < 0.3:
            await check(machine, ann, bob)
    await check(machine, ann, bob)
    assert machine.live().is_idle
    before = shown(ann)
    machine.crash()
    again = await boot(state=machine.state)
    assert shown(again.asks("ann", fork=fork)) == before
