"""The methods of the control socket that undo what is in the log, each by a new version of its own."""

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from engramfs.daemon.committing import Committer, author_of
from engramfs.daemon.control import Handler, Peer
from engramfs.daemon.request import taking
from engramfs.history import restore
from engramfs.history.commit import Commit
from engramfs.model.names import raw
from engramfs.storage.protocol import Writer

Document = dict[str, Any]


class RestoreRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Without `path`, or with an empty one, everything."""

    store: str
    number: int
    path: str | None = None


class HistoryMethods:
    """Each answers with the version that it made, or with None when nothing changed."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer

    def methods(self) -> Mapping[str, Handler]:
        return {"restore": taking(RestoreRequest, self.restore)}

    async def restore(self, request: RestoreRequest, peer: Peer) -> Document | None:
        store = self._committer.writable(request.store)
        path = raw(request.path) if request.path is not None else None

        def plan(writer: Writer) -> Commit:
            return restore.plan(writer, store, request.number, path, author_of(peer), time.time_ns())

        return await self._committer.at_once(store, plan)
