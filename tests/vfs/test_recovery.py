"""After a crash: every acknowledged close is there, once, and nothing is there that was not closed."""

import os
import shutil
import struct

import pytest

from engramfs.history import catalog

from .conftest import Boot
from .machine import Recorded


async def test_every_acknowledged_operation_is_there(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes()
    ann.mkdir("a")
    await ann.save("a/sealed", b"sealed")
    await machine.seal()
    large = os.urandom(3_000_000)
    await ann.save("a/small", b"small")
    await ann.save("a/large", large)
    await ann.append("a/sealed", b" and more")
    ann.link("a/small", "linked")
    ann.symlink("a", "symlink")
    ann.rename("a", "b")
    await ann.set("b/small", mode=0o600, mtime=10**18)
    ann.view.set_xattr(ann.node("linked"), b"user.x", b"1")
    await ann.save("gone", b"")
    ann.unlink("gone")
    machine.crash()
    again = await boot()
    assert again.recovered.skipped == ()
    assert again.tree() == {
        "b": None,
        "b/large": large,
        "b/sealed": b"sealed and more",
        "b/small": b"small",
        "linked": b"small",
        "symlink": b"a",
    }
    reader = again.reads()
    shown = reader.stat("b/small")
    assert (shown.mode & 0o777, shown.mtime, shown.links) == (0o600, 10**18, 2)
    assert reader.view.get_xattr(reader.node("linked"), b"user.x") == b"1"


async def test_what_is_recovered_is_flagged_and_keeps_its_authors(boot: Boot) -> None:
    machine = await boot()
    await machine.writes("ann").save("a", b"")
    await machine.writes("bob").save("b", b"")
    machine.crash()
    assert (await boot()).versions() == [
        Recorded(1, "ann", ["created a"], ("recovered",)),
        Recorded(2, "bob", ["created b"], ("recovered",)),
    ]


async def test_recovering_twice_is_harmless(boot: Boot) -> None:
    machine = await boot()
    ann, bob = machine.writes("ann"), machine.writes("bob")
    await ann.save("a", b"one")
    await bob.save("a", b"two")
    await ann.save("b", b"three")
    ann.rename("b", "c")
    machine.crash()
    kept = machine.journal.path + ".kept"
    shutil.copy(machine.journal.path, kept)
    again = await boot()
    before = again.versions()
    again.crash()
    shutil.copy(kept, again.journal.path)
    third = await boot()
    assert third.versions() == before
    assert third.recovered.replayed == 0


async def test_a_journal_that_a_loss_of_power_brings_back_does_not_undo_what_was_sealed_since(
    boot: Boot,
) -> None:
    """That the journal is empty after a recovery is not on the disk at once; a file that was open then is
    in no version, so the log has to know otherwise that the old records are done with."""
    machine = await boot()
    ann = machine.writes()
    for content in (b"one", b"two", b"three"):
        await ann.save("file", content)
    ann.create("never closed")
    await ann.save("file", b"four")
    await machine.writes("bob").save(".tmp-x", b"in no version either")
    machine.crash()
    kept = machine.journal.path + ".kept"
    shutil.copy(machine.journal.path, kept)
    again = await boot()
    await again.writes().save("file", b"newest")
    await again.seal()
    again.crash()
    shutil.copy(kept, again.journal.path)
    third = await boot()
    assert third.tree() == {"file": b"newest"}
    assert third.recovered.replayed == 0


@pytest.mark.parametrize("held", ["new file", "transient name"])
async def test_what_is_sealed_is_not_replayed_because_something_is_still_open(boot: Boot, held: str) -> None:
    machine = await boot()
    ann, bob = machine.writes("ann"), machine.writes("bob")
    if held == "new file":
        ann.create("held")
    else:
        await ann.save("held~", b"backup")
    for number in range(5):
        await ann.save("file", b"ann %d" % number)
        await bob.save("file", b"bob %d" % number)
    await machine.seal()
    before = machine.versions()
    machine.crash()
    again = await boot()
    assert again.versions() == before
    assert again.tree() == {"file": b"bob 4"}


@pytest.mark.parametrize("held", ["new file", "transient name"])
async def test_something_that_stays_open_does_not_fill_the_journal(boot: Boot, held: str) -> None:
    machine = await boot(journal_bytes=400_000)
    ann = machine.writes()
    if held == "new file":
        await ann.create("held").write(b"x")
    else:
        await ann.save("held~", b"backup")
    for number in range(40):
        await ann.save("file", b"%d" % number * 20_000)
        await machine.seal()
    assert machine.changes()[-1] == ["modified file"]
    assert len(machine.changes()) == 40


async def test_transient_names_alone_do_not_fill_the_journal(boot: Boot) -> None:
    machine = await boot(journal_bytes=400_000)
    ann = machine.writes()
    for number in range(40):
        await ann.save(".file.swp", b"%d" % number * 20_000)
        machine.filesystem.trim_journal()
    ann.rename(".file.swp", "file")
    machine.crash()
    assert (await boot()).tree() == {"file": b"39" * 20_000}


async def test_a_new_file_that_changed_its_name_and_mode_before_its_first_close(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes()
    opened = ann.create("file")
    await opened.write(b"content")
    await ann.save("other", b"")
    await machine.seal()
    await ann.set("file", mode=0o600)
    await machine.seal()
    ann.rename("file", "renamed")
    await ann.save("other", b"1")
    await machine.seal()
    await opened.close()
    machine.crash()
    again = await boot()
    assert again.recovered.skipped == ()
    assert again.tree() == {"other": b"1", "renamed": b"content"}
    assert again.reads().stat("renamed").mode & 0o777 == 0o600


async def test_a_transient_file_that_is_renamed_after_others_were_sealed(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes()
    ann.mkdir(".tmp-1")
    await ann.save(".tmp-1/file", b"content")
    await ann.save("backup~", b"old")
    for number in range(3):
        await ann.save("other", b"%d" % number)
        await machine.seal()
    ann.rename(".tmp-1", "final")
    ann.rename("backup~", "backup")
    machine.crash()
    again = await boot()
    assert again.recovered.skipped == ()
    assert again.tree() == {"backup": b"old", "final": None, "final/file": b"content", "other": b"2"}


async def test_files_that_were_never_closed_and_transient_names_are_dropped(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes()
    await ann.create("unclosed").write(b"half")
    await ann.save("backup~", b"")
    await ann.save("file", b"one")
    half = ann.open("file")
    await half.write(b"two")
    machine.crash()
    again = await boot()
    assert again.tree() == {"file": b"one"}
    assert again.writes().list() == ["file"]
    assert os.listdir(again.repository.spool_path) == []


async def test_links_to_and_from_directories_that_nobody_had_entered(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes()
    ann.mkdir("a")
    ann.mkdir("b")
    await ann.save("a/file", b"content")
    ann.link("a/file", "b/second")
    await machine.stop()
    machine = await boot()
    ann = machine.writes()
    ann.link("a/file", "third")
    ann.unlink("b/second")
    machine.crash()
    again = await boot()
    assert again.tree() == {"a": None, "a/file": b"content", "b": None, "third": b"content"}
    assert again.reads().stat("third").links == 2


async def test_a_crash_while_a_version_is_on_its_way_into_the_log(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes()
    ann.mkdir("a")
    await ann.save("a/file", b"one")
    machine.live().cut()
    ann.rename("a", "b")
    await ann.save("b/file", b"two")
    machine.crash()
    assert (await boot()).tree() == {"b": None, "b/file": b"two"}


async def test_a_crash_while_a_version_is_on_its_way_that_takes_contents_of_transient_files_along(
    boot: Boot,
) -> None:
    machine = await boot()
    ann = machine.writes()
    await ann.save(".tmp-1", b"content")
    await ann.save("other", b"")
    machine.live().cut()
    ann.rename(".tmp-1", "file")
    machine.crash()
    assert (await boot()).tree() == {"file": b"content", "other": b""}


async def test_a_torn_tail_is_dropped_kept_aside_and_reported(boot: Boot) -> None:
    machine = await boot()
    await machine.writes().save("file", b"whole")
    whole = machine.journal.size
    await machine.writes().save("torn", b"never acknowledged")
    machine.crash()
    os.truncate(machine.journal.path, whole + 20)
    again = await boot()
    assert again.recovered.torn_bytes == 20
    assert again.tree() == {"file": b"whole"}
    assert os.path.getsize(machine.journal.path + ".torn") == 20


async def test_a_flipped_byte_in_the_journal_ends_the_replay_there(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes()
    await ann.save("first", b"1")
    offset = machine.journal.size
    await ann.save("second", b"2")
    machine.crash()
    with open(machine.journal.path, "r+b") as file:
        file.seek(offset + 30)
        byte = file.read(1)[0]
        file.seek(offset + 30)
        file.write(struct.pack("B", byte ^ 1))
    again = await boot()
    assert again.tree() == {"first": b"1"}
    assert again.recovered.torn_bytes > 0


async def test_a_concurrent_overwrite_keeps_its_flag(boot: Boot) -> None:
    machine = await boot()
    ann, bob = machine.writes("ann"), machine.writes("bob")
    await ann.save("file", b"one")
    await machine.seal()
    mine = ann.open("file", truncate=True)
    await mine.write(b"ann")
    await bob.save("file", b"bob")
    await machine.seal()
    await mine.close()
    machine.crash()
    last = (await boot()).versions()[-1]
    assert (last.author, last.flags, last.overwrites) == ("ann", ("concurrent", "recovered"), (2,))


async def test_a_record_of_a_store_that_is_gone_is_reported_and_the_rest_goes_on(boot: Boot) -> None:
    machine = await boot()
    machine.create_store("memory/digest/gone")
    await machine.writes(store="memory/digest/gone").save("file", b"")
    await machine.writes().save("file", b"kept")
    machine.repository.transact(
        lambda writer: catalog.delete(writer, catalog.named(writer, "memory/digest/gone"))
    )
    machine.crash()
    again = await boot()
    assert again.tree() == {"file": b"kept"}
    assert len(again.recovered.skipped) == 2
    assert all("its store is gone" in what for what in again.recovered.skipped)


async def test_ids_of_files_are_never_given_twice(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes()
    await ann.save("file~", b"")
    transient = ann.node("file~")
    await ann.save("file", b"")
    await machine.seal()
    machine.crash()
    machine = await boot()
    ann = machine.writes()
    await ann.save("new", b"")
    assert ann.node("new") > transient
