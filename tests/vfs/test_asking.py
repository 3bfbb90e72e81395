"""A session that has to ask sees the head and what it wrote itself; nobody else sees that."""

import pytest

from engramfs.errors import Conflict, FileTooLarge, NoEntry, QuotaExceeded, Stale
from engramfs.history import catalog
from engramfs.model.store import Limits

from .conftest import Boot
from .machine import STORE, Machine, Program

Both = tuple[Program, Program]


@pytest.fixture
async def both(machine: Machine) -> Both:
    """Ann, who has to ask, and Bob, who writes; `file`, `other` and `directory/inner` are in version 1."""
    bob = machine.writes("bob")
    await bob.save("file", b"one\n")
    await bob.save("other", b"other\n")
    bob.mkdir("directory")
    await bob.save("directory/inner", b"inner\n")
    await machine.seal()
    return machine.asks("ann"), bob


async def test_what_is_written_is_seen_by_its_session_alone(machine: Machine, both: Both) -> None:
    ann, bob = both
    await ann.save("file", b"ann\n")
    await ann.save("new", b"new\n")
    ann.unlink("other")
    assert (ann.read("file"), ann.read("new"), ann.exists("other")) == (b"ann\n", b"new\n", False)
    for someone in (bob, machine.reads(), machine.asks("eve")):
        assert (someone.read("file"), someone.read("other")) == (b"one\n", b"other\n")
        assert not someone.exists("new")
    await machine.seal()
    assert machine.changes() == [machine.changes()[0]]
    assert machine.pending() == [(1, "open", ["modified file", "created new", "deleted other"])]
    assert bob.read("file") == b"one\n"
    assert ann.list() == ["directory", "file", "new"]


async def test_each_batch_waits_by_itself(machine: Machine, both: Both) -> None:
    ann, _ = both
    await ann.save("file", b"ann\n")
    await machine.seal()
    ann.rename("file", "renamed")
    await machine.seal()
    assert machine.pending() == [(1, "open", ["modified file"]), (2, "open", ["renamed file -> renamed"])]
    assert ann.read("renamed") == b"ann\n"


async def test_it_sees_what_others_do_at_once(machine: Machine, both: Both) -> None:
    ann, bob = both
    ann.list("directory")
    await bob.save("file", b"bob\n")
    await bob.save("directory/new", b"new\n")
    bob.unlink("other")
    bob.rename("directory/inner", "inner")
    assert ann.read("file") == b"bob\n"
    assert ann.read("directory/new") == b"new\n"
    assert ann.read("inner") == b"inner\n"
    assert ann.list() == ["directory", "file", "inner"]
    assert ann.list("directory") == ["new"]
    await machine.seal()
    assert ann.read("file") == b"bob\n"
    assert machine.pending() == []


async def test_its_kernel_is_told_of_what_others_do_and_theirs_not_of_what_it_does(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    inode, root = ann.stat("file").inode, ann.stat("").inode
    bob.stat("file")
    ann.list()
    machine.invalidator.clear()
    await bob.save("file", b"bob\n")
    await bob.save("new", b"new\n")
    assert (inode, True) in machine.invalidator.inodes
    assert (root, b"new") in machine.invalidator.entries
    machine.invalidator.clear()
    await ann.save("file", b"ann\n")
    await ann.save("more", b"more\n")
    assert (machine.invalidator.inodes, machine.invalidator.entries) == ([], [])


async def test_its_own_names_stay_its_own_whatever_others_do(machine: Machine, both: Both) -> None:
    ann, bob = both
    await ann.save("file", b"ann\n")
    ann.unlink("other")
    await bob.save("file", b"bob\n")
    await bob.save("other", b"bob\n")
    assert ann.read("file") == b"ann\n"
    assert not ann.exists("other")
    bob.unlink("file")
    assert ann.read("file") == b"ann\n"
    await machine.seal()
    assert ann.read("file") == b"ann\n"


async def test_a_file_that_another_renames_while_it_is_changed_here_is_here_under_both_names(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    await ann.save("file", b"ann\n")
    bob.rename("file", "moved")
    assert ann.read("file") == ann.read("moved") == b"ann\n"
    await machine.seal()
    assert ann.read("file") == ann.read("moved") == b"ann\n"
    assert machine.tree()["moved"] == b"one\n"


async def test_a_directory_that_another_moves_keeps_what_was_made_in_it_here(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    await ann.save("directory/mine", b"mine\n")
    bob.mkdir("deep")
    bob.mkdir("deep/deeper")
    bob.rename("directory", "deep/deeper/moved")
    assert ann.read("deep/deeper/moved/mine") == b"mine\n"
    assert not ann.exists("directory")
    await ann.save("deep/deeper/moved/mine", b"again\n")
    await machine.seal()
    assert ann.list("deep/deeper/moved") == ["inner", "mine"]
    assert machine.tree()["deep/deeper/moved/inner"] == b"inner\n"


async def test_a_directory_that_is_moved_here_shows_what_others_put_into_it(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    ann.rename("directory", "moved")
    await bob.save("directory/new", b"new\n")
    assert ann.list("moved") == ["inner", "new"]
    assert bob.list() == ["directory", "file", "other"]


async def test_what_was_made_in_a_directory_that_another_removes_waits_all_the_same(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    await ann.save("directory/mine", b"mine\n")
    bob.unlink("directory/inner")
    bob.rmdir("directory")
    assert not ann.exists("directory")
    await machine.seal()
    assert machine.pending() == [(1, "open", ["created directory/mine"])]
    assert "directory/mine is not shown" in ann.read(".versions/status").decode()
    assert machine.live().is_idle


async def test_hard_links_are_one_file_here_too(machine: Machine, both: Both) -> None:
    ann, bob = both
    ann.link("file", "directory/link")
    await ann.save("directory/link", b"ann\n")
    assert ann.read("file") == b"ann\n"
    assert ann.stat("file").links == ann.stat("directory/link").links == 2
    assert bob.stat("file").links == 1
    await machine.seal()
    bob.link("other", "directory/theirs")
    assert ann.stat("other").links == 2
    await bob.save("directory/theirs", b"bob\n")
    assert ann.read("other") == b"bob\n"


async def test_times_and_what_cancels_out_make_nothing_pending(machine: Machine, both: Both) -> None:
    ann, bob = both
    await ann.set("file", mtime=10**18)
    await ann.save("other", b"other\n")
    await ann.save("new", b"new\n")
    ann.unlink("new")
    await machine.seal()
    assert machine.pending() == []
    await bob.save("file", b"bob\n")
    await bob.save("other", b"bob\n")
    await bob.save("new", b"bob\n")
    assert ann.read("file") == ann.read("other") == ann.read("new") == b"bob\n"


async def test_an_atomic_save_of_the_same_bytes_is_the_file_of_the_store_again(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    await ann.save_atomically("file", b"one\n", ".tmp-1")
    await machine.seal()
    assert machine.pending() == []
    assert ann.stat("file").inode & 0xFFFF == bob.stat("file").inode & 0xFFFF
    await bob.save("file", b"bob\n")
    assert ann.read("file") == b"bob\n"


async def test_the_limits_of_the_store_count(machine: Machine) -> None:
    machine.create_store("memory/digest/small", limits=Limits(max_file_size=100, quota=150))
    bob, ann = machine.writes("bob", "memory/digest/small"), machine.asks("ann", "memory/digest/small")
    await bob.save("file", b"b" * 80)
    await machine.seal()
    with pytest.raises(FileTooLarge):
        await ann.save("large", b"a" * 101)
    ann.unlink("large")
    await ann.save("mine", b"a" * 60)
    with pytest.raises(QuotaExceeded):
        await ann.save("more", b"a" * 20)
    assert ann.view.space().free == 10
    assert bob.view.space().free == 70
    bob.unlink("file")
    assert ann.view.space().free == 90


async def test_appends_of_both_stay(machine: Machine, both: Both) -> None:
    ann, bob = both
    mine = ann.open("file")
    await mine.append(b"ann\n")
    await bob.append("file", b"bob\n")
    await mine.close()
    assert ann.read("file") == b"one\nbob\nann\n"
    assert bob.read("file") == b"one\nbob\n"


async def test_a_crash_loses_nothing(boot: Boot, machine: Machine, both: Both) -> None:
    ann, bob = both
    fork = machine.live_fork(ann).store.id
    await ann.save("file", b"ann\n")
    await machine.seal()
    await ann.save("new", b"new\n")
    await bob.save("bobs", b"bob\n")
    ann.rename("bobs", "anns")
    machine.crash()
    again = await boot(state=machine.state)
    assert again.pending() == [
        (1, "open", ["modified file"]),
        (2, "open", ["renamed bobs -> anns", "created new"]),
    ]
    ann, bob = again.asks("ann", fork=fork), again.writes("bob")
    assert ann.list() == ["anns", "directory", "file", "new", "other"]
    assert (ann.read("file"), ann.read("anns"), bob.read("file")) == (b"ann\n", b"bob\n", b"one\n")
    await ann.save("more", b"more\n")
    await bob.save("theirs", b"theirs\n")
    assert ann.stat("more").inode & 0xFFFFFFFF != ann.stat("theirs").inode & 0xFFFFFFFF


async def test_changes_below_come_before_or_after_what_was_made_of_them_also_when_replayed(
    boot: Boot, machine: Machine, both: Both
) -> None:
    ann, bob = both
    await ann.save("file", b"ann\n")
    await bob.save("file", b"bob\n")
    machine.crash()
    again = await boot(state=machine.state)
    assert again.pending() == [(1, "open", ["modified file"])]
    with pytest.raises(Conflict, match="file is not what it was"):
        await again.approve(1)


async def test_a_session_that_ends_leaves_what_waits(machine: Machine, both: Both) -> None:
    ann, _ = both
    await ann.save("file", b"ann\n")
    await machine.seal()
    machine.filesystem.end(ann.view)
    with pytest.raises(Stale):
        ann.unlink("file")
    assert machine.pending() == [(1, "open", ["modified file"])]


async def test_a_deleted_store_takes_its_forks_with_it(machine: Machine, both: Both) -> None:
    ann, _ = both
    await ann.save("file", b"ann\n")
    await machine.seal()
    store = machine.live().store
    machine.filesystem.drop_store(store)
    machine.repository.transact(lambda writer: catalog.delete(writer, catalog.named(writer, STORE)))
    with pytest.raises((NoEntry, Stale)):
        await ann.save("file", b"again\n")
