"""Forgetting an actor: their own stores are deleted; what of them is elsewhere is said, as commands."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec
import trio

from engramfs.daemon import stores
from engramfs.daemon.control import Handler, Peer
from engramfs.daemon.request import taking
from engramfs.daemon.sessions import Sessions
from engramfs.errors import Conflict, NotFound
from engramfs.history import traces
from engramfs.history.repository import Repository
from engramfs.history.traces import Trace
from engramfs.model.names import check_id
from engramfs.model.shell_words import path_argument, shell_command
from engramfs.vfs.filesystem import Filesystem

Document = dict[str, Any]


class ForgetRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Unless `delete`, nothing is done, and the answer says what would be."""

    actor: str
    tenant: str | None = None
    delete: bool = False


class ForgetMethods:
    """The method `forget`; `delete` deletes a store that no session has attached."""

    def __init__(
        self,
        repository: Repository,
        filesystem: Filesystem,
        sessions: Sessions,
        delete: Callable[[str], Awaitable[Document]],
    ) -> None:
        self._repository = repository
        self._filesystem = filesystem
        self._sessions = sessions
        self._delete = delete

    def methods(self) -> Mapping[str, Handler]:
        return {"forget": taking(ForgetRequest, self.forget)}

    async def forget(self, request: ForgetRequest, _peer: Peer) -> Document:
        await self._filesystem.seal_all()
        found = await trio.to_thread.run_sync(partial(look, self._repository, request))
        if request.delete:
            for name in found["stores"]:
                require_unattached(self._sessions, name)
            for name in found["stores"]:
                await self._delete(name)
        return found


def require_unattached(sessions: Sessions, name: str) -> None:
    """Raise `Conflict` while a session has the store attached."""
    for session in sessions.showing(name):
        raise Conflict(
            f"{name} is attached in session {session.id} ({session.author.label()}); "
            f"engramfs session close {session.id} first, or engramfs down"
        )


def forget_alone(repository: Repository, request: ForgetRequest) -> Document:
    """The same while no daemon runs."""
    found = look(repository, request)
    if request.delete:
        for name in found["stores"]:
            stores.delete(repository, name=name)
    return found


def look(repository: Repository, request: ForgetRequest) -> Document:
    """The actor's stores, and the redactions that are needed elsewhere. Raises `NotFound` for neither."""
    check_id(request.actor, "actor")
    with repository.engine.reading() as reader:
        own = traces.stores_of(reader, request.actor, request.tenant)
    left = list(traces.traces(repository.engine, own, request.actor, request.tenant))
    if not own and not left:
        of_tenant = f" of {request.tenant}" if request.tenant is not None else ""
        raise NotFound(f"there is nothing of actor {request.actor}{of_tenant}; engramfs store list shows all")
    return {
        "actor": request.actor,
        "tenant": request.tenant,
        "stores": [store.name for store in own],
        "deleted": request.delete,
        "elsewhere": [{**msgspec.to_builtins(trace), "command": command(trace)} for trace in left],
    }


def command(trace: Trace) -> str | None:
    """What takes it out, once it is not at the head any more, and was decided on."""
    if trace.lost:
        return None
    words = ["engramfs", "redact", trace.store, str(trace.number)]
    words += ["--message"] if trace.message else [path_argument(trace.path)]
    words += ["--pending"] if trace.pending else []
    return shell_command(*words, "--reason", "forgotten")
