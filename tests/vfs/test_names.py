"""Names: hard links, renames, symlinks, directories, and files that have no name any more."""

import pytest

from engramfs.errors import (
    EntryExists,
    InvalidArgument,
    IsDirectory,
    NameTooLong,
    NoEntry,
    NotDirectory,
    NotEmpty,
    NotPermitted,
)
from engramfs.vfs.attributes import SetAttributes

from .conftest import Boot
from .machine import Machine, Program

NOREPLACE, EXCHANGE = 1, 2


@pytest.fixture
async def ann(machine: Machine) -> Program:
    """A program in a store with directories a and b, and a file in a."""
    ann = machine.writes()
    ann.mkdir("a")
    ann.mkdir("b")
    await ann.save("a/file", b"content")
    await machine.seal()
    return ann


# Hard links


async def test_names_of_one_file_share_content_and_attributes(machine: Machine, ann: Program) -> None:
    ann.link("a/file", "b/link")
    await ann.save("b/link", b"other")
    await ann.set("a/file", mode=0o600)
    first, second = ann.stat("a/file"), ann.stat("b/link")
    assert first == second
    assert (first.links, first.size, first.mode & 0o777) == (2, 5, 0o600)
    assert ann.read("a/file") == b"other"
    await machine.seal()
    assert machine.tree() == {"a": None, "a/file": b"other", "b": None, "b/link": b"other"}


async def test_hard_links_stay_linked_over_a_restart(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes()
    ann.mkdir("a")
    ann.mkdir("b")
    await ann.save("a/file", b"content")
    ann.link("a/file", "b/link")
    await machine.stop()
    machine = await boot()
    ann = machine.writes()
    assert ann.stat("b/link").links == 2
    await ann.save("b/link", b"other")
    assert ann.read("a/file") == b"other"
    ann.unlink("b/link")
    assert ann.stat("a/file").links == 1
    await machine.stop()
    machine = await boot()
    assert machine.writes().stat("a/file").links == 1
    assert machine.tree() == {"a": None, "a/file": b"other", "b": None}


async def test_a_change_of_a_linked_file_is_a_change_under_each_name(machine: Machine, ann: Program) -> None:
    ann.link("a/file", "b/link")
    await machine.seal()
    await ann.save("b/link", b"other")
    await machine.seal()
    assert machine.changes()[1:] == [["created b/link"], ["modified a/file", "modified b/link"]]


async def test_removing_one_of_two_names_is_one_change(machine: Machine, ann: Program) -> None:
    ann.link("a/file", "b/link")
    await machine.seal()
    ann.unlink("a/file")
    await machine.seal()
    assert machine.changes()[-1] == ["deleted a/file"]


async def test_renaming_one_name_onto_another_of_the_same_file_does_nothing(
    machine: Machine, ann: Program
) -> None:
    ann.link("a/file", "b/link")
    ann.rename("a/file", "b/link")
    assert ann.stat("a/file").links == 2


async def test_directories_cannot_be_linked(ann: Program) -> None:
    with pytest.raises(NotPermitted):
        ann.link("a", "c")


# Renames


async def test_renaming_a_directory_is_one_change(machine: Machine, ann: Program) -> None:
    for number in range(50):
        await ann.save(f"a/{number}", b"")
    await machine.seal()
    ann.rename("a", "b/moved")
    await machine.seal()
    assert machine.changes()[-1] == ["renamed a -> b/moved"]
    assert len(machine.tree()) == 53
    assert machine.tree()["b/moved/file"] == b"content"


async def test_a_file_that_is_renamed_and_changed_is_one_change(machine: Machine, ann: Program) -> None:
    ann.rename("a/file", "file")
    await ann.save("file", b"other")
    await machine.seal()
    assert machine.changes()[-1] == ["renamed a/file -> file"]


async def test_exchanging_two_directories(machine: Machine, ann: Program) -> None:
    ann.rename("a", "b", EXCHANGE)
    assert ann.list("b") == ["file"]
    await machine.seal()
    assert machine.tree() == {"a": None, "b": None, "b/file": b"content"}


async def test_exchanging_a_file_with_a_directory(machine: Machine, ann: Program) -> None:
    ann.rename("a/file", "b", EXCHANGE)
    await machine.seal()
    assert machine.tree() == {"a": None, "a/file": None, "b": b"content"}


async def test_exchanging_with_a_missing_name_is_refused(ann: Program) -> None:
    with pytest.raises(NoEntry):
        ann.rename("a", "missing", EXCHANGE)


async def test_exchanging_a_directory_with_one_that_lies_in_it_is_refused(ann: Program) -> None:
    ann.mkdir("a/below")
    for source, target in (("a", "a/below"), ("a/below", "a")):
        with pytest.raises(InvalidArgument):
            ann.rename(source, target, EXCHANGE)


async def test_noreplace_does_not_replace(machine: Machine, ann: Program) -> None:
    with pytest.raises(EntryExists):
        ann.rename("a", "b", NOREPLACE)
    ann.rename("a", "c", NOREPLACE)
    assert ann.list() == ["b", "c"]


@pytest.mark.parametrize(
    ("source", "target", "error"),
    [
        ("a", "a/below", InvalidArgument),
        ("a/file", "b", IsDirectory),
        ("b", "a/file", NotDirectory),
        ("b", "a", NotEmpty),
        ("missing", "b", NoEntry),
        ("a", "a/file/below", NotDirectory),
        ("a", "n" * 256, NameTooLong),
    ],
)
async def test_renames_that_make_no_sense(
    machine: Machine, ann: Program, source: str, target: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        ann.rename(source, target)
    assert machine.journal.records == 0


async def test_a_directory_replaces_an_empty_one(machine: Machine, ann: Program) -> None:
    ann.rename("a", "b")
    await machine.seal()
    assert machine.changes()[-1] == ["renamed a -> b"]
    assert machine.tree() == {"b": None, "b/file": b"content"}


async def test_a_directory_that_was_removed_takes_no_new_names(ann: Program) -> None:
    parent = ann.node("b")
    ann.rmdir("b")
    with pytest.raises(NoEntry):
        ann.view.create(parent, b"file", 0o644)


async def test_a_directory_that_is_not_empty_is_not_removed(ann: Program) -> None:
    with pytest.raises(NotEmpty):
        ann.rmdir("a")
    with pytest.raises(NotDirectory):
        ann.rmdir("a/file")
    with pytest.raises(IsDirectory):
        ann.unlink("a")


async def test_a_directory_is_made_again_with_the_same_content(machine: Machine, ann: Program) -> None:
    before = machine.tree()
    ann.unlink("a/file")
    ann.rmdir("a")
    ann.mkdir("a")
    await ann.save("a/file", b"content")
    await machine.seal()
    assert machine.tree() == machine.tree(1) == before


# Names themselves


async def test_names_are_any_bytes_up_to_255(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes()
    names = [bytes([byte]) for byte in range(1, 256) if byte not in b"/.~"]
    names += [b"n" * 255, b"\xff" * 255, b"...", b"a\nb", "ü€\U0001f600".encode(), b"-rf *", b"CON"]
    shown = [name.decode("utf-8", "surrogateescape") for name in names]
    for name in shown:
        await ann.save(name, name.encode("utf-8", "surrogateescape"))
    assert ann.list() == sorted(set(shown))
    await machine.stop()
    machine = await boot()
    assert machine.tree() == {name: name.encode("utf-8", "surrogateescape") for name in shown}
    assert machine.writes().list() == sorted(set(shown))


async def test_a_name_of_256_bytes_is_too_long(machine: Machine, ann: Program) -> None:
    for attempt in (ann.create, ann.mkdir, ann.stat):
        with pytest.raises(NameTooLong):
            attempt("n" * 256)


async def test_versions_is_reserved_at_the_root_alone(machine: Machine, ann: Program) -> None:
    for attempt in (
        lambda: ann.view.make_directory(1, b".versions", 0o755),
        lambda: ann.view.create(1, b".versions", 0o644),
        lambda: ann.rename("a", ".versions"),
        lambda: ann.view.rename(1, b".versions", 1, b"x", 0),
        lambda: ann.view.unlink(1, b".versions"),
    ):
        with pytest.raises(NotPermitted):
            attempt()
    ann.mkdir("a/.versions")
    assert ann.list("a") == [".versions", "file"]


async def test_symlinks_are_stored_as_they_are(machine: Machine, ann: Program) -> None:
    ann.symlink("../outside\udcff", "a/link")
    await machine.seal()
    assert ann.read_link("a/link") == "../outside\udcff"
    assert ann.stat("a/link").size == 11
    assert machine.tree()["a/link"] == b"../outside\xff"
    with pytest.raises(InvalidArgument):
        ann.read_link("a/file")


async def test_fifos_sockets_and_devices_are_not_permitted(ann: Program) -> None:
    with pytest.raises(NotPermitted):
        ann.view.make_special(1, b"fifo")


async def test_a_listing_goes_on_where_it_was_while_names_come_and_go(machine: Machine) -> None:
    ann = machine.writes()
    for number in range(100):
        await ann.save(f"{number:03}", b"")
    seen = []
    cookie = 0
    while True:
        rest = [item for item in ann.view.listing(1) if item.cookie > cookie]
        if not rest:
            break
        cookie = rest[0].cookie
        seen.append(rest[0].name.decode())
        ann.unlink(seen[-1])
        if len(seen) == 50:
            await ann.save("new", b"")
    assert seen == [f"{number:03}" for number in range(100)] + ["new"]


# Files without a name


@pytest.mark.parametrize("size", [10, 200_000])
async def test_an_unlinked_file_can_be_used_until_it_is_closed(
    machine: Machine, ann: Program, size: int
) -> None:
    opened = ann.open("a/file")
    ann.unlink("a/file")
    await machine.seal()
    await opened.write(b"x" * size, 3)
    await opened.truncate(size)
    ann.view.set_xattr(opened.node, b"user.x", b"1")
    await ann.view.set_attributes(opened.node, _mode(0o600))
    assert opened.read() == (b"con" + b"x" * size)[:size]
    assert ann.view.attributes(opened.node).links == 0
    await opened.sync()
    await opened.close()
    await machine.seal()
    assert machine.changes()[1:] == [["deleted a/file"]]


def _mode(mode: int) -> SetAttributes:
    return SetAttributes(mode=mode)


async def test_an_unlinked_file_is_readable_by_who_opened_it_for_reading(
    machine: Machine, ann: Program
) -> None:
    reader = machine.reads()
    opened = reader.open("a/file", write=False)
    ann.unlink("a/file")
    await machine.seal()
    assert opened.read() == b"content"


async def test_a_replaced_file_is_readable_by_who_has_it_open(machine: Machine, ann: Program) -> None:
    opened = ann.open("a/file", write=False)
    await ann.save_atomically("a/file", b"other", ".tmp-1")
    await machine.seal()
    assert opened.read() == b"content"
    assert ann.read("a/file") == b"other"


async def test_a_nameless_file_cannot_be_linked(machine: Machine, ann: Program) -> None:
    opened = ann.open("a/file")
    ann.unlink("a/file")
    with pytest.raises(NoEntry):
        ann.view.link(opened.node, 1, b"back")
    await opened.close()
