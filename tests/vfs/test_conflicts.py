"""Two writers of one file, in different views."""

import hashlib
import os

import pytest

from engramfs.errors import Conflict, Stale
from engramfs.history import catalog, commit, restore
from engramfs.model.author import SYSTEM
from engramfs.storage import blobs
from engramfs.storage.protocol import Writer

from .machine import STORE, Machine, Program

REFUSES = "memory/digest/refuses"


@pytest.fixture
async def both(machine: Machine) -> tuple[Program, Program]:
    """Ann and Bob, with a file that is in version 1."""
    ann, bob = machine.writes("ann"), machine.writes("bob")
    await ann.save("file", b"one\n")
    await machine.seal()
    return ann, bob


async def test_two_who_append_both_keep_their_lines(machine: Machine, both: tuple[Program, Program]) -> None:
    ann, bob = both
    mine, theirs = ann.open("file"), bob.open("file")
    await mine.append(b"ann\n")
    await theirs.append(b"bob\n")
    await mine.close()
    await theirs.close()
    assert ann.read("file") == bob.read("file") == b"one\nann\nbob\n"
    await machine.seal()
    assert [(version.author, version.flags) for version in machine.versions()[1:]] == [
        ("ann", ()),
        ("bob", ()),
    ]
    assert machine.tree(2) == {"file": b"one\nann\n"}
    assert machine.tree(3) == {"file": b"one\nann\nbob\n"}


async def test_appends_to_a_large_file_are_merged_likewise(
    machine: Machine, both: tuple[Program, Program]
) -> None:
    ann, bob = both
    base = os.urandom(2_500_000)
    await ann.save("large", base)
    mine, theirs = ann.open("large"), bob.open("large")
    await mine.append(b"a" * 100_000)
    await theirs.append(b"b" * 200_000)
    await mine.close()
    await theirs.close()
    assert ann.read("large") == base + b"a" * 100_000 + b"b" * 200_000


async def test_an_appender_goes_on_after_its_lines_were_merged(
    machine: Machine, both: tuple[Program, Program]
) -> None:
    ann, bob = both
    mine, theirs = ann.open("file"), bob.open("file")
    for number in range(3):
        await mine.append(b"ann %d\n" % number)
        await theirs.append(b"bob %d\n" % number)
        await mine.close_duplicate()
        await theirs.close_duplicate()
    await mine.close()
    await theirs.close()
    lines = ann.read("file").splitlines()
    assert sorted(lines[1:]) == sorted(
        b"%s %d" % (who, number) for who in (b"ann", b"bob") for number in range(3)
    )


async def test_an_append_goes_to_the_end_though_the_kernel_does_not_know_yet_where_that_is(
    machine: Machine, both: tuple[Program, Program]
) -> None:
    ann, bob = both
    end = ann.stat("file").size
    await bob.append("file", b"bob\n")
    opened = ann.open("file")
    machine.invalidator.clear()
    await ann.view.write(opened.node, end, b"ann\n", at_end=True)
    await opened.close()
    assert bob.read("file") == b"one\nbob\nann\n"
    assert (ann.stat("file").inode, True) in machine.invalidator.inodes


async def test_merging_tells_the_kernel_that_the_pages_of_the_appender_are_void(
    machine: Machine, both: tuple[Program, Program]
) -> None:
    ann, bob = both
    theirs = bob.open("file")
    await theirs.append(b"bob\n")
    await ann.append("file", b"ann\n")
    machine.invalidator.clear()
    await theirs.close()
    assert (bob.stat("file").inode, True) in machine.invalidator.inodes


async def test_otherwise_the_later_close_wins_and_says_which_version_it_overwrote(
    machine: Machine, both: tuple[Program, Program]
) -> None:
    ann, bob = both
    mine = ann.open("file", truncate=True)
    await mine.write(b"ann\n")
    await bob.save("file", b"bob\n")
    await mine.close()
    await machine.seal()
    first, second = machine.versions()[1:]
    assert (first.author, first.flags, first.overwrites) == ("bob", (), ())
    assert (second.author, second.flags, second.overwrites) == ("ann", ("concurrent",), (2,))
    assert machine.tree() == {"file": b"ann\n"}
    assert machine.tree(2) == {"file": b"bob\n"}
    assert machine.failures() == ["version 3 overwrote version 2 (concurrent)"]
    assert "version 3 overwrote version 2 (concurrent)" in bob.read(".versions/status").decode()


async def test_a_version_that_was_sealed_long_before_is_named_too(
    machine: Machine, both: tuple[Program, Program]
) -> None:
    ann, bob = both
    mine = ann.open("file", truncate=True)
    await mine.write(b"ann\n")
    await bob.save("file", b"bob\n")
    await machine.seal()
    await bob.save("other", b"")
    await machine.seal()
    await mine.close()
    await machine.seal()
    assert machine.versions()[-1].overwrites == (2,)


async def test_a_version_that_a_restore_made_is_named(
    machine: Machine, both: tuple[Program, Program]
) -> None:
    ann, bob = both
    await bob.save("file", b"bob\n")
    await machine.seal()
    mine = ann.open("file")
    await mine.write(b"ANN")

    def body(writer: Writer) -> None:
        planned = restore.plan(writer, catalog.named(writer, STORE), 1, None, SYSTEM, 2 * 10**18)
        machine.filesystem.absorb(planned, commit.apply(writer, planned))

    await machine.writer.run(body)
    await mine.close()
    await machine.seal()
    last = machine.versions()[-1]
    assert (last.flags, last.overwrites) == (("concurrent",), (3,))


async def test_two_who_write_the_same_do_not_conflict(
    machine: Machine, both: tuple[Program, Program]
) -> None:
    ann, bob = both
    mine = ann.open("file", truncate=True)
    await mine.write(b"same\n")
    await bob.save("file", b"same\n")
    await mine.close()
    await machine.seal()
    assert [version.flags for version in machine.versions()] == [(), ()]


async def test_who_had_opened_before_the_close_of_another_conflicts_even_if_it_writes_after(
    machine: Machine, both: tuple[Program, Program]
) -> None:
    ann, bob = both
    idle = ann.open("file")
    await bob.save("file", b"bob\n")
    await idle.write(b"ANN")
    await idle.close()
    await machine.seal()
    assert machine.tree() == {"file": b"ANN\n"}
    assert machine.versions()[-1].flags == ("concurrent",)


@pytest.mark.parametrize("size", [5, 100_000])
async def test_a_store_that_refuses_answers_the_later_close_with_estale_and_keeps_the_content(
    machine: Machine, size: int
) -> None:
    machine.create_store(REFUSES, conflicts="refuse")
    ann, bob = machine.writes("ann", REFUSES), machine.writes("bob", REFUSES)
    await ann.save("file", b"one")
    mine = ann.open("file", truncate=True)
    await mine.write(b"a" * size)
    await bob.save("file", b"bob")
    with pytest.raises(Stale):
        await mine.close()
    assert ann.read("file") == bob.read("file") == b"bob"
    await machine.seal()
    assert machine.tree(store=REFUSES) == {"file": b"bob"}
    digest = hashlib.sha256(b"a" * size).digest()
    with machine.repository.engine.reading() as reader:
        assert blobs.read(reader, digest, size) == b"a" * size
    [failure] = machine.failures()
    assert failure == (
        "refused to overwrite file, which another author changed; what was written waits as pending 1"
    )
    assert failure in ann.read(".versions/status").decode()
    assert machine.pending(REFUSES) == [(1, "open", ["modified file"])]
    assert ann.read(".versions/pending/1/file") == b"a" * size


async def test_what_was_refused_can_be_approved_merged_or_rejected_each_by_itself(machine: Machine) -> None:
    machine.create_store(REFUSES, conflicts="refuse")
    ann, bob = machine.writes("ann", REFUSES), machine.writes("bob", REFUSES)
    await ann.save("file", b"one\ntwo\nthree\n")
    await machine.seal()
    for word in (b"ONE\ntwo\nthree\n", b"1\ntwo\nthree\n"):
        mine = ann.open("file", truncate=True)
        await mine.write(word)
        await bob.append("file", b"bob\n")
        await bob.save("file", bob.read("file").replace(b"three", b"THREE"))
        with pytest.raises(Stale):
            await mine.close()
        await machine.seal()
        await bob.save("file", b"one\ntwo\nthree\n")
        await machine.seal()
    await machine.approve(1, REFUSES)
    assert bob.read("file") == ann.read("file") == b"ONE\ntwo\nthree\n"
    assert machine.versions(REFUSES)[-1].author == "ann"
    assert machine.versions(REFUSES)[-1].flags == ("approved", "concurrent", "refused")
    with pytest.raises(Conflict, match="file cannot be merged"):
        await machine.approve(2, REFUSES, merge=True)
    await machine.reject(2, REFUSES)
    assert [state for _, state, _ in machine.pending(REFUSES)] == ["approved", "rejected"]


async def test_what_was_refused_merges_with_what_came_instead(machine: Machine) -> None:
    machine.create_store(REFUSES, conflicts="refuse")
    ann, bob = machine.writes("ann", REFUSES), machine.writes("bob", REFUSES)
    await ann.save("file", b"one\ntwo\nthree\n")
    mine = ann.open("file", truncate=True)
    await mine.write(b"ONE\ntwo\nthree\n")
    await bob.save("file", b"one\ntwo\nTHREE\n")
    with pytest.raises(Stale):
        await mine.close()
    with pytest.raises(Conflict, match="file is not what it was"):
        await machine.approve(1, REFUSES)
    await machine.approve(1, REFUSES, merge=True)
    assert ann.read("file") == b"ONE\ntwo\nTHREE\n"


async def test_a_store_that_refuses_still_merges_appends(machine: Machine) -> None:
    machine.create_store(REFUSES, conflicts="refuse")
    ann, bob = machine.writes("ann", REFUSES), machine.writes("bob", REFUSES)
    await ann.save("log", b"one\n")
    mine = ann.open("log")
    await mine.append(b"ann\n")
    await bob.append("log", b"bob\n")
    await mine.close()
    assert bob.read("log") == b"one\nbob\nann\n"


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
async def test_what_is_written_to_a_file_that_another_removed_waits(
    machine: Machine, both: tuple[Program, Program], replaced: bool
) -> None:
    ann, bob = both
    mine = ann.open("file")
    await mine.write(b"ann\n")
    if replaced:
        await bob.save_atomically("file", b"bob\n", ".tmp-1")
    else:
        bob.unlink("file")
    assert mine.read() == b"ann\n"
    await mine.close()
    await machine.seal()
    assert machine.tree() == ({"file": b"bob\n"} if replaced else {})
    if replaced:
        with pytest.raises(Conflict, match="file is not what it was"):
            await machine.approve(1)
    else:
        await machine.approve(1)
        assert ann.read("file") == bob.read("file") == machine.tree()["file"] == b"ann\n"


async def test_a_file_that_another_removed_while_it_was_open_stays_removed(
    machine: Machine, both: tuple[Program, Program]
) -> None:
    ann, bob = both
    mine = ann.open("file")
    await mine.write(b"ann\n")
    bob.unlink("file")
    assert mine.read() == b"ann\n"
    await mine.close()
    await machine.seal()
    assert machine.tree(store=STORE) == {}
