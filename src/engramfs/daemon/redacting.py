"""Redaction, for the control socket and for the command alike."""

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
import trio

from engramfs.daemon.committing import author_of
from engramfs.daemon.control import Handler, Peer
from engramfs.daemon.request import taking
from engramfs.daemon.switching import Settled
from engramfs.history.occurrences import standing
from engramfs.history.pending_redaction import redact_pending
from engramfs.history.redaction import Removed, redact
from engramfs.history.repository import Repository
from engramfs.model.author import Author
from engramfs.model.entry import EMPTY_DIGEST
from engramfs.model.names import raw
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.redacted import drop_redacted

Document = dict[str, Any]
_SHOWN = 100  # places where a content still stands


class RedactRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """With `pending`, the number is that of what was pending."""

    store: str
    number: int
    path: str
    reason: str
    everywhere: bool = False
    pending: bool = False


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
        removed = await trio.to_thread.run_sync(
            partial(carry_out, self._repository, request, author_of(peer))
        )
        drop_redacted(self._filesystem, removed)
        await self._settled()
        return await trio.to_thread.run_sync(describe, self._repository, request, removed)


def carry_out(repository: Repository, request: RedactRequest, author: Author) -> Removed:
    """Raises what `redact` and `redact_pending` do."""
    if request.pending:
        path, now = raw(request.path).strip(b"/"), time.time_ns()
        return redact_pending(repository, request.store, request.number, path, author, request.reason, now)
    return redact(
        repository,
        request.store,
        request.number,
        raw(request.path).strip(b"/"),
        author,
        request.reason,
        time.time_ns(),
        everywhere=request.everywhere,
    )


def describe(repository: Repository, request: RedactRequest, removed: Removed) -> Document:
    """What was done, as JSON; `standing` is where the same content still is, the first hundred places."""
    is_empty = removed.content.digest == EMPTY_DIGEST
    left = [] if is_empty else standing(repository.engine, removed.content, _SHOWN)
    return {
        "store": request.store,
        "number": request.number,
        "path": request.path,
        "versions": list(removed.versions),
        "changes": removed.changes,
        "standing": msgspec.to_builtins(left),
    }
