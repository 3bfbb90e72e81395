"""A person decides on what waits: the store, the session that asked and everybody else follow."""

import msgspec
import pytest

from engramfs.errors import Archived, Conflict, NotFound, QuotaExceeded
from engramfs.history import catalog, log, pending
from engramfs.history.claims import claims
from engramfs.history.collection.slices import set_oldest
from engramfs.model.entry import NODE_MASK
from engramfs.model.store import Limits
from engramfs.model.version import Version
from engramfs.storage.protocol import Writer
from engramfs.vfs.collecting import end_removed
from engramfs.vfs.pinned_view import PinnedView

from .conftest import Boot
from .machine import STORE, Machine, Program

Both = tuple[Program, Program]
LINES = b"one\ntwo\nthree\nfour\nfive\n"


@pytest.fixture
async def both(machine: Machine) -> Both:
    """Ann, who has to ask, and Bob, who writes; `file`, `other` and `directory/inner` are in version 1."""
    bob = machine.writes("bob")
    await bob.save("file", LINES)
    await bob.save("other", b"other\n")
    bob.mkdir("directory")
    await bob.save("directory/inner", b"inner\n")
    await machine.seal()
    return machine.asks("ann"), bob


def newest(machine: Machine) -> Version:
    with machine.repository.engine.reading() as reader:
        return next(log.versions(reader, catalog.named(reader, STORE).id))


def node(program: Program, path: str) -> int:
    return program.stat(path).inode & NODE_MASK


async def test_an_approved_version_is_the_authors_own_and_says_who_approved_it(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    await ann.save("file", b"ann\n")
    await ann.save("new", b"new\n")
    before = node(ann, "file"), node(ann, "new")
    await machine.seal()
    bob.list()
    machine.invalidator.clear()
    await machine.approve(1)
    version = newest(machine)
    assert (version.number, version.author.actor, version.via, version.flags) == (
        2,
        "ann",
        "approval",
        ("approved",),
    )
    assert version.message == "pending 1, approved by pat: said so"
    assert machine.changes()[1] == ["modified file", "created new"]
    for someone in (ann, bob, machine.reads()):
        assert (someone.read("file"), someone.read("new")) == (b"ann\n", b"new\n")
        assert (node(someone, "file"), node(someone, "new")) == before
    assert (bob.stat("").inode, b"new") in machine.invalidator.entries
    assert (bob.stat("file").inode, True) in machine.invalidator.inodes
    assert machine.pending() == [(1, "approved", ["modified file", "created new"])]
    assert "pending 1 was approved by pat as version 2" in ann.read(".versions/status").decode()


async def test_after_it_the_session_follows_again(machine: Machine, both: Both) -> None:
    ann, bob = both
    await ann.save("file", b"ann\n")
    ann.unlink("other")
    await machine.approve_sealed(1)
    assert machine.live_fork(ann).fork_tree.own == set()
    assert machine.live_fork(ann).tree.space == machine.live().tree.space
    await bob.save("file", b"bob\n")
    await bob.save("other", b"bob\n")
    assert (ann.read("file"), ann.read("other")) == (b"bob\n", b"bob\n")
    await ann.save("file", b"again\n")
    await machine.approve_sealed(2)
    assert bob.read("file") == b"again\n"


async def test_what_others_did_elsewhere_is_no_conflict(machine: Machine, both: Both) -> None:
    ann, bob = both
    await ann.save("directory/mine", b"mine\n")
    await machine.seal()
    await bob.save("other", b"bob\n")
    bob.rename("directory", "moved")
    await bob.save("moved/theirs", b"theirs\n")
    await machine.approve(1)
    assert bob.list("moved") == ann.list("moved") == ["inner", "mine", "theirs"]
    assert machine.changes()[-1] == ["created moved/mine"]


@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "unsealed"])
async def test_a_file_that_is_no_longer_what_it_was_is_named_and_nothing_is_changed(
    machine: Machine, both: Both, sealed: bool
) -> None:
    ann, bob = both
    await ann.save("file", b"ann\n")
    await ann.save("new", b"ann\n")
    ann.unlink("other")
    if sealed:
        await machine.seal()
    await bob.save("file", b"bob\n")
    await bob.save("new", b"bob\n")
    await machine.seal()
    with pytest.raises(Conflict, match=r"made from memory/digest/state@1; file, new is not what it was"):
        await machine.approve(1)
    assert machine.tree()["file"] == b"bob\n"
    assert machine.tree()["other"] == b"other\n"
    assert machine.pending()[0][1] == "open"
    assert ann.read("file") == b"ann\n"


async def test_texts_are_merged_line_by_line_when_asked_to(machine: Machine, both: Both) -> None:
    ann, bob = both
    await ann.save("file", LINES.replace(b"one", b"ONE"))
    await ann.save("new", b"new\n")
    await machine.seal()
    await bob.save("file", LINES.replace(b"five", b"FIVE"))
    await machine.seal()
    await machine.approve(1, merge=True)
    merged = LINES.replace(b"one", b"ONE").replace(b"five", b"FIVE")
    assert ann.read("file") == bob.read("file") == machine.tree()["file"] == merged
    assert newest(machine).author.actor == "ann"
    assert machine.changes()[-1] == ["modified file", "created new"]
    assert machine.live_fork(ann).fork_tree.own == set()


async def test_what_cannot_be_merged_is_refused_whole(machine: Machine, both: Both) -> None:
    ann, bob = both
    await ann.save("file", LINES.replace(b"one", b"ann"))
    await ann.save("other", b"ann\n")
    await machine.seal()
    await bob.save("file", LINES.replace(b"one", b"bob"))
    await machine.seal()
    with pytest.raises(Conflict, match="file cannot be merged"):
        await machine.approve(1, merge=True)
    assert machine.tree()["other"] == b"other\n"


@pytest.mark.parametrize("atomically", [False, True], ids=["in place", "atomically"])
async def test_a_merge_follows_a_file_that_was_renamed_meanwhile(
    machine: Machine, both: Both, atomically: bool
) -> None:
    ann, bob = both
    mine = LINES.replace(b"one", b"ONE")
    await (ann.save_atomically("file", mine, ".tmp-1") if atomically else ann.save("file", mine))
    await machine.seal()
    bob.rename("file", "directory/between")
    await machine.seal()
    bob.rename("directory/between", "directory/now")
    await bob.save_atomically("directory/now", LINES.replace(b"five", b"FIVE"), ".tmp-2")
    await bob.save("file", b"another\n")
    await machine.seal()
    with pytest.raises(Conflict, match=r"file \(now directory/now\) is not what it was .* with --merge"):
        await machine.approve(1)
    await machine.approve(1, merge=True)
    merged = LINES.replace(b"one", b"ONE").replace(b"five", b"FIVE")
    for someone in (ann, bob):
        assert (someone.read("directory/now"), someone.read("file")) == (merged, b"another\n")
        assert someone.list("directory") == ["inner", "now"]
    assert machine.changes()[-1] == ["modified directory/now"]
    assert machine.live_fork(ann).fork_tree.own == set()


@pytest.mark.parametrize("edited", [False, True], ids=["renamed", "renamed and edited"])
@pytest.mark.parametrize("linked", [False, True], ids=["one name", "two names"])
async def test_a_merge_renames_a_file_that_was_changed_meanwhile(
    machine: Machine, both: Both, edited: bool, linked: bool
) -> None:
    ann, bob = both
    if linked:
        bob.link("file", "second")
        await machine.seal()
    expected = LINES.replace(b"five", b"FIVE")
    ann.rename("file", "directory/mine")
    if edited:
        await ann.save("directory/mine", LINES.replace(b"one", b"ONE"))
        expected = expected.replace(b"one", b"ONE")
    await machine.seal()
    await bob.save("file", LINES.replace(b"five", b"FIVE"))
    await machine.seal()
    with pytest.raises(Conflict, match="with --merge"):
        await machine.approve(1)
    await machine.approve(1, merge=True)
    names = {"directory/mine", *(["second"] if linked else [])}
    assert set(machine.tree()) == {"other", "directory", "directory/inner", *names}
    for someone in (ann, bob):
        assert {someone.read(name) for name in names} == {expected}
        assert someone.list() == ["directory", "other", *(["second"] if linked else [])]
    assert machine.live_fork(ann).fork_tree.own == set()


async def test_a_merge_of_two_renames_to_one_name_keeps_both_changes(machine: Machine, both: Both) -> None:
    ann, bob = both
    ann.rename("file", "same")
    await ann.save("same", LINES.replace(b"one", b"ONE"))
    await machine.seal()
    bob.rename("file", "same")
    await bob.save("same", LINES.replace(b"five", b"FIVE"))
    await machine.seal()
    await machine.approve(1, merge=True)
    assert bob.read("same") == ann.read("same") == LINES.replace(b"one", b"ONE").replace(b"five", b"FIVE")


@pytest.mark.parametrize("how", ["removed", "renamed", "replaced"])
async def test_what_was_not_only_changed_and_was_renamed_meanwhile_is_named_with_both_paths(
    machine: Machine, both: Both, how: str
) -> None:
    ann, bob = both
    if how == "removed":
        ann.unlink("file")
    elif how == "renamed":
        ann.rename("file", "mine")
    else:
        ann.unlink("file")
        ann.mkdir("file")
    await machine.seal()
    bob.rename("file", "theirs")
    await machine.seal()
    for merge in (False, True):
        with pytest.raises(Conflict, match=r"file \(now theirs\)") as refused:
            await machine.approve(1, merge=merge)
        assert "--merge" not in refused.value.message
    assert set(machine.tree()) == {"theirs", "other", "directory", "directory/inner"}


async def test_a_directory_that_was_renamed_meanwhile_is_not_removed(machine: Machine, both: Both) -> None:
    ann, bob = both
    ann.unlink("directory/inner")
    ann.rmdir("directory")
    await machine.seal()
    bob.rename("directory", "kept")
    await machine.seal()
    with pytest.raises(Conflict, match=r"directory \(now kept\)"):
        await machine.approve(1, merge=True)
    assert bob.read("kept/inner") == b"inner\n"


async def test_who_gave_it_the_same_name_is_no_conflict(machine: Machine, both: Both) -> None:
    for someone in both:
        someone.rename("file", "same")
        someone.rename("directory", "as well")
        await machine.seal()
    decided = await machine.approve(1)
    assert (decided.version, decided.pending.result) == (None, 2)


async def test_the_mode_of_the_root_is_approved_unless_another_changed_it(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    await ann.set("", mode=0o700)
    await machine.seal()
    await bob.save("new", b"new\n")  # which gives the root another time
    decided = await machine.approve_sealed(1)
    assert (decided.version, machine.changes()[-1]) != (None, [])
    assert bob.stat("").mode & 0o777 == ann.stat("").mode & 0o777 == 0o700
    await ann.set("", mode=0o750)
    await machine.seal()
    await bob.set("", mode=0o755)
    await machine.seal()
    with pytest.raises(Conflict, match="the root is not what it was"):
        await machine.approve(2)


async def test_a_merge_is_advised_where_it_can_work_and_nowhere_else(machine: Machine, both: Both) -> None:
    ann, bob = both
    await bob.save("binary", b"\0one")
    await machine.seal()
    await ann.save("file", LINES.replace(b"one", b"ann"))
    await machine.seal()
    await ann.save("binary", b"\0two")
    await machine.seal()
    ann.unlink("other")
    await machine.seal()
    await bob.save("file", LINES.replace(b"five", b"bob"))
    await bob.save("binary", b"\0three")
    await bob.save("other", b"bob\n")
    await machine.seal()
    advised = []
    for number in (1, 2, 3):
        with pytest.raises(Conflict, match="is not what it was") as refused:
            await machine.approve(number)
        advised.append("--merge" in refused.value.message)
    assert advised == [True, False, False]


async def test_what_another_made_the_same_of_is_no_conflict(machine: Machine, both: Both) -> None:
    ann, bob = both
    await ann.save("file", b"same\n")
    await machine.seal()
    await bob.save("file", b"same\n")
    decided = await machine.approve(1)
    assert decided.version is None
    assert decided.pending.result == 2
    await bob.save("file", b"bob\n")
    assert ann.read("file") == b"bob\n"


async def test_what_changes_nothing_is_approved_without_a_version_of_anybody(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    for someone in both:
        await someone.save("new", b"same\n")
        await machine.seal()
    await machine.approve(1)
    said = "pending 1 was approved by pat, with nothing left to change: said so"
    assert said in ann.read(".versions/status").decode()
    with machine.repository.engine.reading() as reader:
        store = catalog.named(reader, STORE)
        told = pending.describe(reader, store, pending.get(reader, store, 1))
        [claim] = claims(reader, "ann", 0)
    assert (told["state"], told["result"], told["unchanged"]) == ("approved", None, True)
    assert (claim.state, claim.pending, claim.stands) == ("approved", 1, True)
    await ann.save("new", b"other\n")
    decided = await machine.approve_sealed(2)
    assert (decided.pending.result, decided.pending.unchanged) == (3, False)
    assert bob.read("new") == b"other\n"


async def test_what_builds_on_an_open_one_waits_for_it(machine: Machine, both: Both) -> None:
    ann, _ = both
    ann.mkdir("made")
    await machine.seal()
    await ann.save("made/file", b"1\n")
    await machine.seal()
    await ann.save("made/file", b"2\n")
    await machine.seal()
    await ann.save("other", b"ann\n")
    await machine.seal()
    with pytest.raises(Conflict, match=r"pending 2 of .* builds on pending 1, still open"):
        await machine.approve(2)
    with pytest.raises(Conflict, match=r"pending 3 of .* builds on pending 1 and 2, still open"):
        await machine.approve(3)
    await machine.approve(4)
    for number in (1, 2, 3):
        await machine.approve(number)
        assert ann.read("made/file") == b"2\n"
    assert machine.tree()["made/file"] == b"2\n"
    assert [state for _, state, _ in machine.pending()] == ["approved"] * 4
    with pytest.raises(Conflict, match=r"pending 4 .* was approved by pat already"):
        await machine.approve(4)
    with pytest.raises(NotFound):
        await machine.approve(5)


async def test_a_rejected_change_is_gone_from_the_session_and_stays_readable(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    await ann.save("file", b"ann\n")
    ann.unlink("other")
    ann.mkdir("made")
    await ann.save("made/file", b"made\n")
    await machine.seal()
    ann.list("made")
    machine.invalidator.clear()
    await machine.reject(1)
    assert ann.list() == ["directory", "file", "other"]
    assert ann.read("file") == LINES
    assert (ann.stat("").inode, b"made") in machine.invalidator.entries
    assert (ann.stat("file").inode, True) in machine.invalidator.inodes
    assert "pending 1 was rejected by pat: said so" in ann.read(".versions/status").decode()
    assert machine.versions()[-1].number == 1
    fork = machine.live_fork(ann).store
    assert machine.fork_tree(fork, 1)["made/file"] == b"made\n"
    await bob.save("file", b"bob\n")
    assert ann.read("file") == b"bob\n"
    await ann.save("file", b"again\n")
    await machine.approve_sealed(2)
    assert bob.read("file") == b"again\n"


async def test_a_directory_that_comes_back_has_what_others_put_into_it(machine: Machine, both: Both) -> None:
    ann, bob = both
    bob.mkdir("empty")
    assert ann.list("empty") == []
    ann.rmdir("empty")
    await machine.seal()
    await machine.reject(1)
    await bob.save("empty/new", b"new\n")
    assert ann.list("empty") == ["new"]


async def test_a_rejected_change_stays_in_view_while_a_later_one_builds_on_it(
    machine: Machine, both: Both
) -> None:
    ann, _ = both
    await ann.save("file", b"1\n")
    await ann.save("other", b"ann\n")
    await machine.seal()
    await ann.save("file", b"2\n")
    await machine.seal()
    await machine.reject(1)
    assert (ann.read("file"), ann.read("other")) == (b"2\n", b"ann\n")
    assert "still shown: a later change builds on it" in ann.read(".versions/status").decode()
    with pytest.raises(Conflict, match="file is not what it was"):
        await machine.approve(2)
    await machine.reject(2)
    assert (ann.read("file"), ann.read("other")) == (LINES, b"other\n")


async def test_a_rejected_change_leaves_the_older_one_that_still_waits(machine: Machine, both: Both) -> None:
    ann, bob = both
    await ann.save("file", b"1\n")
    await machine.seal()
    ann.unlink("file")
    await machine.seal()
    await machine.reject(2)
    assert ann.read("file") == b"1\n"
    await machine.approve(1)
    assert bob.read("file") == b"1\n"
    assert machine.live_fork(ann).fork_tree.own == set()


async def test_what_was_changed_after_it_was_offered_stays(machine: Machine, both: Both) -> None:
    ann, bob = both
    await ann.save("file", b"1\n")
    await machine.seal()
    await ann.save("file", b"2\n")
    await machine.approve(1)
    assert (ann.read("file"), bob.read("file")) == (b"2\n", b"1\n")
    await machine.approve(2)
    assert bob.read("file") == b"2\n"


async def test_hard_links_and_moved_directories_become_what_they_are_in_the_fork(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    ann.link("file", "directory/link")
    ann.rename("directory", "moved")
    await ann.save("moved/link", b"ann\n")
    await machine.approve_sealed(1)
    assert bob.read("file") == bob.read("moved/link") == b"ann\n"
    assert bob.stat("file").links == 2
    assert node(bob, "file") == node(bob, "moved/link") == node(ann, "file")
    ann.unlink("file")
    await machine.approve_sealed(2)
    assert bob.stat("moved/link").links == 1


async def test_a_directory_that_is_not_empty_any_more_is_not_removed(machine: Machine, both: Both) -> None:
    ann, bob = both
    ann.unlink("directory/inner")
    ann.rmdir("directory")
    await machine.seal()
    await bob.save("directory/new", b"new\n")
    with pytest.raises(Conflict, match="directory/new"):
        await machine.approve(1)
    bob.unlink("directory/new")
    await machine.approve(1)
    assert not bob.exists("directory")


async def test_two_directories_do_not_come_to_lie_in_each_other(machine: Machine, both: Both) -> None:
    ann, bob = both
    bob.mkdir("second")
    await machine.seal()
    ann.rename("directory", "second/directory")
    await machine.seal()
    bob.rename("second", "directory/second")
    with pytest.raises(Conflict, match="directory"):
        await machine.approve(1)
    assert bob.list("directory") == ["inner", "second"]


async def test_a_directory_that_is_gone_is_named(machine: Machine, both: Both) -> None:
    ann, bob = both
    await ann.save("directory/mine", b"mine\n")
    await machine.seal()
    bob.unlink("directory/inner")
    bob.rmdir("directory")
    with pytest.raises(Conflict, match="directory/mine is not what it was"):
        await machine.approve(1)


async def test_quota_and_archive_count_when_it_is_approved(machine: Machine) -> None:
    machine.create_store("memory/digest/small", limits=Limits(quota=100))
    ann, bob = machine.asks("ann", "memory/digest/small"), machine.writes("bob", "memory/digest/small")
    await ann.save("mine", b"a" * 60)
    await machine.seal()
    await bob.save("theirs", b"b" * 60)
    with pytest.raises(QuotaExceeded, match="over its quota"):
        await machine.approve(1, "memory/digest/small")
    bob.unlink("theirs")
    await machine.seal()

    def archive(writer: Writer) -> None:
        store = catalog.named(writer, "memory/digest/small")
        catalog.put(writer, msgspec.structs.replace(store, archived=True))

    machine.repository.transact(archive)
    with pytest.raises(Archived):
        await machine.approve(1, "memory/digest/small")


async def test_who_overwrites_what_another_wrote_meanwhile_is_flagged(machine: Machine, both: Both) -> None:
    ann, bob = both
    mine = ann.open("file", truncate=True)
    await mine.write(b"ann\n")
    await bob.save("file", b"bob\n")
    await mine.close()
    await machine.approve_sealed(1)
    version = newest(machine)
    assert version.flags == ("approved", "concurrent")
    assert version.overwrites == (2,)


async def test_decisions_are_there_after_a_crash(boot: Boot, machine: Machine, both: Both) -> None:
    ann, _ = both
    fork = machine.live_fork(ann).store.id
    for path in ("file", "other", "directory/inner"):
        await ann.save(path, b"ann\n")
        await machine.seal()
    await machine.approve(1)
    await machine.reject(2)
    machine.crash()
    again = await boot(state=machine.state)
    ann, bob = again.asks("ann", fork=fork), again.writes("bob")
    assert [ann.read(path) for path in ("file", "other", "directory/inner")] == [
        b"ann\n",
        b"other\n",
        b"ann\n",
    ]
    await bob.save("file", b"bob\n")
    await again.seal()
    await again.approve(3)
    assert bob.read("directory/inner") == b"ann\n"
    for version, expected in ((1, b"other\n"), (2, b"ann\n"), (3, b"ann\n")):
        assert again.fork_tree(again.live_fork(ann).store, version)["other"] == expected


async def test_what_waits_is_a_whole_tree_below_versions_for_its_session_and_for_people(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    await ann.save("directory/mine", b"mine\n")
    ann.unlink("other")
    await machine.seal()
    await bob.save("file", b"bob\n")
    assert ann.list(".versions") == ["1", "latest", "log", "pending", "status"]
    assert ann.list(".versions/pending") == ["1"]
    assert ann.list(".versions/pending/1") == ["directory", "file"]
    assert ann.read(".versions/pending/1/directory/mine") == b"mine\n"
    assert ann.read(".versions/pending/1/file") == LINES
    for other in (bob, machine.reads(), machine.asks("eve")):
        assert other.list(".versions/pending") == []
        assert not other.exists(".versions/pending/1")
    people = Program(machine.filesystem, machine.filesystem.waiting_view(STORE))
    assert people.list() == ["1"]
    assert people.list("1") == ["directory", "file"]
    await machine.reject(1)
    assert people.list() == ann.list(".versions/pending") == []
    assert ann.read(".versions/pending/1/directory/mine") == b"mine\n"
    assert not ann.exists(".versions/pending/2")


async def test_what_was_decided_is_no_tree_any_more_once_retention_removed_what_it_was_made_from(
    machine: Machine, both: Both
) -> None:
    ann, bob = both
    await ann.save("mine", b"mine\n")
    await machine.seal()
    await bob.save("file", b"bob\n")
    await machine.seal()
    store = machine.live().store

    def remove() -> None:
        machine.repository.transact(lambda writer: set_oldest(writer, store.id, 2))
        end_removed(machine.filesystem, store, 2, ())

    remove()
    assert ann.list(".versions/pending/1") == ["directory", "file", "mine", "other"]
    [entered] = [each for each in machine.filesystem.views.values() if isinstance(each, PinnedView)]
    await machine.reject(1)
    assert not ann.exists(".versions/pending/1")
    remove()
    assert entered not in machine.filesystem.views.values()
