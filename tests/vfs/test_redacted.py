"""What was redacted is shown by no view any more, and the kernel is told to ask again."""

import hashlib

import pytest

from engramfs.errors import NoEntry, NotFound, Redacted, Refused
from engramfs.history import approval, catalog
from engramfs.history.directory_redaction import redact_directory
from engramfs.history.pending_redaction import redact_pending
from engramfs.history.redaction import redact
from engramfs.history.redaction_rows import Removed
from engramfs.model.author import Author
from engramfs.model.entry import NODE_BITS, NODE_MASK
from engramfs.storage.protocol import Table
from engramfs.vfs.redacted import drop_redacted

from .machine import STORE, Machine, Program

SECRET = b"the password is hunter2"
PERSON = Author("person", actor="root")


@pytest.fixture
async def written(machine: Machine) -> Machine:
    """Version 1 has the secret twice, version 2 has neither."""
    program = machine.writes()
    await program.save("kept", SECRET)
    await program.save("gone", SECRET + b"!")
    await machine.seal()
    await program.save("kept", b"clean")
    program.unlink("gone")
    await machine.seal()
    return machine


def take_out(machine: Machine, path: bytes) -> Removed:
    removed = redact(machine.repository, STORE, 1, path, PERSON, "a secret", 5)
    drop_redacted(machine.filesystem, removed)
    return removed


def nodes_told(machine: Machine, program: Program) -> set[int]:
    told = {inode for inode, content in machine.invalidator.inodes if content}
    return {inode & NODE_MASK for inode in told if inode >> NODE_BITS == program.view.number}


async def test_a_pinned_view_looks_again_and_so_does_the_kernel(written: Machine) -> None:
    pinned = written.reads_version(1)
    assert (pinned.read("kept"), pinned.read("gone")) == (SECRET, SECRET + b"!")
    nodes = {pinned.node("kept"), pinned.node("gone")}
    written.invalidator.clear()
    take_out(written, b"kept")
    take_out(written, b"gone")
    assert nodes_told(written, pinned) == nodes
    assert {name for _, name in written.invalidator.entries} == {b"kept", b"gone"}
    with pytest.raises(Redacted):
        pinned.read("kept")
    with pytest.raises(Redacted):
        pinned.read_node(min(nodes))
    with pytest.raises(NoEntry):
        pinned.read("gone")
    assert pinned.stat("kept").size == len(SECRET)


async def test_a_view_of_another_version_is_left_alone(written: Machine) -> None:
    newer = written.reads_version(2)
    assert newer.read("kept") == b"clean"
    written.invalidator.clear()
    take_out(written, b"kept")
    assert nodes_told(written, newer) == set()
    assert newer.read("kept") == b"clean"


async def test_a_large_content_that_was_read_before_is_not_kept_in_memory(machine: Machine) -> None:
    program = machine.writes()
    await program.save("kept", SECRET * 20_000)
    await machine.seal()
    await program.save("kept", b"clean")
    await machine.seal()
    pinned = machine.reads_version(1)
    node = pinned.node("kept")
    assert pinned.read_node(node) == SECRET * 20_000
    take_out(machine, b"kept")
    with pytest.raises(Redacted):
        pinned.read_node(node)


async def test_what_was_pending_is_redacted_once_it_is_decided(machine: Machine) -> None:
    asking = machine.asks()
    await asking.save("offered", SECRET)
    await machine.seal()

    def take_out_pending() -> Removed:
        return redact_pending(machine.repository, STORE, 1, b"offered", PERSON, "a secret", 5)

    with pytest.raises(Refused, match="pending reject"):
        take_out_pending()
    with machine.repository.engine.reading() as reader:
        store = catalog.named(reader, STORE)
    machine.repository.transact(lambda writer: approval.reject(writer, store, 1, PERSON, 6, "no"))
    removed = take_out_pending()
    assert (len(removed.versions), removed.changes) == (1, 1)
    digest = hashlib.sha256(SECRET).digest()
    with machine.repository.engine.reading() as reader:
        left = [
            table
            for table in Table
            if table is not Table.BLOBS
            for key, value in reader.scan(table, b"", b"\xff" * 20)
            if digest in value or b"offered" in key or b"offered" in value
        ]
    assert left == []
    with pytest.raises(NotFound):
        take_out_pending()


async def test_the_name_of_a_directory_goes_from_what_was_pending_too(machine: Machine) -> None:
    asking = machine.asks()
    asking.mkdir("hunter2")
    await asking.save("hunter2/offered", b"text")
    await machine.seal()
    program = machine.writes()
    program.mkdir("hunter2")
    await program.save("hunter2/written", b"text")
    await machine.seal()
    program.rename("hunter2", "clean")
    await machine.seal()

    def take_out_name() -> Removed:
        return redact_directory(machine.repository, STORE, 1, b"hunter2", PERSON, "a secret", 5)

    with pytest.raises(Refused, match=f"first: engramfs pending reject {STORE} 1 --reason TEXT"):
        take_out_name()
    with machine.repository.engine.reading() as reader:
        store = catalog.named(reader, STORE)
    machine.repository.transact(lambda writer: approval.reject(writer, store, 1, PERSON, 6, "no"))
    take_out_name()
    with machine.repository.engine.reading() as reader:
        assert not any(
            b"hunter2" in key + value
            for table in Table
            for key, value in reader.scan(table, b"", b"\xff" * 20)
        )
