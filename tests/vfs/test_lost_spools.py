"""After everything was killed: what was written and not closed is lost, and named."""

import os

from engramfs.history.repository import Repository
from engramfs.vfs.lost_spools import LostFile, described
from engramfs.vfs.recovery import recover
from engramfs.vfs.view_numbers import Key

from .conftest import Boot
from .machine import STORE, Machine


def lost(machine: Machine, views: dict[int, Key] | None = None) -> list[LostFile]:
    """What a fresh start over the state of a machine finds; `views` are those that it still knows."""
    machine.crash()
    with Repository.open(machine.state, write="the tests") as repository:
        known = dict(machine.numbers.items()) if views is None else views
        return sorted(recover(repository, views=known).lost)


async def test_what_was_not_closed_is_named_with_its_store_and_session(boot: Boot) -> None:
    machine = await boot()
    ann, bob = machine.writes("ann"), machine.writes("bob")
    ann.mkdir("d")
    for name in ("d/sealed", "read", "synced"):
        await ann.save(name, b"before")
    await machine.seal()
    await ann.save("journaled", b"before")
    for program, name in ((ann, "d/sealed"), (bob, "journaled"), (bob, "synced"), (ann, "read")):
        file = program.open(name)
        if name != "read":
            await file.write(b"and more", 3)
        if name == "synced":
            await file.sync()
    created = ann.create("new\udcff")
    await created.write(b"bytes")
    ann.create("empty")
    ann.rename("d", "e")
    found = lost(machine)
    assert found == [
        LostFile(STORE, "ann", False, "e/sealed"),
        LostFile(STORE, "ann", False, "new\udcff"),
        LostFile(STORE, "bob", False, "journaled"),
    ]
    assert list(described(found)) == [
        (STORE, "dropped what session ann had written to e/sealed, new\udcff and not closed"),
        (STORE, "dropped what session bob had written to journaled and not closed"),
    ]


async def test_what_has_no_name_any_more_or_was_recorded_is_not_lost(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes("ann")
    await ann.save("removed", b"before")
    removed, kept = ann.open("removed"), ann.create("kept")
    await removed.write(b"bytes")
    ann.unlink("removed")
    await kept.write(b"bytes")
    await kept.close()
    assert lost(machine) == []


async def test_what_waits_for_approval_is_named_by_the_store_that_it_is_for(boot: Boot) -> None:
    machine = await boot()
    ann = machine.asks("ann")
    file = ann.create("draft")
    await file.write(b"bytes")
    assert lost(machine) == [LostFile(STORE, "ann", False, "draft")]


async def test_a_close_that_found_no_room_is_said_to_be_one(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes("ann")
    await ann.create("file").write(b"bytes")
    [spool] = os.listdir(f"{machine.state}/spool")
    os.chmod(f"{machine.state}/spool/{spool}", 0o640)
    found = lost(machine)
    assert found == [LostFile(STORE, "ann", True, "file")]
    assert [what for _, what in described(found)] == [
        "dropped what session ann had written to file and closed: there was no room to record it"
    ]


async def test_without_the_run_directory_as_much_is_said_as_is_known(boot: Boot) -> None:
    machine = await boot()
    await machine.writes("ann").create("file").write(b"bytes")
    open(f"{machine.state}/spool/of somebody else", "w").close()
    found = lost(machine, {})
    assert found == [LostFile("", "", False, "")]
    who, what = "a session that is not known any more", "a file whose name is not known any more"
    assert list(described(found)) == [("", f"dropped what {who} had written to {what} and not closed")]
