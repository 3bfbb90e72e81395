"""Where a worker died, the next one goes on, with all that was open; and if that dies too, the one after."""

import trio

from .conftest import Boot
from .machine import Descriptor, Machine


async def written(machine: Machine) -> None:
    """Wait until what was cut is in the log; what is open stays so."""
    with trio.fail_after(5):
        while machine.live().coming:
            await trio.sleep(0.01)


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
