"""When closed writes become a version, who its author is, and what makes no version at all."""

import contextlib
import time

import pytest
import trio

from engramfs.errors import StorageError

from .conftest import Boot
from .machine import Machine, eventually

# One batch, one version


async def test_echo_into_a_new_file_is_one_version(boot: Boot) -> None:
    machine = await boot(quiet=0.02)
    await machine.writes().save("file", b"hi\n")
    await eventually(lambda: machine.changes() == [["created file"]])
    await trio.sleep(0.06)
    assert machine.changes() == [["created file"]]
    assert machine.tree(1) == {"file": b"hi\n"}


async def test_a_batch_is_sealed_once_the_store_is_quiet(boot: Boot) -> None:
    machine = await boot(quiet=0.15)
    ann = machine.writes()
    for number in range(4):
        await ann.save(f"file{number}", b"")
        await trio.sleep(0.03)
    assert machine.changes() == []
    await eventually(lambda: len(machine.changes()) == 1)
    assert len(machine.changes()[0]) == 4


async def test_a_store_that_is_never_quiet_is_sealed_every_max_age(boot: Boot) -> None:
    machine = await boot(quiet=10, max_age=0.1)
    ann = machine.writes()
    started = time.monotonic()
    while len(machine.changes()) < 3:
        await ann.append("file", b"line\n")
        await trio.sleep(0.005)
        assert time.monotonic() - started < 5
    assert time.monotonic() - started > 0.25


async def test_a_version_has_one_author(machine: Machine) -> None:
    ann, bob = machine.writes("ann"), machine.writes("bob")
    await ann.save("a", b"")
    await ann.save("b", b"")
    await bob.save("c", b"")
    await ann.save("d", b"")
    await machine.seal()
    assert [(version.author, version.changes) for version in machine.versions()] == [
        ("ann", ["created a", "created b"]),
        ("bob", ["created c"]),
        ("ann", ["created d"]),
    ]


async def test_stores_have_batches_of_their_own(machine: Machine) -> None:
    machine.create_store("memory/digest/other")
    await machine.writes().save("a", b"")
    await machine.writes("bob", "memory/digest/other").save("b", b"")
    await machine.writes().save("c", b"")
    await machine.seal()
    assert machine.changes() == [["created a", "created c"]]
    assert machine.changes("memory/digest/other") == [["created b"]]


async def test_sync_seals_at_once(machine: Machine) -> None:
    opened = machine.writes().create("file")
    await opened.write(b"line")
    await opened.sync()
    assert machine.tree() == {"file": b"line"}
    await opened.close()


async def test_every_version_is_the_tree_of_its_moment(machine: Machine) -> None:
    ann = machine.writes()
    trees = []
    for number in range(6):
        await ann.save("counter", b"%d" % number)
        ann.mkdir(f"d{number}")
        await ann.save(f"d{number}/file", b"x" * number)
        if number > 2:
            ann.rename(f"d{number}", f"d{number - 3}/moved")
        await machine.seal()
        trees.append(machine.tree())
    assert [machine.tree(number) for number in range(1, 7)] == trees


# No version


async def no_version_from(machine: Machine) -> None:
    before = machine.versions()
    await machine.seal()
    assert machine.versions() == before
    assert machine.journal.records == 0


@pytest.fixture
async def sealed(machine: Machine) -> Machine:
    await machine.writes().save("file", b"content")
    machine.writes().mkdir("directory")
    await machine.seal()
    return machine


async def test_touch_makes_no_version_but_the_time_stays(sealed: Machine, boot: Boot) -> None:
    ann = sealed.writes()
    await ann.set("file", mtime=10**18, atime=10**18)
    await ann.set("directory", mtime=10**18)
    await no_version_from(sealed)
    await sealed.stop()
    again = (await boot()).writes()
    assert again.stat("file").mtime == again.stat("directory").mtime == 10**18


async def test_the_same_bytes_make_no_version(sealed: Machine) -> None:
    ann = sealed.writes()
    await ann.save("file", b"content")
    await ann.save_atomically("file", b"content", ".tmp-1")
    await ann.save_atomically("file", b"content", "ordinary-name")
    await no_version_from(sealed)


async def test_there_and_back_makes_no_version(sealed: Machine) -> None:
    ann = sealed.writes()
    await ann.save("file", b"other")
    await ann.save("file", b"content")
    ann.rename("file", "elsewhere")
    ann.rename("elsewhere", "file")
    await ann.set("file", mode=0o600)
    await ann.set("file", mode=0o644)
    await no_version_from(sealed)


async def test_create_then_delete_makes_no_version(sealed: Machine) -> None:
    ann = sealed.writes()
    await ann.save("new", b"x")
    ann.link("new", "newer")
    ann.unlink("new")
    ann.unlink("newer")
    ann.mkdir("new")
    ann.symlink("target", "new/link")
    ann.unlink("new/link")
    ann.rmdir("new")
    await no_version_from(sealed)


async def test_opening_for_writing_and_closing_makes_no_version(sealed: Machine) -> None:
    await sealed.writes().open("file").close()
    await no_version_from(sealed)


async def test_closing_a_duplicate_of_an_unchanged_descriptor_is_no_change(machine: Machine) -> None:
    opened = machine.writes().create("file")
    await opened.write(b"once")
    await opened.close_duplicate()
    await machine.seal()
    await opened.close_duplicate()
    await opened.close()
    await machine.seal()
    assert machine.changes() == [["created file"]]


# What is not closed


async def test_a_file_that_was_never_closed_enters_no_version(machine: Machine) -> None:
    ann = machine.writes()
    opened = ann.create("open")
    await opened.write(b"half")
    await ann.save("closed", b"whole")
    await machine.seal()
    assert machine.tree() == {"closed": b"whole"}
    await opened.write(b" and half", 4)
    await opened.close()
    await machine.seal()
    assert machine.changes() == [["created closed"], ["created open"]]
    assert machine.tree() == {"closed": b"whole", "open": b"half and half"}


async def test_a_version_holds_what_an_open_file_was_at_its_last_close(machine: Machine) -> None:
    ann = machine.writes()
    await ann.save("file", b"whole")
    opened = ann.open("file")
    await opened.write(b"half")
    await ann.save("other", b"")
    await machine.seal()
    assert machine.tree() == {"file": b"whole", "other": b""}
    await opened.close()


async def test_renaming_a_file_that_was_never_closed_does_not_record_it(machine: Machine) -> None:
    ann = machine.writes()
    opened = ann.create("file")
    await opened.write(b"half")
    ann.rename("file", "renamed")
    ann.link("renamed", "linked")
    await ann.set("linked", mode=0o600)
    await ann.save("other", b"")
    await machine.seal()
    assert machine.tree() == {"other": b""}
    await opened.close()
    await machine.seal()
    assert machine.tree() == {"linked": b"half", "other": b"", "renamed": b"half"}


async def test_a_file_that_was_unlinked_is_gone_before_what_replaces_it_is_closed(machine: Machine) -> None:
    ann = machine.writes()
    await ann.save("file", b"old")
    await machine.seal()
    ann.unlink("file")
    opened = ann.create("file")
    await opened.write(b"ne")
    await machine.seal()
    assert machine.tree() == {}
    await opened.write(b"w", 2)
    await opened.close()
    await machine.seal()
    assert machine.changes() == [["created file"], ["deleted file"], ["created file"]]


async def test_a_batch_that_cannot_be_compared_with_the_log_is_sealed_later(machine: Machine) -> None:
    await machine.writes().save("file", b"content")
    with contextlib.ExitStack() as readers:
        with contextlib.suppress(StorageError):
            while True:  # until the table of readers is full
                readers.enter_context(machine.repository.engine.reading())
        with pytest.raises(StorageError):
            machine.live().cut()
    await machine.seal()
    assert machine.tree() == {"file": b"content"}
