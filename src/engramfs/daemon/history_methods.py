"""The methods of the control socket about versions: to undo one, and to say what the next is about.

Nothing is taken out of the log: what undoes a version is a new one.
"""

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from engramfs.daemon.committing import Committer, author_of
from engramfs.daemon.control import Handler, Peer
from engramfs.daemon.request import taking
from engramfs.errors import InvalidArgument, UsageError
from engramfs.history import hygiene, restore, revert
from engramfs.history.commit import Commit
from engramfs.model.names import raw
from engramfs.model.operation import Note
from engramfs.storage.protocol import Writer
from engramfs.vfs import messages
from engramfs.vfs.filesystem import Filesystem

Document = dict[str, Any]


class RestoreRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Without `path`, or with an empty one, everything."""

    store: str
    number: int
    path: str | None = None


class RevertRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The version of a store that is to be undone."""

    store: str
    number: int


class NoteRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An empty `text` takes back what was noted; none leaves it."""

    store: str
    text: str | None = None


class HistoryMethods:
    """What makes a version answers with it, or with None when nothing changed."""

    def __init__(self, committer: Committer, filesystem: Filesystem) -> None:
        self._committer = committer
        self._filesystem = filesystem

    def methods(self) -> Mapping[str, Handler]:
        return {
            "restore": taking(RestoreRequest, self.restore),
            "revert": taking(RevertRequest, self.revert),
            "note": taking(NoteRequest, self.note),
        }

    async def restore(self, request: RestoreRequest, peer: Peer) -> Document | None:
        store = self._committer.writable(request.store)
        path = raw(request.path) if request.path is not None else None

        def plan(writer: Writer) -> Commit:
            return restore.plan(writer, store, request.number, path, author_of(peer), time.time_ns())

        return await self._committer.at_once(store, plan)

    async def revert(self, request: RevertRequest, peer: Peer) -> Document | None:
        store = self._committer.writable(request.store)

        def plan(writer: Writer) -> Commit:
            return revert.plan(writer, store, request.number, author_of(peer), time.time_ns())

        return await self._committer.at_once(store, plan)

    async def note(self, request: NoteRequest, peer: Peer) -> Document:
        """What the caller said of the next version of a store, and has not been taken yet."""
        self._committer.writable(request.store)
        author, live = author_of(peer), self._filesystem.store(request.store)
        if request.text is not None:
            try:
                text = messages.decode(raw(request.text))
            except InvalidArgument as error:
                raise UsageError(error.message) from error
            if live.store.secrets == "refuse":
                hygiene.check_message(text)
            await live.not_held()
            live.record(0, author, Note(text))
        return {"store": request.store, "message": live.messages.of(author)}
