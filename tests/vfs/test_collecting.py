"""What comes into use while a collection goes on is not removed by it."""

import hashlib
import os
from collections.abc import Callable
from functools import partial

import pytest
import trio

from engramfs.history.collection import slices
from engramfs.history.collection.marking import Marks, mark, unneeded
from engramfs.storage import blobs
from engramfs.storage.protocol import Writer
from engramfs.vfs.collecting import note_unrecorded

from .machine import Machine

LARGE = os.urandom(200_000)
SMALL = b"small enough to ride in the journal"


class Collection:
    """The steps of one, taken one by one."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._in_use = machine.filesystem.resources.in_use

    async def begin(self) -> None:
        with self._machine.repository.engine.reading() as reader:
            self._in_use.begin(reader)
        await self._machine.seal()
        self._machine.filesystem.compact_journal()
        await note_unrecorded(self._machine.filesystem)

    def marks(self) -> Marks:
        return mark(self._machine.repository.engine, lambda _: None)

    async def sweep(self, marks: Marks) -> int:
        digests = unneeded(self._machine.repository.engine, marks, lambda _: None)
        return await self._machine.writer.run(partial(slices.sweep, digests=digests, in_use=self._in_use))


@pytest.fixture
def collection(machine: Machine) -> Collection:
    return Collection(machine)


async def leave_unneeded(machine: Machine, content: bytes) -> None:
    """The content is a blob, and nothing names it."""
    digest = hashlib.sha256(content).digest()
    await machine.writer.run(partial(blobs.put_bytes, digest=digest, content=content))


def is_there(machine: Machine, content: bytes) -> bool:
    with machine.repository.engine.reading() as reader:
        return blobs.exists(reader, hashlib.sha256(content).digest())


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
async def test_bytes_that_are_written_again_after_the_marks_were_made_stay(
    machine: Machine, collection: Collection, content: bytes
) -> None:
    program = machine.writes()
    await leave_unneeded(machine, content)
    await leave_unneeded(machine, b"nobody needs this")
    await collection.begin()
    marks = collection.marks()
    await program.save("file", content)
    assert await collection.sweep(marks) == 1
    await machine.seal()
    assert program.read("file") == content
    assert not is_there(machine, b"nobody needs this")


async def test_so_do_those_that_were_sealed_before_the_sweep(
    machine: Machine, collection: Collection
) -> None:
    program = machine.writes()
    await leave_unneeded(machine, LARGE)
    await collection.begin()
    marks = collection.marks()
    await program.save("file", LARGE)
    await machine.seal()
    assert await collection.sweep(marks) == 0
    assert program.read("file") == LARGE


async def test_transient_files_and_files_without_a_name_keep_their_contents(
    machine: Machine, collection: Collection
) -> None:
    program = machine.writes()
    await program.save(".file.swp", LARGE)
    await program.save("gone", LARGE[::-1])
    held = program.open("gone", write=False)
    program.unlink("gone")
    await collection.begin()
    await collection.sweep(collection.marks())
    assert program.read(".file.swp") == LARGE
    assert program.read_node(held.node) == LARGE[::-1]
    await held.close()


async def test_what_the_journal_names_is_there_after_a_crash(
    machine: Machine, collection: Collection, boot: Callable[..., object]
) -> None:
    program = machine.writes()
    await leave_unneeded(machine, LARGE)
    await collection.begin()
    marks = collection.marks()
    await program.save("file", LARGE)
    await program.save("file", SMALL)
    await collection.sweep(marks)
    machine.crash()
    machine.check_soundness()


async def test_a_name_that_is_claimed_and_not_recorded_yet_is_passed_over(
    machine: Machine, collection: Collection
) -> None:
    in_use = machine.filesystem.resources.in_use
    digest = hashlib.sha256(LARGE).digest()
    await leave_unneeded(machine, LARGE)
    await collection.begin()
    marks = collection.marks()
    with in_use.holding(digest):
        assert await collection.sweep(marks) == 0
    await collection.begin()
    assert await collection.sweep(collection.marks()) == 1


async def test_the_base_of_a_delta_that_came_into_use_stays_with_it(
    machine: Machine, collection: Collection
) -> None:
    old, new = LARGE, LARGE + b"more"
    digests = [hashlib.sha256(content).digest() for content in (old, new)]

    def put(writer: Writer) -> None:
        blobs.put_bytes(writer, digests[1], new)
        blobs.put_bytes(writer, digests[0], old)
        row = slices.Recode(digests[0], 0, digests[1], blobs.pack_delta(old, new))
        in_use = type(machine.filesystem.resources.in_use)()
        in_use.begin(writer)
        assert slices.recode(writer, [row], in_use) == 1

    await machine.writer.run(put)
    await collection.begin()
    marks = collection.marks()
    machine.filesystem.resources.in_use.note(digests[0])
    assert await collection.sweep(marks) == 0
    with machine.repository.engine.reading() as reader:
        assert blobs.read(reader, digests[0], len(old)) == old


async def test_what_waits_for_a_decision_stays(machine: Machine, collection: Collection) -> None:
    program = machine.asks()
    await program.save("offered", LARGE)
    await machine.seal()
    program.unlink("offered")
    await program.save("other", SMALL)
    await machine.seal()
    await leave_unneeded(machine, b"nobody needs this")
    await collection.begin()
    assert await collection.sweep(collection.marks()) == 1
    assert program.read("other") == SMALL
    assert is_there(machine, LARGE)


async def test_a_slice_waits_for_who_may_name_anything(machine: Machine, collection: Collection) -> None:
    in_use = machine.filesystem.resources.in_use
    await collection.begin()
    with in_use.naming():
        with in_use.naming():
            pass
        named = in_use.is_anything_named
    assert (named, in_use.is_anything_named) == (True, False)


async def test_without_a_collection_nothing_is_noted(machine: Machine) -> None:
    program = machine.writes()
    await program.save("file", SMALL)
    await trio.lowlevel.checkpoint()
    in_use = machine.filesystem.resources.in_use
    assert not in_use.is_collected
    assert hashlib.sha256(b"anything").digest() in in_use  # nothing may be removed
