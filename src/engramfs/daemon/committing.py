"""How a commit that comes another way than through a view gets into the log of a running worker.

What is open is sealed first, and from then on no mount records anything in the store, until what the commit
wrote is taken over by the live tree. So what takes long, such as storing contents, is done before. A short
plan is made inside the write transaction, a longer one in a thread.

Concurrency. On the event loop. What a thread writes waits its turn at the log writer.
"""

import pwd
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, Protocol, TypeVar

import trio

from engramfs.daemon.control import Peer
from engramfs.history import catalog, commit, log
from engramfs.history.commit import Commit
from engramfs.history.repository import Repository
from engramfs.model.author import Author
from engramfs.model.store import Store
from engramfs.model.transient import TransientNames
from engramfs.model.version import Version
from engramfs.storage.protocol import Reader, Writer
from engramfs.vfs.filesystem import Filesystem

Result = TypeVar("Result")
NODES = 1 << 22  # node ids set aside for an import or a restore


class QueuedRepository(Repository):
    """The repository as a thread of the worker sees it: what it writes waits its turn at the log writer."""

    def __init__(self, repository: Repository, filesystem: Filesystem) -> None:
        super().__init__(repository.state, repository.engine, None)
        self._writer = filesystem.resources.writer

    def transact(self, body: Callable[[Writer], Result]) -> Result:
        return trio.from_thread.run(self._writer.run, body)


class HasCommit(Protocol):
    """What a transaction made: the commit, and the version that it became, if any."""

    @property
    def commit(self) -> Commit: ...

    @property
    def version(self) -> Version | None: ...


Committed = TypeVar("Committed", bound=HasCommit)


class _Planned(NamedTuple):
    commit: Commit
    version: Version | None


class Room(NamedTuple):
    """Node ids from `first_node` on are free; `held` are names that a mount has and no version yet."""

    first_node: int
    held: Collection[tuple[int, bytes]]


class Committer:
    """Commits for the methods of the control socket."""

    def __init__(self, repository: QueuedRepository, filesystem: Filesystem) -> None:
        self._repository = repository
        self._filesystem = filesystem

    @property
    def transient(self) -> TransientNames:
        """The names that no version keeps."""
        return self._filesystem.resources.transient

    def store(self, name: str) -> Store:
        """Raises `InvalidName` and `NotFound`."""
        with self._repository.engine.reading() as reader:
            return catalog.named(reader, name)

    def writable(self, name: str) -> Store:
        """The store, if it takes new versions. Raises `NotFound` and `Archived`."""
        with self._repository.engine.reading() as reader:
            return catalog.writable(reader, name)

    async def apart(self, store: Store, plan: Callable[[Reader, Store], Commit]) -> dict[str, Any] | None:
        """Plan in a thread, so that the log writer goes on with other stores, and commit.

        Returns the version's document, None when nothing changed.
        """
        live, writer = self._filesystem.store(store.name), self._filesystem.resources.writer

        def plan_apart() -> Commit:
            with self._repository.engine.reading() as reader:
                return plan(reader, catalog.writable(reader, store.name))

        async with live.held_still():
            first = live.tree.set_aside(NODES)
            await writer.run(lambda transaction: catalog.set_aside(transaction, store.id, first))
            planned = await trio.to_thread.run_sync(plan_apart)
            with trio.CancelScope(shield=True):  # what is written is taken over, whoever still waits for it
                version = await writer.run(lambda transaction: commit.apply(transaction, planned))
                live.absorb(planned, version)
        return _version_document(version, planned)

    async def at_once(
        self, store: Store, plan: Callable[[Writer], Commit], nodes: int = NODES
    ) -> dict[str, Any] | None:
        """Plan and commit in one write transaction, with room for so many new nodes.

        Returns the version's document, None for no change.
        """

        def body(writer: Writer, room: Room) -> _Planned:
            catalog.set_aside(writer, store.id, room.first_node)
            planned = plan(writer)
            return _Planned(planned, commit.apply(writer, planned))

        done = await self.held_still(store, nodes, body)
        return _version_document(done.version, done.commit)

    async def held_still(
        self, store: Store, nodes: int, body: Callable[[Writer, "Room"], Committed], *, fork: int = 0
    ) -> Committed:
        """Let `body` commit in one write transaction, while no mount records anything in `store`.

        With `fork`, in that fork of it. It has room for as many new nodes, and the live tree takes over what
        it committed.
        """
        live = self._filesystem.store_numbered(fork or store.id)
        async with live.held_still() as held:
            room = Room(live.tree.set_aside(nodes), held)
            with trio.CancelScope(shield=True):  # what is written is taken over, whoever still waits for it
                done = await self._filesystem.resources.writer.run(lambda writer: body(writer, room))
                live.absorb(done.commit, done.version)
        return done


def _version_document(version: Version | None, planned: Commit) -> dict[str, Any] | None:
    return log.describe(version, planned.changes) if version is not None else None


def author_of(peer: Peer) -> Author:
    """The person at the other end of the control socket."""
    try:
        name = pwd.getpwuid(peer.uid).pw_name
    except KeyError:
        name = str(peer.uid)
    return Author("person", actor=name)
