"""The vfs of one worker in this process, and programs that use it the way the kernel lets them."""

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import trio

from engramfs.errors import NoEntry, StorageError
from engramfs.history import approval, catalog, forks, log, pending
from engramfs.history.approval import Approved, Decided
from engramfs.history.repository import Repository
from engramfs.history.tree import tree_at, walk
from engramfs.history.verify import verify
from engramfs.model.author import Author
from engramfs.model.entry import ROOT_NODE, Kind
from engramfs.model.store import Conflicts, Limits, Secrets, Store
from engramfs.model.transient import TransientNames
from engramfs.model.version import Change, Version
from engramfs.storage import blobs
from engramfs.storage.journal import Journal
from engramfs.storage.protocol import Writer
from engramfs.storage.reserve import Reserve
from engramfs.vfs.ask_view import AskView
from engramfs.vfs.attributes import Attributes, SetAttributes
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.fork import Fork
from engramfs.vfs.live_store import LiveStore
from engramfs.vfs.log_writer import LogWriter
from engramfs.vfs.recovery import Recovered, last_position, recover
from engramfs.vfs.resources import Resources, Settings
from engramfs.vfs.resuming import resume
from engramfs.vfs.view import View
from engramfs.vfs.view_numbers import ViewNumbers
from engramfs.vfs.writable_view import WritableView

STORE = "memory/digest/state"
PERSON = Author("person", actor="pat")
NEVER = 3600.0  # seconds; a batch that only a test seals
Tree = dict[str, bytes | None]  # path → content of a file, target of a symlink, None for a directory


class RecordingInvalidator:
    """Keeps what the kernel would have been told."""

    def __init__(self) -> None:
        self.inodes: list[tuple[int, bool]] = []
        self.entries: list[tuple[int, bytes]] = []

    def inode_changed(self, inode: int, *, content: bool) -> None:
        self.inodes.append((inode, content))

    def entry_changed(self, parent: int, name: bytes) -> None:
        self.entries.append((parent, name))

    def clear(self) -> None:
        self.inodes.clear()
        self.entries.clear()


class Recorded(NamedTuple):
    """A version, as tests speak of it."""

    number: int
    author: str
    changes: list[str]  # "created a", "renamed a -> b"
    flags: tuple[str, ...] = ()
    overwrites: tuple[int, ...] = ()


class Machine:
    """A state directory with everything that a worker has over it, but no kernel."""

    def __init__(
        self, state: str, settings: Settings, journal_bytes: int, crashed: "Machine | None" = None
    ) -> None:
        """With `crashed` this one goes on with all that was open in it; without, that has ended."""
        self.state = state
        self.repository = Repository.open(state, write="the tests")
        self.recovered = Recovered()
        if crashed is None:
            self._start_afresh()
        self.reserve = Reserve(self.repository.reserve_path)
        self.journal = Journal(self.repository.journal_path, journal_bytes, self.reserve)
        self.journal.position = max(self.journal.position, last_position(self.repository))
        self.invalidator = RecordingInvalidator()
        self.writer = LogWriter(self.repository)
        resources = Resources(
            engine=self.repository.engine,
            journal=self.journal,
            writer=self.writer,
            invalidator=self.invalidator,
            spool_path=self.repository.spool_path,
            settings=settings,
            transient=TransientNames(),
        )
        self.writer.on_trouble = lambda what: resources.failed("", what)
        self.numbers: ViewNumbers = crashed.numbers if crashed is not None else ViewNumbers()
        self.filesystem = Filesystem(resources, self.numbers, resumed=crashed is not None)
        self.programs: dict[str, Program] = {}  # by actor; the first of each that writes to `STORE`, or asks
        self.tasks = trio.CancelScope()
        self.is_running = True
        self.may_be_unsound = False  # a test that damages the log on purpose says so
        if crashed is not None:
            for actor, program in crashed.programs.items():
                if isinstance(program.view, AskView):
                    self.asks(actor, fork=program.view.fork.store.id)
                else:
                    self.writes(actor)
            self.recovered = resume(self.filesystem, crashed.journal.position, 0)

    def _start_afresh(self) -> None:
        self.recovered = recover(self.repository)
        for leftover in os.listdir(self.repository.spool_path):
            os.unlink(os.path.join(self.repository.spool_path, leftover))

    async def serve(self) -> None:
        with self.tasks:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.writer.serve)
                nursery.start_soon(self.filesystem.seal_when_due)
                nursery.start_soon(self.filesystem.resources.failed_closes.serve)

    async def stop(self) -> None:
        """As a worker stops in order: what is open is sealed."""
        if self.is_running:
            await self.seal()
            self.crash()

    def crash(self) -> None:
        """Everything in memory is gone; what is in the journal, in the log and on disk stays."""
        if not self.is_running:
            return
        self.is_running = False
        self.tasks.cancel()
        for view in self.filesystem.views.values():
            for file in getattr(view, "files", {}).values():
                if file.spool is not None:
                    os.close(file.spool.descriptor)
        self.journal.close()
        self.reserve.close()
        self.repository.close()

    def check_soundness(self) -> None:
        with Repository.open(self.state) as repository:
            report = verify(repository)
        assert self.may_be_unsound or report.sound, report.findings

    # Stores

    def create_store(
        self,
        name: str = STORE,
        *,
        limits: Limits | None = None,
        conflicts: Conflicts = "keep",
        secrets: Secrets = "flag",
    ) -> None:
        def body(writer: Writer) -> None:
            if catalog.find(writer, name) is None:
                catalog.create(
                    writer,
                    name,
                    now=1_700_000_000 * 10**9,
                    limits=limits,
                    conflicts=conflicts,
                    secrets=secrets,
                )

        self.repository.transact(body)

    def live(self, store: str = STORE) -> LiveStore:
        return self.filesystem.store(store)

    async def seal(self) -> None:
        """Everything that was closed is in the log when this returns, once the disk takes it."""
        with trio.fail_after(10):
            while True:
                try:
                    return await self.filesystem.seal_all()
                except StorageError:
                    await trio.sleep(0.05)

    # Programs

    def writes(self, actor: str = "ann", store: str = STORE) -> "Program":
        """A program of `actor`, in a session of its own, with a view that it may write to."""
        author = Author("agent", agent="digest", actor=actor, session=actor)
        return self._started(actor, self.filesystem.writable_view(store, author, 0, 0))

    def _started(self, actor: str, view: WritableView) -> "Program":
        program = Program(self.filesystem, view)
        if view.store.store.name == STORE or isinstance(view, AskView):
            self.programs.setdefault(actor, program)
        return program

    def asks(self, actor: str = "ann", store: str = STORE, *, fork: int = 0) -> "Program":
        """A program of `actor` whose writes wait for approval: in a new fork, or in one that there is."""
        if not fork:
            fork = self.repository.transact(
                lambda writer: forks.create(
                    writer, catalog.named(writer, store), 1_700_000_000 * 10**9, forks.owner_of(actor)
                )
            ).id
        author = Author("agent", agent="digest", actor=actor, session=actor)
        return self._started(actor, self.filesystem.ask_view(fork, author, 0, 0))

    def live_fork(self, program: "Program") -> Fork:
        """The fork that a program which asks writes to."""
        assert isinstance(program.view, AskView)
        return program.view.fork

    async def approve(self, number: int, store: str = STORE, *, merge: bool = False) -> Approved:
        decided = await self._decide(partial(approval.approve, merge=merge), number, store)
        assert isinstance(decided, Approved)
        return decided

    async def approve_sealed(self, number: int) -> Approved:
        """Seal, then approve."""
        await self.seal()
        return await self.approve(number)

    async def reject(self, number: int, store: str = STORE) -> Decided:
        return await self._decide(approval.reject, number, store)

    async def _decide(self, how: Callable[..., Decided], number: int, store: str) -> Decided:
        """As the daemon does it."""
        await self.seal()

        def body(writer: Writer) -> Decided:
            now = 2_000_000_000 * 10**9
            return how(writer, catalog.named(writer, store), number, PERSON, now, reason="said so")

        decided = await self.writer.run(body)
        self.filesystem.settle(decided)
        return decided

    def pending(self, store: str = STORE) -> list[tuple[int, str, list[str]]]:
        """(number, state, changes) of all that was ever offered, oldest first."""
        with self.repository.engine.reading() as reader:
            return [
                (
                    each.number,
                    each.state,
                    [_in_words(change) for change in log.changes(reader, each.fork, each.version)],
                )
                for each in pending.every(reader, catalog.named(reader, store).id)
            ]

    def reads(self, store: str = STORE) -> "Program":
        return Program(self.filesystem, self.filesystem.live_view(store))

    def reads_version(self, number: int, store: str = STORE) -> "Program":
        return Program(self.filesystem, self.filesystem.pinned_view(store, number))

    # The log

    def versions(self, store: str = STORE) -> list[Recorded]:
        """Every version, oldest first."""
        with self.repository.engine.reading() as reader:
            identifier = catalog.named(reader, store).id
            found = list(log.versions(reader, identifier))
            return [
                _recorded(version, list(log.changes(reader, identifier, version.number)))
                for version in reversed(found)
            ]

    def changes(self, store: str = STORE) -> list[list[str]]:
        """What each version changed, oldest first."""
        return [version.changes for version in self.versions(store)]

    def tree(self, number: int | None = None, store: str = STORE) -> Tree:
        """The tree of a version (None: the head), as the log has it."""
        with self.repository.engine.reading() as reader:
            named = catalog.named(reader, store)
        return self.fork_tree(named, number)

    def fork_tree(self, named: Store, number: int | None = None) -> Tree:
        """The same of any store or fork."""
        with self.repository.engine.reading() as reader:
            found: Tree = {}
            for path, entry in walk(tree_at(reader, named, number)):
                if not path:
                    continue
                content = None if entry.kind is Kind.DIRECTORY else entry.target
                if entry.kind is Kind.FILE:
                    content = blobs.read(reader, entry.digest, entry.size)
                found[os.fsdecode(path)] = content
            return found

    def failures(self) -> list[str]:
        return [failure.what for failure in self.filesystem.resources.failures]


def _recorded(version: Version, changes: list[Change]) -> Recorded:
    return Recorded(
        version.number,
        version.author.actor or version.author.label(),
        [_in_words(change) for change in changes],
        version.flags,
        version.overwrites,
    )


def _in_words(change: Change) -> str:
    path = os.fsdecode(change.path)
    return (
        f"{change.op.label} {os.fsdecode(change.from_path)} -> {path}"
        if change.from_path
        else (f"{change.op.label} {path}")
    )


class Descriptor:
    """An open file. `close` is what the kernel makes of close(2): a flush, then a release."""

    def __init__(self, program: "Program", node: int, *, write: bool) -> None:
        self._program = program
        self._view = program.view
        self.node = node
        self._write = write

    async def write(self, data: bytes, offset: int = 0) -> int:
        return await self._view.write(self.node, offset, data)

    async def append(self, data: bytes) -> int:
        return await self.write(data, self._view.attributes(self.node).size)

    def read(self) -> bytes:
        return self._program.read_node(self.node)

    async def truncate(self, size: int) -> None:
        await self._view.set_attributes(self.node, SetAttributes(size=size))

    async def sync(self) -> None:
        await self._view.sync(self.node)

    async def close_duplicate(self) -> None:
        """close(2) of a descriptor that has a duplicate."""
        if self._write:
            await self._view.flush(self.node)

    async def close(self) -> None:
        """Raises what close(2) would say; the descriptor is gone all the same."""
        try:
            await self.close_duplicate()
        finally:
            self._view.closed(self.node)
            if self._write:
                await self._view.release(self.node)


class Program:
    """Uses one view by paths. Counts lookups as the kernel does, so that `forget_all` is what it says."""

    def __init__(self, filesystem: Filesystem, view: View) -> None:
        self._filesystem = filesystem
        self.view = view
        self._held: dict[int, int] = {}

    # Names

    def _known(self, attributes: Attributes) -> Attributes:
        self._filesystem.looked_up(attributes.inode)
        self._held[attributes.inode] = self._held.get(attributes.inode, 0) + 1
        return attributes

    def forget_all(self) -> None:
        """The kernel lets go of everything that it looked up through this program."""
        held, self._held = self._held, {}
        for inode, count in held.items():
            self._filesystem.forget(inode, count)

    def stat(self, path: str) -> Attributes:
        """lstat(2): looks up one part of the path after the other."""
        view, node = self.view, ROOT_NODE
        attributes = view.attributes(node)
        for part in os.fsencode(path).split(b"/"):
            if part:
                attributes = self._known(view.lookup(node, part))
                view, node = self._filesystem.find(attributes.inode)
        return attributes

    def _place(self, path: str) -> tuple[int, bytes]:
        above, _, name = os.fsencode(path).rpartition(b"/")
        return self.node(os.fsdecode(above)), name

    def node(self, path: str) -> int:
        return self._filesystem.find(self.stat(path).inode)[1]

    def exists(self, path: str) -> bool:
        with contextlib.suppress(NoEntry):
            self.stat(path)
            return True
        return False

    def list(self, path: str = "") -> list[str]:
        """The names of a directory, sorted; each is looked up, as readdirplus does."""
        view, node = self._filesystem.find(self.stat(path).inode)
        names = []
        for item in view.listing(node):
            attributes = view.listed(node, item)
            if attributes is not None:
                self._known(attributes)
                names.append(os.fsdecode(item.name))
        return sorted(names)

    def mkdir(self, path: str, mode: int = 0o755) -> None:
        self._known(self.view.make_directory(*self._place(path), mode))

    def symlink(self, target: str, path: str) -> None:
        self._known(self.view.make_symlink(*self._place(path), os.fsencode(target)))

    def link(self, path: str, new: str) -> None:
        self._known(self.view.link(self.node(path), *self._place(new)))

    def unlink(self, path: str) -> None:
        self.view.unlink(*self._place(path))

    def rmdir(self, path: str) -> None:
        self.view.remove_directory(*self._place(path))

    def rename(self, path: str, new: str, flags: int = 0) -> None:
        self.view.rename(*self._place(path), *self._place(new), flags)

    # Content

    def create(self, path: str, mode: int = 0o644) -> Descriptor:
        """open(2) with O_CREAT | O_EXCL | O_WRONLY."""
        attributes = self._known(self.view.create(*self._place(path), mode))
        return self._opened(self._filesystem.find(attributes.inode)[1], write=True)

    def _opened(self, node: int, *, write: bool) -> Descriptor:
        self.view.opened(node)
        return Descriptor(self, node, write=write)

    def open(self, path: str, *, write: bool = True, truncate: bool = False) -> Descriptor:
        node = self.node(path)
        self.view.open(node, write=write, truncate=truncate)
        return self._opened(node, write=write)

    async def save(self, path: str, content: bytes) -> None:
        """What `>` in a shell does: open with O_CREAT | O_TRUNC, write, close."""
        opened = self.open(path, truncate=True) if self.exists(path) else self.create(path)
        try:
            await opened.write(content)
        finally:
            await opened.close()

    async def save_atomically(self, path: str, content: bytes, temporary: str) -> None:
        """Write `temporary`, then rename it over `path`."""
        await self.save(temporary, content)
        self.rename(temporary, path)

    async def append(self, path: str, content: bytes) -> None:
        """What `>>` in a shell does."""
        opened = self.open(path) if self.exists(path) else self.create(path)
        try:
            await opened.append(content)
        finally:
            await opened.close()

    def read(self, path: str) -> bytes:
        attributes = self.stat(path)
        view, node = self._filesystem.find(attributes.inode)
        view.open(node, write=False, truncate=False)
        return _read_all(view, node)

    def read_node(self, node: int) -> bytes:
        return _read_all(self.view, node)

    def read_link(self, path: str) -> str:
        view, node = self._filesystem.find(self.stat(path).inode)
        return os.fsdecode(view.read_link(node))

    async def set(self, path: str, **wanted: int) -> None:
        """chmod, chown, truncate and utimens by path: mode, uid, gid, size, atime, mtime."""
        await self.view.set_attributes(self.node(path), SetAttributes(**wanted))


def _read_all(view: View, node: int) -> bytes:
    """In pieces of 128 KiB, as the kernel asks."""

    def pieces() -> Iterator[bytes]:
        offset = 0
        while piece := view.read(node, offset, 128 << 10):
            offset += len(piece)
            yield piece

    return b"".join(pieces())


async def eventually(condition: Callable[[], bool], limit: float = 5.0) -> None:
    with trio.fail_after(limit):
        while not condition():
            await trio.sleep(0.002)
