"""What the writer of the next version says that it is about."""

import pytest

from engramfs.errors import InvalidArgument, NoAttribute, NotPermitted, ReadOnly
from engramfs.history import catalog, log
from engramfs.model.author import Author
from engramfs.model.entry import ROOT_NODE
from engramfs.model.operation import Note

from .conftest import Boot
from .machine import STORE, Machine, Program

MESSAGE = b"user.engramfs.message"
ROOT = Author("person", actor="root")


def messages(machine: Machine) -> list[str]:
    """Of every version, oldest first."""
    with machine.repository.engine.reading() as reader:
        found = log.versions(reader, catalog.named(reader, STORE).id)
        return [version.message for version in found][::-1]


def say(program: Program, text: bytes) -> None:
    program.view.set_xattr(ROOT_NODE, MESSAGE, text)


def waiting(program: Program) -> bytes:
    return program.view.get_xattr(ROOT_NODE, MESSAGE)


async def test_the_next_version_of_the_author_has_it_and_no_other(machine: Machine) -> None:
    ann, bob = machine.writes("ann"), machine.writes("bob")
    say(ann, "what ann learned: ü\n".encode())
    assert waiting(ann) == "what ann learned: ü".encode()
    with pytest.raises(NoAttribute):
        waiting(bob)
    await bob.save("bob", b"1")
    await ann.save("ann", b"1")
    await machine.seal()
    await ann.save("ann", b"2")
    await machine.seal()
    assert messages(machine) == ["", "what ann learned: ü", ""]
    with pytest.raises(NoAttribute):
        waiting(ann)


async def test_it_may_be_said_while_the_batch_is_open(machine: Machine) -> None:
    ann = machine.writes("ann")
    await ann.save("a", b"1")
    say(ann, b"first")
    say(ann, b"second")
    await ann.save("b", b"1")
    await machine.seal()
    assert messages(machine) == ["second"]


async def test_it_waits_for_a_version_and_a_batch_that_cancels_out_makes_none(machine: Machine) -> None:
    ann = machine.writes("ann")
    say(ann, b"about b")
    await machine.seal()
    await ann.save("a", b"1")
    ann.unlink("a")
    await machine.seal()
    assert messages(machine) == []
    await ann.save("b", b"1")
    await machine.seal()
    assert messages(machine) == ["about b"]


async def test_an_empty_one_and_removing_it_take_it_back(machine: Machine) -> None:
    ann = machine.writes("ann")
    say(ann, b"wrong")
    say(ann, b" \n")
    with pytest.raises(NoAttribute):
        ann.view.remove_xattr(ROOT_NODE, MESSAGE)
    say(ann, b"wrong")
    ann.view.remove_xattr(ROOT_NODE, MESSAGE)
    await ann.save("a", b"1")
    await machine.seal()
    assert messages(machine) == [""]


async def test_what_is_no_message_is_refused(machine: Machine) -> None:
    ann = machine.writes("ann")
    await ann.save("a", b"1")
    for value in (b"x" * 4097, b"\xff", b"a\0b"):
        with pytest.raises(InvalidArgument):
            say(ann, value)
    say(ann, b"x" * 4096)
    with pytest.raises(NotPermitted):
        ann.view.set_xattr(ann.node("a"), MESSAGE, b"on a file")
    with pytest.raises(ReadOnly):
        say(machine.reads(), b"from a reader")


async def test_a_persons_goes_to_whatever_comes_next(machine: Machine) -> None:
    ann, bob = machine.writes("ann"), machine.writes("bob")
    await ann.save("a", b"1")
    machine.live().record(0, ROOT, Note("before the change"))
    say(bob, b"bob's")
    await ann.save("b", b"1")
    await bob.save("c", b"1")
    await machine.seal()
    assert messages(machine) == ["before the change", "bob's"]


async def test_it_goes_with_the_session(machine: Machine) -> None:
    ann = machine.writes("ann")
    say(ann, b"never used")
    machine.filesystem.end(ann.view)
    assert machine.live().is_idle


async def test_it_survives_a_crash_with_the_batch_that_it_is_of(boot: Boot) -> None:
    machine = await boot()
    ann, bob = machine.writes("ann"), machine.writes("bob")
    say(ann, b"about a")
    await bob.save("b", b"1")
    await machine.seal()  # the message is stated anew after what is sealed now
    await ann.save("a", b"1")
    machine.crash()
    again = await boot()
    assert messages(again) == ["", "about a"]
    assert again.recovered.skipped == ()


async def test_one_that_no_version_took_is_reported_when_everything_ended(boot: Boot) -> None:
    machine = await boot()
    say(machine.writes("ann"), b"about nothing")
    machine.crash()
    again = await boot()
    [said] = again.recovered.skipped
    assert "'about nothing'" in said
    assert messages(again) == []


async def test_one_that_waits_for_long_does_not_fill_the_journal(boot: Boot) -> None:
    machine = await boot(journal_bytes=400_000)
    ann, bob = machine.writes("ann"), machine.writes("bob")
    say(ann, b"later")
    for number in range(40):
        await bob.save("b", b"%d" % number * 10_000)
        await machine.seal()
    await ann.save("a", b"1")
    machine.crash()
    again = await boot()
    assert messages(again)[-1] == "later"
