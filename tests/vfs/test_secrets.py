"""What looks like a secret is flagged in its version; a store that refuses secrets keeps nothing of one."""

import hashlib
from pathlib import Path

import pytest

from engramfs.errors import HoldsSecret
from engramfs.history import catalog, hygiene
from engramfs.storage import blobs

from .machine import STORE, Machine

REFUSES = "memory/digest/refuses"
TOKEN = b"ghp_" + b"Q7w2E9r4T6" * 3 + b"abcdef"
NOTE = b"# Deploying\n\nuse " + TOKEN + b"\n"
LARGE = NOTE + b"and this is how it goes on\n" * 10_000


@pytest.mark.parametrize("content", [NOTE, LARGE], ids=["small", "large"])
async def test_a_version_that_looks_like_it_holds_one_says_so_and_where(
    machine: Machine, content: bytes
) -> None:
    ann = machine.writes("ann")
    await ann.save("plain", b"nothing to see\n")
    await machine.seal()
    await ann.save("deploy.md", content)
    await machine.seal()
    assert [version.flags for version in machine.versions()] == [(), ("secret",)]
    with machine.repository.engine.reading() as reader:
        store = catalog.named(reader, STORE)
        assert hygiene.of_version(reader, store, 2) == [hygiene.FoundAt("deploy.md", 3, "GitHub Token")]
        [flagged] = hygiene.newest(reader)
    assert (flagged.store, flagged.version, flagged.paths) == (STORE, 2, 1)
    status = ann.read(".versions/status")
    assert b"version 2 looks like it holds a secret; engramfs log" in status
    assert TOKEN not in status
    assert machine.failures() == []


async def test_a_flagged_file_that_is_only_chmodded_or_removed_flags_nothing_anew(machine: Machine) -> None:
    ann = machine.writes("ann")
    await ann.save("deploy.md", NOTE)
    await machine.seal()
    await ann.set("deploy.md", mode=0o600)
    await machine.seal()
    ann.unlink("deploy.md")
    await machine.seal()
    assert [version.flags for version in machine.versions()] == [("secret",), (), ()]


@pytest.mark.parametrize("content", [NOTE, LARGE, NOTE + b"\0"], ids=["small", "large", "not text"])
async def test_a_store_that_refuses_answers_close_with_eperm_and_keeps_what_was_there(
    machine: Machine, content: bytes
) -> None:
    machine.create_store(REFUSES, secrets="refuse")
    ann = machine.writes("ann", REFUSES)
    await ann.save("deploy.md", b"before\n")
    opened = ann.open("deploy.md", truncate=True)
    await opened.write(content)
    with pytest.raises(HoldsSecret, match=r"deploy.md: line 3 looks like a secret \(GitHub Token\)"):
        await opened.close()
    assert ann.read("deploy.md") == b"before\n"
    await machine.seal()
    assert machine.tree(store=REFUSES) == {"deploy.md": b"before\n"}
    assert "refused to write deploy.md: line 3 looks like a secret" in ann.read(".versions/status").decode()
    assert len(machine.failures()) == 1


@pytest.mark.parametrize("content", [NOTE, LARGE], ids=["small", "large"])
async def test_nothing_of_what_was_refused_is_kept_anywhere(
    machine: Machine, tmp_path: Path, content: bytes
) -> None:
    machine.create_store(REFUSES, secrets="refuse")
    ann, bob = machine.writes("ann", REFUSES), machine.writes("bob", REFUSES)
    await ann.save("shared", b"one\n")
    mine, new = ann.open("shared", truncate=True), ann.create("new")
    await mine.write(content)
    await new.write(content)
    bob.unlink("shared")  # so that what ann wrote would wait for a person
    for opened in (new, mine):
        with pytest.raises(HoldsSecret):
            await opened.close()
    await machine.seal()
    assert machine.pending(REFUSES) == []
    with machine.repository.engine.reading() as reader:
        assert not blobs.exists(reader, hashlib.sha256(content).digest())
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or TOKEN not in path.read_bytes(), path


async def test_what_was_refused_can_be_written_again_without_the_secret(machine: Machine) -> None:
    machine.create_store(REFUSES, secrets="refuse")
    ann = machine.writes("ann", REFUSES)
    with pytest.raises(HoldsSecret):
        await ann.save("deploy.md", NOTE)
    await ann.save("deploy.md", b"use the token in the vault\n")
    assert ann.read("deploy.md") == b"use the token in the vault\n"
    await machine.seal()
    assert machine.tree(store=REFUSES) == {"deploy.md": b"use the token in the vault\n"}


async def test_a_session_that_has_to_ask_may_not_offer_one_either(machine: Machine) -> None:
    machine.create_store(REFUSES, secrets="refuse")
    asking = machine.asks("ann", REFUSES)
    with pytest.raises(HoldsSecret):
        await asking.save("deploy.md", NOTE)
    await machine.seal()
    assert all(TOKEN not in str(changes).encode() for _, _, changes in machine.pending(REFUSES))
    with machine.repository.engine.reading() as reader:
        assert not blobs.exists(reader, hashlib.sha256(NOTE).digest())


async def test_without_the_library_a_store_that_refuses_takes_nothing_and_says_why(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.create_store(REFUSES, secrets="refuse")
    monkeypatch.setattr("engramfs.history.hygiene.refusing.is_available", lambda: False)
    ann = machine.writes("ann", REFUSES)
    with pytest.raises(HoldsSecret, match=r"pip install 'engramfs\[secrets\]'"):
        await ann.save("note.md", b"an ordinary note\n")


@pytest.mark.parametrize("content", [NOTE, LARGE], ids=["small", "large"])
async def test_a_new_file_of_which_all_was_refused_is_in_no_version_and_goes_when_it_is_closed(
    machine: Machine, content: bytes
) -> None:
    machine.create_store(REFUSES, secrets="refuse")
    ann, bob = machine.writes("ann", REFUSES), machine.reads(REFUSES)
    with pytest.raises(HoldsSecret):
        await ann.save("deploy.md", content)
    assert ann.list() == bob.list() == []
    assert (ann.view.inode(1), b"deploy.md") in machine.invalidator.entries, "the kernel is told"
    await machine.seal()
    assert machine.versions(REFUSES) == []
    await ann.save("deploy.md", b"ask Ann\n")
    await machine.seal()
    assert [version.changes for version in machine.versions(REFUSES)] == [["created deploy.md"]]


async def test_a_new_file_that_a_duplicate_had_closed_while_it_was_empty_goes_too(machine: Machine) -> None:
    machine.create_store(REFUSES, secrets="refuse")
    ann = machine.writes("ann", REFUSES)
    opened = ann.create("deploy.md")
    await opened.close_duplicate()  # as a shell does it before what it runs writes
    await opened.write(NOTE)
    with pytest.raises(HoldsSecret):
        await opened.close()
    await machine.seal()
    assert (ann.list(), machine.versions(REFUSES)) == ([], [])


async def test_a_new_file_stays_when_something_else_was_closed_in_it(machine: Machine) -> None:
    machine.create_store(REFUSES, secrets="refuse")
    ann = machine.writes("ann", REFUSES)
    before, after = ann.create("before"), ann.create("after")
    await before.write(b"ask Ann\n")
    await before.close_duplicate()
    await before.write(NOTE)
    with pytest.raises(HoldsSecret):
        await before.close()
    await after.write(NOTE)
    with pytest.raises(HoldsSecret):
        await after.close_duplicate()
    await after.truncate(0)
    await after.write(b"ask Ann\n")
    await after.close()
    await machine.seal()
    assert machine.tree(store=REFUSES) == {"before": b"ask Ann\n", "after": b"ask Ann\n"}


async def test_what_was_renamed_over_another_file_before_it_was_refused_does_not_take_its_name_along(
    machine: Machine,
) -> None:
    machine.create_store(REFUSES, secrets="refuse")
    ann = machine.writes("ann", REFUSES)
    await ann.save("deploy.md", b"ask Ann\n")
    opened = ann.create("deploy.md.new")
    await opened.write(NOTE)
    ann.rename("deploy.md.new", "deploy.md")
    with pytest.raises(HoldsSecret):
        await opened.close()
    await machine.seal()
    assert machine.tree(store=REFUSES) == {"deploy.md": b""}
