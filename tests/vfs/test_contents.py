"""Content: truncation, holes, limits, times and extended attributes."""

import errno
import os

import pytest
import trio

from engramfs.errors import (
    AccessDenied,
    Corrupt,
    FileTooLarge,
    IsDirectory,
    NoAttribute,
    NotPermitted,
    QuotaExceeded,
    RangeTooSmall,
    Unsupported,
)
from engramfs.model.store import Limits
from engramfs.storage import keys
from engramfs.storage.protocol import Table, Writer
from engramfs.vfs.attributes import SetAttributes

from .conftest import Boot
from .machine import STORE, Machine, Program

SMALL = "memory/digest/small"


@pytest.fixture
def ann(machine: Machine) -> Program:
    return machine.writes()


# Size


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 1 << 20, (1 << 20) + 1, 3_000_000])
async def test_content_of_any_size_comes_back(boot: Boot, size: int) -> None:
    machine = await boot()
    content = os.urandom(size)
    await machine.writes().save("file", content)
    assert machine.reads().read("file") == content
    await machine.stop()
    machine = await boot()
    assert machine.reads().read("file") == machine.tree()["file"] == content


@pytest.mark.parametrize("size", [10, 300_000])
async def test_truncating_by_path_is_recorded_at_once(machine: Machine, ann: Program, size: int) -> None:
    content = os.urandom(size)
    await ann.save("file", content)
    await ann.set("file", size=size // 2)
    await machine.seal()
    assert machine.tree() == {"file": content[: size // 2]}
    await ann.set("file", size=size * 2)
    await machine.seal()
    assert machine.tree() == {"file": content[: size // 2] + bytes(size * 2 - size // 2)}
    await ann.set("file", size=0)
    await machine.seal()
    assert machine.tree() == {"file": b""}
    assert ann.view.files == {}  # type: ignore[attr-defined]


async def test_truncating_a_descriptor_is_recorded_at_its_close(machine: Machine, ann: Program) -> None:
    await ann.save("file", b"content")
    opened = ann.open("file")
    await opened.truncate(3)
    assert ann.stat("file").size == 3
    assert machine.reads().read("file") == b"content"
    await opened.close()
    assert machine.reads().read("file") == b"con"


async def test_open_with_truncate_is_recorded_at_the_close_even_without_a_write(
    machine: Machine, ann: Program
) -> None:
    await ann.save("file", b"content")
    opened = ann.open("file", truncate=True)
    assert ann.read("file") == b""
    assert machine.reads().read("file") == b"content"
    await opened.close()
    assert machine.reads().read("file") == b""


async def test_holes_read_as_zeros_and_take_no_blocks_while_open(machine: Machine, ann: Program) -> None:
    opened = ann.create("file")
    await opened.write(b"end", 10_000_000)
    shown = ann.stat("file")
    assert shown.size == 10_000_003
    assert shown.blocks < 100
    await opened.close()
    await machine.seal()
    assert machine.tree() == {"file": bytes(10_000_000) + b"end"}


async def test_writes_through_two_descriptors_of_one_view_are_one_content(
    machine: Machine, ann: Program
) -> None:
    first, second = ann.create("file"), ann.open("file")
    await first.write(b"aaaa")
    await second.write(b"bb", 1)
    assert first.read() == b"abba"
    await first.close()
    assert machine.reads().read("file") == b"abba"
    await second.close()


async def test_a_close_while_a_large_content_is_being_recorded_waits_for_it(
    machine: Machine, ann: Program
) -> None:
    opened = ann.create("file")
    await opened.write(b"x" * 3_000_000)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(opened.close_duplicate)
        nursery.start_soon(opened.write, b"y" * 3_000_000, 0)
    await opened.close()
    await machine.seal()
    assert machine.tree() == {"file": b"y" * 3_000_000}
    assert machine.changes()[-1] in (["created file"], ["modified file"])


async def test_a_large_file_that_is_removed_while_it_is_recorded_stays_removed(
    machine: Machine, ann: Program
) -> None:
    opened = ann.create("file")
    await opened.write(b"x" * 3_000_000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(opened.close)
        await trio.sleep(0)
        ann.unlink("file")
    await machine.seal()
    assert machine.versions() == []


# Limits


@pytest.fixture
def bounded(machine: Machine) -> Program:
    """A program in a store of at most 1,000 bytes, 600 for a file."""
    machine.create_store(SMALL, limits=Limits(max_file_size=600, quota=1000))
    return machine.writes(store=SMALL)


async def test_a_file_over_the_limit_is_refused_and_stays_as_it_was(
    machine: Machine, bounded: Program
) -> None:
    await bounded.save("file", b"x" * 600)
    opened = bounded.open("file")
    with pytest.raises(FileTooLarge):
        await opened.write(b"y", 600)
    with pytest.raises(FileTooLarge):
        await opened.truncate(601)
    with pytest.raises(FileTooLarge):
        await opened.write(b"", 1 << 61)
    await opened.close()
    assert bounded.read("file") == b"x" * 600


async def test_the_quota_counts_what_is_written_and_not_closed_yet(
    machine: Machine, bounded: Program
) -> None:
    await bounded.save("a", b"x" * 500)
    first, second = bounded.create("b"), bounded.create("c")
    await first.write(b"x" * 400)
    with pytest.raises(QuotaExceeded):
        await second.write(b"x" * 101)
    await second.write(b"x" * 100)
    await first.close()
    await second.close()
    assert machine.live(SMALL).space_taken == 1000


async def test_space_comes_back_when_files_shrink_or_go(machine: Machine, bounded: Program) -> None:
    await bounded.save("a", b"x" * 600)
    await bounded.save("b", b"x" * 400)
    bounded.link("b", "c")
    await bounded.save("a", b"x" * 100)
    bounded.unlink("b")
    assert bounded.view.space().free == 500
    bounded.unlink("c")
    assert bounded.view.space().free == 900
    await bounded.save("d", b"x" * 600)
    await machine.seal()
    assert bounded.view.space().free == 300


async def test_a_full_store_can_still_be_saved_to_with_less(machine: Machine, bounded: Program) -> None:
    await bounded.save("a", b"x" * 500)
    await bounded.save("b", b"x" * 500)
    await bounded.save("a", b"y" * 500)
    await bounded.save("a", b"")
    assert machine.live(SMALL).space_taken == 500


async def test_the_usage_is_right_again_after_a_restart(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes()
    await ann.save("a", b"x" * 100)
    ann.link("a", "b")
    ann.symlink("target", "c")
    ann.mkdir("d")
    used = machine.live().tree.used
    await machine.stop()
    assert used == (await boot()).live().tree.used == 100


# Damage


async def test_damaged_content_is_an_error_and_is_never_taken_for_the_file(
    machine: Machine, ann: Program
) -> None:
    machine.may_be_unsound = True
    content = os.urandom(3_000_000)
    await ann.save("file", content)
    await machine.seal()
    digest = machine.live().tree.nodes[ann.node("file")].entry.digest

    def damage(writer: Writer) -> None:
        row = bytearray(writer.get(Table.BLOBS, keys.blob(digest, 2)) or b"")
        row[-1] ^= 1
        writer.put(Table.BLOBS, keys.blob(digest, 2), bytes(row))

    machine.repository.transact(damage)
    reader = machine.reads()
    assert reader.view.read(reader.node("file"), 0, 4096) == content[:4096]
    with pytest.raises(Corrupt, match=f"{STORE}:file: blob {digest.hex()} has a wrong checksum"):
        reader.read("file")
    opened = ann.open("file")
    for _ in range(2):
        with pytest.raises(Corrupt):
            await opened.append(b"line")
    with pytest.raises(Corrupt):
        opened.read()
    await opened.close()
    await machine.seal()
    assert machine.changes() == [["created file"]]
    await ann.save("file", b"whole again")
    assert reader.read("file") == b"whole again"


# Times and modes


async def test_every_content_has_a_time_of_its_own(machine: Machine, ann: Program) -> None:
    times = []
    for number in range(50):
        await ann.save("file", b"%02d" % number)
        times.append(ann.stat("file").mtime)
    assert times == sorted(set(times))


async def test_a_time_that_is_set_on_an_open_file_survives_its_close(machine: Machine, ann: Program) -> None:
    opened = ann.create("file")
    await opened.write(b"content")
    await ann.view.set_attributes(opened.node, SetAttributes(mtime=10**18))
    await opened.close()
    assert ann.stat("file").mtime == 10**18
    await machine.seal()
    assert machine.changes() == [["created file"]]


async def test_a_new_directory_inherits_the_setgid_bit(ann: Program) -> None:
    ann.mkdir("a", 0o2755)
    ann.mkdir("a/b", 0o755)
    assert ann.stat("a/b").mode & 0o7777 == 0o2755


async def test_a_change_of_mode_is_a_version(machine: Machine, ann: Program) -> None:
    await ann.save("file", b"")
    await machine.seal()
    await ann.set("file", mode=0o4755)
    await ann.set("", mode=0o700)
    await machine.seal()
    assert machine.changes()[1:] == [["modified ", "modified file"]]
    assert ann.stat("").mode & 0o7777 == 0o700


async def test_executing_what_nobody_may_execute_is_denied(ann: Program) -> None:
    await ann.save("file", b"")
    ann.view.check_access(ann.node("file"), os.R_OK | os.W_OK)
    with pytest.raises(AccessDenied):
        ann.view.check_access(ann.node("file"), os.X_OK)
    await ann.set("file", mode=0o100)
    ann.view.check_access(ann.node("file"), os.X_OK)


async def test_a_directory_is_no_file(ann: Program) -> None:
    ann.mkdir("a")
    with pytest.raises(IsDirectory):
        ann.open("a", write=False)
    with pytest.raises(IsDirectory):
        await ann.set("a", size=0)


# Extended attributes


async def test_user_attributes_are_stored_and_versioned(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes()
    await ann.save("file", b"")
    await machine.seal()
    ann.view.set_xattr(ann.node("file"), b"user.a", b"1")
    ann.view.set_xattr(ann.node("file"), b"user.b", b"\0\xff")
    await machine.seal()
    ann.view.remove_xattr(ann.node("file"), b"user.a")
    assert machine.changes()[1:] == [["modified file"]]
    await machine.stop()
    machine = await boot()
    reader, old = machine.reads(), machine.reads_version(2)
    assert reader.view.list_xattrs(reader.node("file")) == [b"user.b"]
    assert reader.view.get_xattr(reader.node("file"), b"user.b") == b"\0\xff"
    assert old.view.list_xattrs(old.node("file")) == [b"user.a", b"user.b"]


async def test_other_attributes_are_refused(ann: Program) -> None:
    await ann.save("file", b"")
    node = ann.node("file")
    with pytest.raises(Unsupported):
        ann.view.set_xattr(node, b"security.capability", b"")
    with pytest.raises(NotPermitted):
        ann.view.set_xattr(node, b"user.engramfs.store", b"other")
    with pytest.raises(RangeTooSmall):
        ann.view.set_xattr(node, b"user.large", bytes(70_000))
    with pytest.raises(NoAttribute):
        ann.view.remove_xattr(node, b"user.missing")
    with pytest.raises(NoAttribute):
        ann.view.get_xattr(node, b"user.missing")


async def test_the_marks_say_where_a_file_comes_from(machine: Machine, ann: Program) -> None:
    await ann.save("file", b"one")
    await machine.seal()
    await machine.writes("bob").save("other", b"")
    await machine.seal()
    await ann.save("new", b"")

    def marks(program: Program, path: str) -> dict[str, str]:
        return {
            name.removeprefix(b"user.engramfs.").decode(): value.decode()
            for name, value in program.view.marks(program.node(path)).items()
        }

    assert marks(ann, "file") == {
        "access": "read_write",
        "author": "digest for ann",
        "session": "ann",
        "sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
        "store": STORE,
        "version": "1",
    }
    assert marks(machine.reads(), "other")["version"] == "2"
    assert marks(machine.reads(), "other")["access"] == "read_only"
    assert "version" not in marks(ann, "new")
    assert marks(machine.reads_version(1), "file")["version"] == "1"


def test_the_errors_of_limits_are_those_that_programs_know() -> None:
    assert (FileTooLarge.errno, QuotaExceeded.errno) == (errno.EFBIG, errno.EDQUOT)
