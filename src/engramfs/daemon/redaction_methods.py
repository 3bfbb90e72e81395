"""The method of the control socket that redacts, and what a running daemon still holds of that."""

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import trio

from engramfs.daemon.committing import QueuedRepository, author_of
from engramfs.daemon.control import Handler, Peer
from engramfs.daemon.redacting import RedactRequest, carry_out, paths_gone
from engramfs.daemon.redaction_answer import describe
from engramfs.daemon.request import taking
from engramfs.daemon.settling import Settled
from engramfs.history import catalog
from engramfs.history.redaction_rows import Removed
from engramfs.history.repository import Repository
from engramfs.storage.protocol import Writer
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.fork import Fork
from engramfs.vfs.redacted import drop_redacted, say_no_more

Document = dict[str, Any]
Result = TypeVar("Result")
_LOST = "something that waits for approval was redacted, and is not shown any more"


class RedactionMethods:
    """The method `redact`."""

    def __init__(self, repository: Repository, filesystem: Filesystem, settled: Settled) -> None:
        self._repository = repository
        self._filesystem = filesystem
        self._settled = settled

    def methods(self) -> Mapping[str, Handler]:
        return {"redact": taking(RedactRequest, self.redact)}

    async def redact(self, request: RedactRequest, peer: Peer) -> Document:
        """Nobody reads what was taken out any more when this returns."""
        await self._filesystem.seal_all()
        repository = self._repository
        if request.everywhere and not request.message:
            repository = _ForksHeldStill(repository, self._filesystem, request.store)
        done = await trio.to_thread.run_sync(partial(carry_out, repository, request, author_of(peer)))
        with trio.CancelScope(shield=True):  # whoever still waits for it
            for one in done.parts():
                drop_redacted(self._filesystem, one)
            gone = await trio.to_thread.run_sync(paths_gone, self._repository, request, done)
            say_no_more(self._filesystem, *gone)
        await self._settled()
        return await trio.to_thread.run_sync(describe, self._repository, request, done)


class _ForksHeldStill(QueuedRepository):
    """The sessions that ask record nothing while it is written: what waits in their forks may lose something.

    That is not while it is planned, which may take long.
    """

    def __init__(self, repository: Repository, filesystem: Filesystem, store: str) -> None:
        super().__init__(repository, filesystem)
        self._filesystem = filesystem
        self._store = store

    def transact(self, body: Callable[[Writer], Result]) -> Result:
        return trio.from_thread.run(self._transact, body)

    async def _transact(self, body: Callable[[Writer], Result]) -> Result:
        async with contextlib.AsyncExitStack() as still:
            for fork in self._forks():
                await still.enter_async_context(fork.held_still())
            with trio.CancelScope(shield=True):
                done = await self._writer.run(body)
                if isinstance(done, Removed):
                    self._give_back(done)
        return done

    def _forks(self) -> list[Fork]:
        with self.engine.reading() as reader:
            store = catalog.named(reader, self._store)
        stores = list(self._filesystem.stores.values())
        return [each for each in stores if isinstance(each, Fork) and each.store.base == store.id]

    def _give_back(self, removed: Removed) -> None:
        for one in removed.beside:
            fork = self._filesystem.stores.get(one.store)
            if isinstance(fork, Fork) and one.given_back:
                fork.settle(one.given_back)
                fork.recent.add(_LOST)
