"""A full disk, a real one: nothing acknowledged is lost, and everything goes on once there is space."""

import os

import pytest
import trio

from engramfs.errors import Full, StorageError
from engramfs.storage.reserve import SIZE

from ..harness.small_disk import SmallDisk
from .conftest import Boot
from .machine import Machine, Program, eventually

MIB = 1 << 20


@pytest.fixture
async def machine(small_disk: SmallDisk, boot: Boot) -> Machine:
    """A machine whose state is on the small disk, with one version."""
    machine = await boot(state=f"{small_disk.path}/state")
    await machine.writes().save("file", b"one")
    await machine.seal()
    return machine


async def test_closes_go_on_into_the_journal_while_sealing_fails(
    small_disk: SmallDisk, machine: Machine
) -> None:
    ann = machine.writes()
    contents = {name: os.urandom(60_000) for name in ("file", "second")}
    small_disk.fill(leave=200 << 10)
    for name, content in contents.items():
        await ann.save(name, content)
    machine.live().cut()
    await eventually(lambda: machine.writer.trouble != "")
    ann.mkdir("directory")
    machine.live().cut()
    assert len(machine.changes()) == 1
    assert {name: ann.read(name) for name in contents} == contents
    assert any("sealing failed" in failure for failure in machine.failures())
    small_disk.clear()
    await machine.seal()
    assert machine.changes() == [["created file"], ["modified file", "created second"], ["created directory"]]
    assert machine.writer.trouble == ""


async def test_a_crash_while_sealing_fails_loses_nothing(
    small_disk: SmallDisk, machine: Machine, boot: Boot
) -> None:
    ann = machine.writes()
    contents = {name: os.urandom(60_000) for name in ("file", "second")}
    small_disk.fill(leave=200 << 10)
    for name, content in contents.items():
        await ann.save(name, content)
    machine.live().cut()
    await eventually(lambda: machine.writer.trouble != "")
    machine.crash()
    small_disk.clear()
    again = await boot(state=machine.state)
    assert again.tree() == contents


async def test_what_finds_no_room_in_the_journal_is_refused_and_changes_nothing(
    small_disk: SmallDisk, machine: Machine
) -> None:
    ann = machine.writes()
    small_disk.fill(leave=0)
    with pytest.raises(Full):
        _make_directories(ann)
    names = ann.list()
    with pytest.raises(Full):
        ann.mkdir("n" * 255)
    assert ann.list() == names
    small_disk.clear()
    ann.mkdir("made")
    await machine.seal()
    assert sorted(machine.tree()) == sorted([*names, "made"])


def _make_directories(program: Program, letter: str = "n") -> None:
    for number in range(200):
        program.mkdir(f"{letter * 200}{number}")


async def test_who_asks_for_a_seal_is_told_that_the_disk_is_full(
    small_disk: SmallDisk, machine: Machine
) -> None:
    opened = machine.writes().create("other")
    await opened.write(os.urandom(60_000))
    small_disk.fill(leave=80 << 10)
    await opened.close()
    with trio.fail_after(5), pytest.raises(StorageError, match="is in the journal"):
        await machine.filesystem.seal_all()
    small_disk.clear()
    await machine.seal()


async def test_sync_does_not_wait_for_a_disk_to_be_cleared(small_disk: SmallDisk, machine: Machine) -> None:
    opened = machine.writes().create("other")
    content = os.urandom(60_000)
    await opened.write(content)
    small_disk.fill(leave=80 << 10)
    with trio.fail_after(3):
        await opened.sync()
    assert len(machine.changes()) == 1
    small_disk.clear()
    await opened.close()
    await machine.seal()
    assert machine.tree() == {"file": b"one", "other": content}


async def test_a_large_file_that_does_not_fit_is_refused_at_its_close_and_can_be_saved_later(
    small_disk: SmallDisk, machine: Machine
) -> None:
    ann = machine.writes()
    content = os.urandom(MIB)
    opened = ann.create("large")
    await opened.write(content)
    small_disk.fill(leave=100 << 10)
    with pytest.raises(Full):
        await opened.close_duplicate()
    assert opened.read() == content
    small_disk.clear()
    await opened.close()
    await machine.seal()
    assert machine.tree() == {"file": b"one", "large": content}


async def test_a_write_that_does_not_fit_into_the_spool_leaves_the_file_as_it_was(
    small_disk: SmallDisk, machine: Machine
) -> None:
    ann = machine.writes()
    content = os.urandom(MIB)
    await ann.save("large", content)
    await machine.seal()
    opened = ann.open("large")
    small_disk.fill(leave=300 << 10)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            await opened.append(b"line")
    assert opened.read() == content
    await opened.close()
    await machine.seal()
    small_disk.clear()
    await ann.append("large", b"line")
    await machine.seal()
    assert machine.tree()["large"] == content + b"line"
    assert len(machine.changes()) == 3


async def test_lines_that_cannot_be_merged_stay_with_who_wrote_them(
    small_disk: SmallDisk, machine: Machine
) -> None:
    ann, bob = machine.writes("ann"), machine.writes("bob")
    mine = ann.open("file")
    await mine.append(b" ann")
    addition = os.urandom(600 << 10)
    await bob.append("file", addition)
    await machine.seal()
    small_disk.fill(leave=100 << 10)
    with pytest.raises(OSError, match="No space left"):
        await mine.close_duplicate()
    assert mine.read() == b"one ann"
    small_disk.clear()
    await mine.close()
    await machine.seal()
    assert machine.tree() == {"file": b"one" + addition + b" ann"}


async def test_transient_names_on_a_full_disk_cost_no_version(
    small_disk: SmallDisk, machine: Machine
) -> None:
    ann = machine.writes()
    await ann.save("backup~", b"x" * 60_000)
    await ann.save("file", b"two")
    small_disk.fill(leave=0)
    machine.live().cut()
    machine.filesystem.trim_journal()
    await trio.sleep(0.1)
    assert ann.read("backup~") == b"x" * 60_000
    small_disk.clear()
    await machine.seal()
    assert machine.changes() == [["created file"], ["modified file"]]
    ann.rename("backup~", "backup")
    await machine.seal()
    assert machine.tree() == {"backup": b"x" * 60_000, "file": b"two"}


async def test_an_open_file_that_is_removed_on_a_full_disk_is_gone(
    small_disk: SmallDisk, machine: Machine
) -> None:
    ann = machine.writes()
    opened = ann.open("file", write=False)
    ann.mkdir("directory")  # so that the journal has begun a page
    small_disk.fill(leave=0)
    ann.unlink("file")
    assert opened.read() == b"one"
    small_disk.clear()
    await machine.seal()
    assert machine.tree() == {"directory": None}


async def test_on_a_full_disk_files_can_be_removed_and_emptied_but_not_made(
    small_disk: SmallDisk, machine: Machine
) -> None:
    ann = machine.writes()
    names = [f"{'f' * 200}{number}" for number in range(300)]
    for name in names:
        await ann.save(name, b"content")
    await machine.seal()
    small_disk.fill(leave=0)
    with pytest.raises(Full):
        _make_directories(ann)
    for name in names:
        ann.unlink(name)
    await ann.set("file", size=0)
    assert ann.read("file") == b""
    with pytest.raises(Full):  # once the journal has filled its last block
        _make_directories(ann, "d")
    small_disk.clear()
    await machine.seal()
    assert machine.tree()["file"] == b""
    assert not set(names) & set(machine.tree())


async def test_what_was_given_up_for_removals_is_kept_again_once_there_is_room(
    small_disk: SmallDisk, machine: Machine
) -> None:
    ann = machine.writes()
    while machine.reserve.give_up():
        pass
    small_disk.fill(leave=0)
    machine.filesystem.trim_journal()
    assert machine.reserve.size == 0
    small_disk.clear()
    ann.mkdir("directory")
    await machine.seal()
    assert machine.reserve.size == SIZE


async def test_a_close_that_found_no_room_is_made_up_for_by_itself_once_there_is_some(
    small_disk: SmallDisk, machine: Machine
) -> None:
    ann, content = machine.writes(), os.urandom(MIB)
    small_disk.fill(leave=MIB + (300 << 10))
    with pytest.raises(Full):
        await ann.save("large", content)
    assert ann.read("large") == content
    assert machine.filesystem.unsealed_records() == 1
    [failure] = machine.filesystem.resources.failures
    assert failure.store == machine.live().store.name
    assert "large was closed and is not recorded yet" in failure.what
    shown = ann.read(".versions/status").decode()
    assert "large was closed and is not recorded yet" in shown
    assert machine.state in failure.what, "who runs it learns which disk it is"
    assert machine.state not in shown, "an agent does not"
    small_disk.clear()
    await eventually(lambda: not machine.filesystem.resources.failed_closes)
    assert "large is recorded now" in ann.read(".versions/status").decode()
    await machine.seal()
    assert machine.tree() == {"file": b"one", "large": content}
    assert machine.versions()[-1].author == "ann"
    assert machine.filesystem.unsealed_records() == 0


async def test_another_worker_makes_up_for_a_close_that_found_no_room(
    small_disk: SmallDisk, machine: Machine, boot: Boot
) -> None:
    ann, content = machine.programs["ann"], os.urandom(MIB)
    still_open = ann.create("open")
    await still_open.write(b"half")
    small_disk.fill(leave=MIB + (300 << 10))
    with pytest.raises(Full):
        await ann.save("large", content)
    machine.crash()
    again = await boot(state=machine.state, crashed=machine)
    assert again.programs["ann"].read("large") == content
    small_disk.clear()
    await eventually(lambda: not again.filesystem.resources.failed_closes)
    await again.seal()
    assert again.tree() == {"file": b"one", "large": content}
    assert again.versions()[-1].author == "ann"


async def test_what_is_written_after_a_failed_close_waits_for_its_own(
    small_disk: SmallDisk, machine: Machine
) -> None:
    ann = machine.writes()
    opened = ann.create("large")
    await opened.write(os.urandom(MIB))
    small_disk.fill(leave=100 << 10)
    with pytest.raises(Full):
        await opened.close_duplicate()
    await opened.write(b"half of ")
    small_disk.clear()
    await eventually(lambda: not machine.filesystem.resources.failed_closes)
    await machine.seal()
    assert machine.tree() == {"file": b"one"}
    await opened.truncate(0)
    await opened.write(b"whole")
    await opened.close()
    await machine.seal()
    assert machine.tree() == {"file": b"one", "large": b"whole"}


async def test_what_is_removed_after_a_failed_close_gives_its_room_back(
    small_disk: SmallDisk, machine: Machine
) -> None:
    ann = machine.writes()
    small_disk.fill(leave=MIB + (300 << 10))
    with pytest.raises(Full):
        await ann.save("large", os.urandom(MIB))
    ann.unlink("large")
    await eventually(lambda: small_disk.free > 900 << 10)
    assert not machine.filesystem.resources.failed_closes
    small_disk.clear()
    await machine.seal()
    assert machine.changes() == [["created file"]]


async def test_a_session_that_ends_before_there_is_room_names_what_is_lost(
    small_disk: SmallDisk, machine: Machine
) -> None:
    ann = machine.writes()
    small_disk.fill(leave=MIB + (300 << 10))
    with pytest.raises(Full):
        await ann.save("large", os.urandom(MIB))
    machine.filesystem.end(ann.view)
    assert any("written to large and closed: there was no room" in failure for failure in machine.failures())
    assert not machine.filesystem.resources.failed_closes
    small_disk.clear()


async def test_a_write_that_finds_no_room_leaves_the_times_alone(
    small_disk: SmallDisk, machine: Machine
) -> None:
    ann = machine.writes()
    opened = ann.create("new")
    before = ann.stat("new")
    small_disk.fill(leave=0)
    with pytest.raises(OSError, match="No space left"):
        await opened.write(b"x")
    assert ann.stat("new") == before
    small_disk.clear()
    await opened.close()
    await machine.seal()
    assert machine.tree() == {"file": b"one", "new": b""}


async def test_records_that_the_log_has_do_not_count_as_unsealed(machine: Machine) -> None:
    ann = machine.writes()
    for number in range(20):
        await ann.save("file", b"%d" % number)
    ann.create("open")  # which no version may hold yet
    await machine.seal()
    ann.mkdir("directory")
    ann.rmdir("directory")
    await machine.seal()
    assert machine.filesystem.unsealed_records() == 1 < machine.journal.records


async def test_what_is_sealed_does_not_count_as_unsealed_where_the_journal_cannot_say_so(
    machine: Machine,
) -> None:
    ann = machine.writes()
    ann.create("open")
    for number in range(10):
        ann.mkdir(f"directory{number}")
    assert machine.filesystem.unsealed_records() == 11
    machine.journal.max_bytes = machine.journal.size  # no room to state what stays open
    await machine.seal()
    assert machine.filesystem.unsealed_records() == 1 < machine.journal.records
