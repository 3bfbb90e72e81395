"""Names, symbolic links, extended attributes and messages are looked at for secrets as contents are."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engramfs.errors import HoldsSecret
from engramfs.history import catalog, hygiene
from engramfs.history.directory_redaction import redact_directory
from engramfs.history.hygiene import FoundAt
from engramfs.history.message_redaction import redact_message
from engramfs.model.entry import ROOT_NODE
from engramfs.vfs.renaming import EXCHANGE

from .machine import PERSON, STORE, Machine, Program

REFUSES = "memory/digest/refuses"
TOKEN = "ghp_" + "Q7w2E9r4T6" * 3 + "abcdef"
AWS_SECRET = "abcdefghij/" * 3 + "klmnopq"  # 40 letters, with slashes as such keys have them
MESSAGE = b"user.engramfs.message"


def attribute(program: Program, path: str, name: str, value: str) -> None:
    program.view.set_xattr(program.node(path), name.encode(), value.encode())


def say(program: Program, text: str) -> None:
    program.view.set_xattr(ROOT_NODE, MESSAGE, text.encode())


async def new_file(program: Program) -> None:
    await program.save(f"notes/{TOKEN}.md", b"1")


async def new_directory(program: Program) -> None:
    program.mkdir(f"notes/{TOKEN}")


async def new_link(program: Program) -> None:
    program.link("notes/a", f"notes/{TOKEN}")


async def renamed(program: Program) -> None:
    program.rename("notes/a", f"notes/{TOKEN}")


async def symbolic_link(program: Program) -> None:
    program.symlink(f"/x/{TOKEN}", "notes/link")


async def an_attribute(program: Program) -> None:
    attribute(program, "notes/a", "user.note", f"\0use {TOKEN}")


async def told_by_its_name(program: Program) -> None:
    attribute(program, "notes/a", "user.aws_secret_access_key", AWS_SECRET)


async def a_message(program: Program) -> None:
    say(program, f"now with\nthe token {TOKEN}")
    await program.save("notes/b", b"1")


Way = Callable[[Program], Coroutine[Any, Any, None]]
WAYS: dict[Way, FoundAt] = {
    new_file: FoundAt(f"notes/{TOKEN}.md", 1, "GitHub Token", "name"),
    new_directory: FoundAt(f"notes/{TOKEN}", 1, "GitHub Token", "name"),
    new_link: FoundAt(f"notes/{TOKEN}", 1, "GitHub Token", "name"),
    renamed: FoundAt(f"notes/{TOKEN}", 1, "GitHub Token", "name"),
    symbolic_link: FoundAt("notes/link", 1, "GitHub Token", "target"),
    an_attribute: FoundAt("notes/a", 1, "GitHub Token", "attribute"),
    told_by_its_name: FoundAt("notes/a", 1, "AWS Secret Key", "attribute"),
    a_message: FoundAt("", 2, "GitHub Token", "message"),
}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_version_with_one_anywhere_is_flagged_and_says_where(machine: Machine, way: Way) -> None:
    ann = machine.writes("ann")
    ann.mkdir("notes")
    await ann.save("notes/a", b"1")
    await machine.seal()
    await way(ann)
    await machine.seal()
    await ann.save("notes/c", b"1")
    await machine.seal()
    assert [version.flags for version in machine.versions()] == [(), ("secret",), ()]
    with machine.repository.engine.reading() as reader:
        store = catalog.named(reader, STORE)
        assert hygiene.of_version(reader, store, 2) == [WAYS[way]]
        [flagged] = hygiene.newest(reader)
    assert (flagged.version, flagged.paths, flagged.message) == (
        2,
        int(way is not a_message),
        way is a_message,
    )
    assert TOKEN.encode() not in ann.read(".versions/status")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_store_that_refuses_takes_none_and_says_so_without_it(
    machine: Machine, tmp_path: Path, way: Way
) -> None:
    machine.create_store(REFUSES, secrets="refuse")
    ann = machine.writes("ann", REFUSES)
    ann.mkdir("notes")
    await ann.save("notes/a", b"1")
    await machine.seal()
    with pytest.raises(HoldsSecret, match="looks like a secret") as caught:
        await way(ann)
    await machine.seal()
    assert (machine.tree(store=REFUSES), len(machine.versions(REFUSES))) == (
        {"notes": None, "notes/a": b"1"},
        1,
    )
    assert caught.value.message in ann.read(".versions/status").decode()
    for secret in (TOKEN, AWS_SECRET):
        assert secret not in caught.value.message + repr(caught.value.details)
        for path in tmp_path.rglob("*"):
            assert not path.is_file() or secret.encode() not in path.read_bytes(), path


async def test_a_session_that_has_to_ask_may_not_offer_one_either(machine: Machine) -> None:
    machine.create_store(REFUSES, secrets="refuse")
    asking = machine.asks("ann", REFUSES)
    with pytest.raises(HoldsSecret):
        asking.mkdir(TOKEN)
    with pytest.raises(HoldsSecret):
        say(asking, TOKEN)


async def test_a_name_that_was_there_before_the_store_refused_can_be_given_up_and_worked_below(
    machine: Machine,
) -> None:
    ann = machine.writes("ann")
    ann.mkdir(TOKEN)
    await ann.save(f"{TOKEN}/a", b"1")
    await ann.save("plain", b"2")
    machine.live().describe(msgspec.structs.replace(machine.live().store, secrets="refuse"))
    await ann.save(f"{TOKEN}/a", b"3")
    await ann.save(f"{TOKEN}/b", b"4")
    ann.rename(f"{TOKEN}/a", "plain", EXCHANGE)
    with pytest.raises(HoldsSecret, match=r"refused a name: it looks like a secret \(GitHub Token\); choose"):
        await ann.save(f"{TOKEN}/{TOKEN}", b"5")
    ann.rename(TOKEN, "tokens")
    await machine.seal()
    assert machine.tree() == {"plain": b"3", "tokens": None, "tokens/a": b"2", "tokens/b": b"4"}


async def test_a_secret_across_the_names_of_a_path_is_one(machine: Machine) -> None:
    machine.create_store(REFUSES, secrets="refuse")
    ann = machine.writes("ann", REFUSES)
    first, second, *rest = AWS_SECRET.split("/")
    ann.mkdir(f"aws_secret_access_key={first}")
    ann.mkdir(f"aws_secret_access_key={first}/{second}")
    ann.mkdir(f"aws_secret_access_key={first}/{second}/{rest[0]}")
    with pytest.raises(HoldsSecret, match=r"refused a name in aws_secret_access_key="):
        await ann.save(f"aws_secret_access_key={first}/{second}/{'/'.join(rest)}", b"1")


async def test_what_is_only_changed_under_such_a_name_or_beside_such_an_attribute_flags_nothing_anew(
    machine: Machine,
) -> None:
    ann = machine.writes("ann")
    await ann.save(f"{TOKEN}.md", b"1")
    attribute(ann, f"{TOKEN}.md", "user.note", TOKEN)
    await machine.seal()
    await ann.save(f"{TOKEN}.md", b"2")
    attribute(ann, f"{TOKEN}.md", "user.other", "plain")
    await machine.seal()
    ann.unlink(f"{TOKEN}.md")
    await machine.seal()
    assert [version.flags for version in machine.versions()] == [("secret",), (), ()]


async def test_a_message_that_was_redacted_is_told_no_more(machine: Machine) -> None:
    ann = machine.writes("ann")
    say(ann, TOKEN)
    await ann.save("a", b"1")
    await machine.seal()
    redact_message(machine.repository, STORE, 1, PERSON, "a token", 5)
    with machine.repository.engine.reading() as reader:
        assert list(hygiene.newest(reader)) == []
        assert hygiene.of_version(reader, catalog.named(reader, STORE), 1) == []


async def test_a_directory_whose_name_was_redacted_is_told_no_more(machine: Machine) -> None:
    ann = machine.writes("ann")
    ann.mkdir(TOKEN)
    await machine.seal()
    ann.rename(TOKEN, "tokens")
    await machine.seal()
    redact_directory(machine.repository, STORE, 1, TOKEN.encode(), PERSON, "a token", 5)
    with machine.repository.engine.reading() as reader:
        assert list(hygiene.newest(reader)) == []
