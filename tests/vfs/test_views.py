"""What each kind of view lets one do, and what views see of each other."""

import gc
import os
import tracemalloc
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from engramfs.errors import (
    Archived,
    CrossesViews,
    EngramError,
    NoEntry,
    NotPermitted,
    ReadOnly,
    Stale,
)
from engramfs.history import catalog
from engramfs.model.entry import NODE_BITS, ROOT_NODE
from engramfs.storage.protocol import Writer
from engramfs.vfs.attributes import SetAttributes
from engramfs.vfs.view import View, check_same

from .conftest import Boot
from .machine import STORE, Machine, Program


async def every_way_to_write(view: View, node: int) -> list[EngramError | None]:
    """What each method of a view that changes something raises."""
    attempts: list[Callable[[], object]] = [
        lambda: view.create(ROOT_NODE, b"new", 0o644),
        lambda: view.make_file(ROOT_NODE, b"new", 0o644),
        lambda: view.make_directory(ROOT_NODE, b"new", 0o755),
        lambda: view.make_symlink(ROOT_NODE, b"new", b"target"),
        lambda: view.make_special(ROOT_NODE, b"new"),
        lambda: view.link(node, ROOT_NODE, b"new"),
        lambda: view.unlink(ROOT_NODE, b"file"),
        lambda: view.remove_directory(ROOT_NODE, b"directory"),
        lambda: view.rename(ROOT_NODE, b"file", ROOT_NODE, b"new", 0),
        lambda: view.set_xattr(node, b"user.x", b"1"),
        lambda: view.remove_xattr(node, b"user.x"),
        lambda: view.open(node, write=True, truncate=False),
        lambda: view.open(node, write=False, truncate=True),
        lambda: view.check_access(node, os.W_OK),
        lambda: view.set_attributes(node, SetAttributes(mode=0o600)),
        lambda: view.set_attributes(node, SetAttributes(size=0)),
        lambda: view.write(node, 0, b"x"),
    ]
    raised: list[EngramError | None] = []
    for attempt in attempts:
        try:
            waiting = attempt()
            if isinstance(waiting, Awaitable):
                await waiting
            raised.append(None)
        except EngramError as error:
            raised.append(error)
    return raised


@pytest.fixture
async def written(machine: Machine) -> Machine:
    """One version with a file and a directory."""
    ann = machine.writes()
    await ann.save("file", b"content")
    ann.mkdir("directory")
    await machine.seal()
    return machine


@pytest.mark.parametrize("kind", ["read_only", "pinned", "old version"])
async def test_a_view_that_is_not_writable_refuses_every_write_and_records_nothing(
    written: Machine, kind: str
) -> None:
    reader = {
        "read_only": written.reads(),
        "pinned": written.reads_version(1),
        "old version": written.reads(),
    }[kind]
    inode = reader.stat(".versions/1/file" if kind == "old version" else "file").inode
    view, node = written.filesystem.find(inode)
    raised = await every_way_to_write(view, node)
    assert {type(error) for error in raised} == {ReadOnly}
    assert written.journal.records == 0
    await written.seal()
    assert written.changes() == [["created directory", "created file"]]


async def test_a_pinned_view_stays_what_it_was(written: Machine) -> None:
    pinned = written.reads_version(1)
    ann = written.writes()
    await ann.save("file", b"other")
    ann.rmdir("directory")
    await ann.save("more", b"")
    await written.seal()
    assert pinned.list() == ["directory", "file"]
    assert pinned.read("file") == b"content"


async def test_another_view_sees_a_file_as_of_its_last_close(machine: Machine) -> None:
    ann, bob, reader = machine.writes(), machine.writes("bob"), machine.reads()
    opened = ann.create("file")
    await opened.write(b"half")
    assert ann.read("file") == b"half"
    assert bob.read("file") == reader.read("file") == b""
    await opened.close()
    assert bob.read("file") == reader.read("file") == b"half"


async def test_inode_numbers_are_the_number_of_the_view_and_the_node(machine: Machine) -> None:
    ann, reader = machine.writes(), machine.reads()
    await ann.save("file", b"")
    mine, theirs = ann.stat("file").inode, reader.stat("file").inode
    assert mine != theirs
    assert mine & (1 << NODE_BITS) - 1 == theirs & (1 << NODE_BITS) - 1
    assert mine >> NODE_BITS == ann.view.number


async def test_read_only_views_are_shared_and_writable_ones_are_not(written: Machine) -> None:
    assert written.reads().view is written.reads().view
    assert written.reads_version(1).view is written.reads_version(1).view
    assert written.reads_version(1).view is not written.filesystem.pinned_view(STORE, 1, uid=1000)
    assert written.writes().view is not written.writes().view


async def test_a_call_with_names_in_two_views_is_refused(machine: Machine) -> None:
    with pytest.raises(CrossesViews):
        check_same(machine.writes().view, machine.writes("bob").view)


async def test_files_belong_to_the_session_whoever_made_them(machine: Machine) -> None:
    await machine.writes().save("file", b"")
    mine = Program(machine.filesystem, machine.filesystem.live_view(STORE, uid=1000, gid=100))
    shown = mine.stat("file")
    assert (shown.uid, shown.gid) == (1000, 100)


async def test_chown_to_others_is_not_permitted(machine: Machine) -> None:
    ann = machine.writes()
    await ann.save("file", b"")
    await ann.set("file", uid=0, gid=0)
    with pytest.raises(NotPermitted):
        await ann.set("file", uid=1000)


async def test_an_ended_view_is_stale_and_its_unclosed_files_are_gone(machine: Machine) -> None:
    ann, bob = machine.writes(), machine.writes("bob")
    await ann.save("kept", b"closed")
    unclosed = ann.create("unclosed")
    await unclosed.write(b"never closed")
    dirty = ann.open("kept")
    await dirty.write(b"unclosed")
    machine.filesystem.end(ann.view)
    with pytest.raises(Stale):
        machine.filesystem.find(ann.view.inode(ROOT_NODE))
    with pytest.raises(Stale):
        await dirty.write(b"more")
    assert bob.list() == ["kept"]
    assert bob.read("kept") == b"closed"
    await machine.seal()
    assert machine.tree() == {"kept": b"closed"}
    assert machine.journal.records == 0
    assert os.listdir(machine.repository.spool_path) == []


async def test_an_archived_store_is_read_only(written: Machine) -> None:
    ann = written.writes()

    def archive_it(writer: Writer) -> None:
        catalog.put(writer, msgspec.structs.replace(catalog.named(writer, STORE), archived=True))

    written.repository.transact(archive_it)
    with written.repository.engine.reading() as reader:
        written.filesystem.describe(catalog.named(reader, STORE))
    with pytest.raises(Archived):
        await ann.save("file", b"x")
    with pytest.raises(Archived):
        written.writes("bob")
    assert ann.read("file") == b"content"


async def test_a_deleted_store_is_stale(written: Machine) -> None:
    ann = written.writes()
    with written.repository.engine.reading() as reader:
        store = catalog.named(reader, STORE)
    written.filesystem.drop_store(store)
    with pytest.raises(Stale):
        written.filesystem.find(ann.view.inode(ROOT_NODE))


async def test_nodes_without_a_name_are_let_go_once_the_kernel_forgot_them(machine: Machine) -> None:
    ann, bob = machine.writes(), machine.reads()
    for number in range(30):
        await ann.save_atomically("file", b"%d" % number, ".tmp-1")
        bob.stat("file")
        if number % 7 == 0:
            await machine.seal()
    await ann.save("file~", b"")
    ann.unlink("file~")
    ann.mkdir("directory")
    ann.rmdir("directory")
    await machine.seal()
    nodes = machine.live().tree.nodes
    assert len(nodes) > 10
    ann.forget_all()
    bob.forget_all()
    assert [machine.live().tree.path_of(node) for node in nodes.values()] == [b"", b"file"]


async def test_content_is_not_kept_in_memory_once_it_is_sealed(machine: Machine) -> None:
    ann = machine.writes()
    for number in range(20):
        ann.mkdir(f"d{number}")
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(200):
            await ann.save(f"d{number % 20}/{number}", os.urandom(50_000))
            if number % 20 == 0:
                await machine.seal()
        await machine.seal()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2_000_000  # of 10,000,000 that were written


async def test_what_a_session_kept_to_itself_goes_with_it(machine: Machine) -> None:
    ann = machine.writes()
    await ann.save("file~", b"backup")
    ann.mkdir(".tmp-1")
    await ann.save(".tmp-1/file", b"")
    ann.forget_all()
    machine.filesystem.end(ann.view)
    await machine.seal()
    assert machine.journal.records == 0
    assert machine.live().tree.used == 0


async def test_the_views_of_old_versions_go_when_the_kernel_has_forgotten_them(written: Machine) -> None:
    reader = written.reads()
    before = set(written.filesystem.views)
    reader.read(".versions/1/file")
    reader.read_link(".versions/latest")
    assert len(written.filesystem.views) == len(before) + 2
    reader.forget_all()
    assert set(written.filesystem.views) == before
    assert reader.read(".versions/1/file") == b"content"


async def test_a_missing_name_may_be_remembered_by_the_kernel(written: Machine) -> None:
    for program in (written.reads(), written.writes(), written.reads_version(1)):
        assert program.view.missing_timeout >= 3600
        with pytest.raises(NoEntry):
            program.stat("missing")


async def test_a_session_sees_no_space_but_that_of_its_store(boot: Boot) -> None:
    machine = await boot()
    ann = machine.writes()
    await ann.save("file", b"x" * 1000)
    space = machine.filesystem.space()
    assert space.total == machine.live().store.limits.quota
    assert space.total - space.free == 1000
