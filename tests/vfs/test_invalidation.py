"""What one view does, the kernel must not go on believing otherwise of the others."""

import pytest

from engramfs.history import catalog, commit, restore
from engramfs.model.author import SYSTEM
from engramfs.model.entry import ROOT_NODE
from engramfs.storage.protocol import Writer

from .machine import STORE, Machine, Program


class Watched:
    """Ann changes things, Bob's kernel holds everything that there is."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.ann, self.bob = machine.writes("ann"), machine.writes("bob")

    def hold(self, *paths: str) -> None:
        for path in ("", *paths):
            self.bob.list(path)
        self.machine.invalidator.clear()

    def inode(self, path: str) -> int:
        """As Bob's kernel knows it, without a new lookup."""
        node = self.machine.live().tree.root
        for part in path.encode().split(b"/"):
            node = (node.children or {})[part] if part else node
        return self.bob.view.inode(node.id)

    def entries(self, program: Program | None = None) -> set[tuple[int, bytes]]:
        number = (program or self.bob).view.number
        return {entry for entry in self.machine.invalidator.entries if entry[0] >> 40 == number}

    def contents(self, program: Program | None = None) -> set[int]:
        number = (program or self.bob).view.number
        return {
            inode for inode, content in self.machine.invalidator.inodes if content and inode >> 40 == number
        }

    def attributes(self) -> set[int]:
        number = self.bob.view.number
        return {inode for inode, _ in self.machine.invalidator.inodes if inode >> 40 == number}


@pytest.fixture
async def watched(machine: Machine) -> Watched:
    watched = Watched(machine)
    watched.ann.mkdir("directory")
    await watched.ann.save("file", b"content")
    await watched.ann.save("directory/inner", b"content")
    watched.hold("directory")
    return watched


async def test_a_name_that_appears(watched: Watched) -> None:
    await watched.ann.save("directory/new", b"")
    assert watched.entries() == {(watched.inode("directory"), b"new")}
    assert watched.inode("directory") in watched.attributes()


async def test_a_name_that_goes(watched: Watched) -> None:
    watched.ann.unlink("directory/inner")
    assert watched.entries() == {(watched.inode("directory"), b"inner")}


async def test_a_name_that_moves(watched: Watched) -> None:
    watched.ann.rename("file", "directory/file")
    assert watched.entries() == {(watched.inode(""), b"file"), (watched.inode("directory"), b"file")}


async def test_content_that_changes_at_the_close_and_not_before(watched: Watched) -> None:
    opened = watched.ann.open("file")
    await opened.write(b"other")
    assert watched.contents() == set()
    await opened.close()
    assert watched.contents() == {watched.inode("file")}
    assert not watched.bob.view.open(watched.bob.node("file"), write=False, truncate=False).keep_cache
    assert watched.bob.view.open(watched.bob.node("file"), write=False, truncate=False).keep_cache


async def test_attributes_that_change(watched: Watched) -> None:
    await watched.ann.set("file", mode=0o600)
    assert watched.inode("file") in watched.attributes()


async def test_the_number_of_links(watched: Watched) -> None:
    watched.ann.link("file", "second")
    assert watched.inode("file") in watched.attributes()
    watched.machine.invalidator.clear()
    watched.ann.unlink("second")
    assert watched.inode("file") in watched.attributes()


async def test_the_view_that_did_it_is_told_nothing(watched: Watched) -> None:
    await watched.ann.save("file", b"other")
    watched.ann.rename("file", "renamed")
    assert watched.entries(watched.ann) == set()
    assert watched.contents(watched.ann) == set()


async def test_what_the_kernel_has_forgotten_is_not_announced(watched: Watched) -> None:
    watched.bob.forget_all()
    await watched.ann.save("file", b"other")
    await watched.ann.save("directory/new", b"")
    assert watched.contents() == set()
    assert watched.entries() == set()


async def test_transient_names_are_not_announced(watched: Watched) -> None:
    await watched.ann.save("file~", b"")
    assert watched.contents() == set()
    assert not watched.bob.exists("file~")


async def test_what_a_restore_brings_back_is_seen_and_announced(machine: Machine, watched: Watched) -> None:
    await machine.seal()
    await watched.ann.save("file", b"other")
    watched.ann.unlink("directory/inner")
    await watched.ann.save("new", b"")
    await machine.seal()
    watched.hold("directory")

    def body(writer: Writer) -> commit.Commit:
        planned = restore.plan(writer, catalog.named(writer, STORE), 1, None, SYSTEM, 2 * 10**18)
        machine.filesystem.absorb(planned, commit.apply(writer, planned))
        return planned

    await machine.writer.run(body)
    assert watched.bob.list() == ["directory", "file"]
    assert watched.bob.read("file") == watched.ann.read("directory/inner") == b"content"
    assert watched.contents() >= {watched.inode("file")}
    assert watched.entries() >= {
        (watched.bob.view.inode(ROOT_NODE), b"new"),
        (watched.inode("directory"), b"inner"),
    }
    await watched.ann.save("file", b"after")
    await machine.seal()
    assert machine.changes()[-1] == ["modified file"]
