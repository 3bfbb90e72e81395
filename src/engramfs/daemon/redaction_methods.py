"""The method of the control socket that redacts, and what a running daemon still holds of that."""

import contextlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import trio

from engramfs.daemon.committing import author_of
from engramfs.daemon.control import Handler, Peer
from engramfs.daemon.redacting import RedactRequest, carry_out, paths_gone
from engramfs.daemon.redaction_answer import describe
from engramfs.daemon.request import taking
from engramfs.daemon.settling import Settled
from engramfs.history import catalog
from engramfs.history.redaction_rows import Removed
from engramfs.history.repository import Repository
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.fork import Fork
from engramfs.vfs.redacted import drop_redacted, say_no_more

Document = dict[str, Any]
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
        do = partial(carry_out, self._repository, request, author_of(peer))
        async with contextlib.AsyncExitStack() as still:
            if request.everywhere and not request.message:
                await self._hold_forks(still, request.store)
            with trio.CancelScope(shield=True):  # what is done is shown, whoever still waits for it
                done = await trio.to_thread.run_sync(do)
                for one in done.parts():
                    self._show(one)
        gone = await trio.to_thread.run_sync(paths_gone, self._repository, request, done)
        say_no_more(self._filesystem, *gone)
        await self._settled()
        return await trio.to_thread.run_sync(describe, self._repository, request, done)

    async def _hold_forks(self, still: contextlib.AsyncExitStack, name: str) -> None:
        """Those that sessions have of a store record nothing meanwhile: what waits may lose something."""
        with self._repository.engine.reading() as reader:
            store = catalog.named(reader, name)
        for each in list(self._filesystem.stores.values()):
            if isinstance(each, Fork) and each.store.base == store.id:
                await still.enter_async_context(each.held_still())

    def _show(self, removed: Removed) -> None:
        fork = self._filesystem.stores.get(removed.store)
        if isinstance(fork, Fork) and removed.given_back:
            fork.settle(removed.given_back)
            fork.recent.add(_LOST)
        drop_redacted(self._filesystem, removed)
