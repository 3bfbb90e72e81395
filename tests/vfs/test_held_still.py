"""While a commit from outside is under way nothing is recorded, and the live tree takes the commit over."""

import random
import time
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio

from engramfs.errors import AlreadyExists, Busy, EngramError
from engramfs.history import commit, edit
from engramfs.history.commit import Commit
from engramfs.model.author import Author
from engramfs.model.file_edit import Append, Create, Delete, Edit, FileEdit, Overwrite, Rename
from engramfs.model.version import Version
from engramfs.storage.protocol import Writer
from engramfs.vfs.held_still import HeldStill

from .machine import Machine, Program

TOOL = Author("agent", agent="digest", actor="tool", session="tool")


async def call(machine: Machine, *edits: FileEdit) -> None:
    """As a tool's call goes: whole, in one transaction, while no view records anything."""
    live = machine.live()
    async with live.held_still() as held:
        first = live.tree.set_aside(edit.nodes_needed(edits))

        def body(writer: Writer) -> tuple[Commit, Version | None]:
            planned = edit.plan(
                writer,
                live.store,
                edits,
                author=TOOL,
                via="tool",
                now=time.time_ns(),
                first_node=first,
                held=held,
            ).commit
            return planned, commit.apply(writer, planned)

        live.absorb(*await machine.writer.run(body))


async def test_the_views_show_a_call_at_once_and_it_knows_what_was_acknowledged(machine: Machine) -> None:
    ann = machine.writes("ann")
    await ann.save("file", b"ann\n")
    await call(machine, Append("file", "tool\n"), Create("new/deep", "x"))
    assert ann.read("file") == b"ann\ntool\n"
    assert ann.read("new/deep") == b"x"
    assert [version.author for version in machine.versions()] == ["ann", "tool"]


async def test_no_view_records_anything_meanwhile(machine: Machine) -> None:
    ann = machine.writes("ann")
    async with machine.live().held_still():
        with pytest.raises(HeldStill):
            ann.mkdir("d")
    ann.mkdir("d")


async def test_a_release_that_had_to_wait_closes_the_file_only_when_it_is_done(machine: Machine) -> None:
    ann = machine.writes("ann")
    mine = ann.create("file")
    await mine.write(b"late")
    async with machine.live().held_still():
        with pytest.raises(HeldStill):
            await ann.view.release(mine.node)
        other = ann.open("file")
    await ann.view.release(mine.node)
    await other.write(b"more", 4)  # its bytes were not given up with the first descriptor
    await other.close()
    assert ann.read("file") == b"latemore"


async def test_a_file_that_a_mount_has_just_created_is_not_taken_from_it(machine: Machine) -> None:
    ann = machine.writes("ann")
    ann.mkdir("d")
    mine = ann.create("d/file")
    with pytest.raises(Busy, match="d/file is being written in a mount"):
        await call(machine, Create("d/file", "mine"))
    with pytest.raises(Busy):
        await call(machine, Delete("d", recursive=True))
    await mine.write(b"ann")
    await mine.close()
    with pytest.raises(AlreadyExists):
        await call(machine, Create("d/file", "mine"))
    assert ann.read("d/file") == b"ann"


async def test_what_was_written_to_a_file_that_a_call_deleted_is_kept_and_said(machine: Machine) -> None:
    ann = machine.writes("ann")
    await ann.save("file", b"1")
    mine = ann.open("file")
    await mine.write(b"lost?")
    await call(machine, Delete("file"))
    await mine.close()
    await machine.seal()
    assert any("file was closed after another author removed" in failure for failure in machine.failures())
    assert machine.pending() == [(1, "open", ["created file"])]


async def test_a_later_close_over_a_call_is_flagged_and_names_its_version(machine: Machine) -> None:
    ann = machine.writes("ann")
    await ann.save("file", b"1")
    mine = ann.open("file", truncate=True)
    await mine.write(b"ann")
    await call(machine, Overwrite("file", "tool"))
    await mine.close()
    await machine.seal()
    last = machine.versions()[-1]
    assert (last.flags, last.overwrites) == (("concurrent",), (2,))


async def settled(act: Callable[[], Awaitable[None]]) -> None:
    """As the guard of the handlers does it."""
    while True:
        try:
            return await act()
        except HeldStill as held:
            await held.until.wait()


async def test_mounts_and_tools_that_race_for_the_same_names_leave_a_sound_log(machine: Machine) -> None:
    """The fixture verifies the log: counts, rows, links and chain."""
    names = ["a", "b", "d/a", "d/b"]
    chance = random.Random(5)

    async def step(ann: Program, name: str, what: int) -> None:
        if name.startswith("d/") and not ann.exists("d"):
            ann.mkdir("d")
        if what < 5:
            await ann.save(name, chance.randbytes(chance.randrange(2000)))
        elif ann.exists(name) and what < 7:
            ann.unlink(name)
        elif ann.exists(name) and not ann.exists("linked"):
            ann.link(name, "linked")
        elif ann.exists("linked"):
            ann.unlink("linked")

    async def mount(actor: str) -> None:
        ann = machine.writes(actor)
        while not ended.is_set():
            await settled(partial(step, ann, chance.choice(names), chance.randrange(10)))
            await trio.sleep(chance.choice([0, 0, 0.001]))

    async def tool() -> None:
        for count in range(200):
            name, other = chance.sample(names, 2)
            edits: list[FileEdit] = [
                Overwrite(name, "x" * chance.randrange(2000)),
                Append(name, "more"),
                Edit(name, "x", "y"),
                Delete(name),
                Rename(name, other),
                Delete("d", recursive=True),
                Create(f"d/{count}", "new"),
            ]
            try:
                await call(machine, *chance.sample(edits, 2))
                done.append(count)
            except EngramError:
                await trio.sleep(0)
        ended.set()

    ended = trio.Event()
    done: list[int] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(mount, "ann")
        nursery.start_soon(mount, "bob")
        nursery.start_soon(tool)
    assert len(done) > 20
