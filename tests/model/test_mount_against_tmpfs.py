"""Random operations on a mount: it answers as a tmpfs does, and its versions are what a small model says.

Versions are made only when a rule asks for one. Beside the tmpfs the model knows, for each file, its
content at its last close: a version holds exactly that, and nothing of a file that was never closed.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from engramfs.history import catalog, exporting
from engramfs.history.repository import Repository

from ..harness import agent
from ..harness.daemon import ROOTS, Daemon, Place

ONLY_WHEN_ASKED = '[batch]\nquiet = "1h"\nmax_age = "1h"\n'
NAMES = ["a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "x~", ".tmp-1", ".tmp-1/a", ".tmp-1/d"]
FLAGS = [0, os.O_CREAT, os.O_CREAT | os.O_EXCL, os.O_TRUNC]
SIZES = [0, 1, 10, 4095, 4096, 70_000]
paths = st.sampled_from([name.encode() for name in NAMES])
contents = st.builds(lambda size, byte: bytes([byte]) * size, st.sampled_from(SIZES), st.integers(1, 255))
Tree = dict[bytes, tuple[Any, ...]]


def is_transient(path: bytes) -> bool:
    return any(part.endswith(b"~") or part.startswith(b".tmp-") for part in path.split(b"/"))


class Model:
    """The tmpfs does the work of a filesystem. This adds what a version would hold of it."""

    def __init__(self, place: Place, top: str) -> None:
        self._inside = place.inside
        self._top = top
        self.closed: dict[int, bytes] = {}  # inode number → content at the last close

    def closes(self, descriptor: int) -> None:
        inode, content = self._inside.call("content_of", descriptor)
        self.closed[inode] = content

    def version(self) -> Tree:
        """Path → (kind, mode, size, content): nothing transient, nothing that was never closed."""
        found: Tree = {}
        for path, (kind, mode, size, content, _) in self._inside.call("tree", self._top).items():
            if is_transient(path):
                continue
            if kind == "file":
                inode = self._inside.call("os.lstat", os.path.join(self._top.encode(), path)).st_ino
                if inode not in self.closed:
                    continue
                content = self.closed[inode]
                size = len(content)
            found[path] = (kind, mode, size, content)
        return found


class MountAgainstTmpfs(RuleBasedStateMachine):
    """`place` and `exports` are given by the test."""

    place: Place
    exports: Path

    def __init__(self) -> None:
        super().__init__()
        self.inside = self.place.inside
        self.top = f"{ROOTS}/model"
        self.inside.call("os.makedirs", self.top, exist_ok=True)
        self.roots = [self.place.state.encode(), self.top.encode()]
        self.model = Model(self.place, self.top)
        self.open: list[list[int]] = []  # writable descriptors, here and there
        self.versions: dict[int, Tree] = {}
        self.last: Tree = {}
        self.number = self._head()

    # Both sides

    def _each(self, name: str, *arguments: object) -> Any:
        """The result of a call that is made on both sides, or None where both refuse it in the same way."""
        mount, tmpfs = self.inside.call("in_each", self.roots, name, *arguments)
        if mount[0] and tmpfs[0]:
            return mount[1], tmpfs[1]
        assert mount == tmpfs, (name, arguments, mount, tmpfs)
        return None

    def _on(self, descriptors: list[int], name: str, *arguments: object) -> None:
        mount, tmpfs = self.inside.call("on_each", descriptors, name, *arguments)
        assert mount == tmpfs, (name, arguments, mount, tmpfs)

    def _is_directory(self, path: bytes) -> bool:
        return bool(self.inside.call("os.path.isdir", os.path.join(self.top.encode(), path)))

    @initialize(content=contents)
    def begin_with_something(self, content: bytes) -> None:
        self._each("os.mkdir", b"@/d")
        self.save(b"d/a", content, append=False, seal=True)

    # Names

    @rule(path=paths)
    def mkdir(self, path: bytes) -> None:
        self._each("os.mkdir", b"@/" + path)

    @rule(path=paths)
    def rmdir(self, path: bytes) -> None:
        self._each("os.rmdir", b"@/" + path)

    @rule(path=paths)
    def unlink(self, path: bytes) -> None:
        self._each("os.unlink", b"@/" + path)

    @rule(path=paths, leads_to=st.sampled_from([b"a", b"d", b"./b", b"e/a", b"missing"]))
    def symlink(self, path: bytes, leads_to: bytes) -> None:
        self._each("os.symlink", leads_to, b"@/" + path)

    @rule(path=paths, new=paths)
    def link(self, path: bytes, new: bytes) -> None:
        self._each("os.link", b"@/" + path, b"@/" + new)

    @rule(path=paths, new=paths, seal=st.booleans())
    def rename(self, path: bytes, new: bytes, seal: bool) -> None:
        if not self._leaves_the_log(path, new):
            self._each("os.rename", b"@/" + path, b"@/" + new)
            self._seal(seal)

    @rule(path=paths, other=paths)
    def exchange(self, path: bytes, other: bytes) -> None:
        if not self._leaves_the_log(path, other) and not self._leaves_the_log(other, path):
            self._each("exchange", b"@/" + path, b"@/" + other)

    def _leaves_the_log(self, path: bytes, new: bytes) -> bool:
        """A recorded directory and a transient name: there a tmpfs is no model."""
        return self._is_directory(path) and not is_transient(path) and is_transient(new)

    @rule(path=paths, mode=st.sampled_from([0o600, 0o644, 0o755]))
    def chmod(self, path: bytes, mode: int) -> None:
        self._each("os.chmod", b"@/" + path, mode)

    # Content

    @rule(path=paths, content=contents, append=st.booleans(), seal=st.booleans())
    def save(self, path: bytes, content: bytes, append: bool, seal: bool) -> None:
        """What `>` and `>>` do."""
        flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_TRUNC)
        opened = self._each("os.open", b"@/" + path, flags, 0o644)
        if opened:
            self._on(list(opened), "os.write", content)
            self._close(list(opened))
            self._seal(seal)

    @rule(
        path=paths,
        seal=st.booleans(),
        flags=st.sampled_from([0, os.O_CREAT, os.O_CREAT | os.O_EXCL, os.O_TRUNC]),
    )
    def begin(self, path: bytes, flags: int, seal: bool) -> None:
        """Open, and leave it open."""
        opened = self._each("os.open", b"@/" + path, flags | os.O_RDWR, 0o644)
        if opened:
            self.open.append(list(opened))
            self._seal(seal)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), content=contents, offset=st.sampled_from([0, 3, 4096]), seal=st.booleans())
    def write(self, data: st.DataObject, content: bytes, offset: int, seal: bool) -> None:
        self._on(data.draw(st.sampled_from(self.open)), "os.pwrite", content, offset)
        self._seal(seal)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), size=st.sampled_from(SIZES))
    def truncate_open(self, data: st.DataObject, size: int) -> None:
        self._on(data.draw(st.sampled_from(self.open)), "os.ftruncate", size)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        descriptors = data.draw(st.sampled_from(self.open))
        self.open.remove(descriptors)
        self._close(descriptors)

    def _close(self, descriptors: list[int]) -> None:
        self.model.closes(descriptors[1])
        self._on(descriptors, "os.close")

    @rule(path=paths, size=st.sampled_from(SIZES))
    def truncate(self, path: bytes, size: int) -> None:
        """By path: recorded at once, unless somebody has the file open."""
        if not self._each("os.truncate", b"@/" + path, size):
            return
        descriptor = self.inside.call("os.open", os.path.join(self.top.encode(), path), os.O_RDONLY)
        inode = self.inside.call("os.fstat", descriptor).st_ino
        opened = {self.inside.call("os.fstat", pair[1]).st_ino for pair in self.open}
        if inode not in opened:
            self.model.closes(descriptor)
        self.inside.call("os.close", descriptor)

    # Versions

    def _seal(self, seal: bool = True) -> None:
        if seal:
            self.place.daemon.barrier()
            self._check_version()

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def sync(self, data: st.DataObject) -> None:
        descriptors = data.draw(st.sampled_from(self.open))
        self._on(descriptors, "os.fsync")
        self.model.closes(descriptors[1])
        self._seal()

    def _head(self) -> int:
        with Repository.open(self.place.daemon.state) as repository, repository.engine.reading() as reader:
            return catalog.head(reader, catalog.named(reader, self.place.store).id).number

    def _check_version(self) -> None:
        number, expected = self._head(), self.model.version()
        made = number - self.number
        assert made <= 2, "what was done between two barriers is at most what was synced and the rest"
        assert made >= (expected != self.last), "a change made no version"
        self.versions[number], self.number, self.last = expected, number, expected

    # Always

    @invariant()
    def both_sides_are_the_same(self) -> None:
        mount, tmpfs = (self.inside.call("tree", root) for root in self.roots)
        assert mount == tmpfs

    def teardown(self) -> None:
        for descriptors in self.open:
            self.inside.call("on_each", descriptors, "os.close")
        self._check_every_version()
        for root in self.roots:
            self.inside.shell(f"cd {root.decode()}; rm -rf -- * .[!.]*")
        self.place.daemon.barrier()

    def _check_every_version(self) -> None:
        with Repository.open(self.place.daemon.state) as repository:
            with repository.engine.reading() as reader:
                store = catalog.named(reader, self.place.store)
            for number, expected in self.versions.items():
                directory = self.exports / str(number)
                exporting.export(repository, store, number, os.fsencode(directory))
                exported = {path: entry[:4] for path, entry in agent.tree(str(directory)).items()}
                shutil.rmtree(directory)
                assert exported == expected, f"version {number}"


def test_a_mount_is_a_tmpfs_with_versions(daemon: Daemon, tmp_path: Path) -> None:
    daemon.configure(ONLY_WHEN_ASKED)
    place = daemon.up()
    exports = tmp_path / "exports"
    exports.mkdir()
    bound = {"place": place, "exports": exports}
    machine = type("BoundMountAgainstTmpfs", (MountAgainstTmpfs,), bound)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=int(os.environ.get("ENGRAMFS_MODEL_EXAMPLES", "60")),
            stateful_step_count=40,
            deadline=None,
            database=None,
            derandomize="CI" in os.environ,
            suppress_health_check=list(HealthCheck),
        ),
    )
    daemon.check_soundness()
