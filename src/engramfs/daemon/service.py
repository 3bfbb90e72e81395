"""The methods of the control socket: what a running worker does for the command line.

Each takes the parameters by name and answers with plain JSON. Whatever writes goes through the log
writer, in order with the sealing of batches, and its result is taken over by the live trees.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol

import msgspec
import trio

from engramfs.daemon import deploying, stores
from engramfs.daemon.backup_methods import BackupMethods
from engramfs.daemon.committing import Committer, QueuedRepository, author_of
from engramfs.daemon.config import Config
from engramfs.daemon.control import Handler, Notify, Peer
from engramfs.daemon.edit_methods import EditMethods
from engramfs.daemon.forgetting import ForgetMethods, require_unattached
from engramfs.daemon.gc_methods import GcMethods
from engramfs.daemon.git_methods import GitMethods
from engramfs.daemon.handover import RESTART
from engramfs.daemon.history_methods import HistoryMethods
from engramfs.daemon.pending_methods import PendingMethods
from engramfs.daemon.redaction_methods import RedactionMethods
from engramfs.daemon.session_methods import SessionMethods
from engramfs.daemon.sessions import Sessions, graft_store, remove_store
from engramfs.daemon.settling import Settled, settling
from engramfs.errors import EngramError, StorageError, Unavailable, UsageError
from engramfs.history import hygiene, importing
from engramfs.history.commit import Commit
from engramfs.history.importing import Gathered
from engramfs.history.repository import Repository
from engramfs.model.names import raw
from engramfs.model.store import Store
from engramfs.model.times import format_time
from engramfs.mount.hub import said_of_hidden
from engramfs.mount.mountinfo import read_mounts, top_mount
from engramfs.storage.protocol import Reader
from engramfs.vfs.filesystem import Filesystem

Parameters = dict[str, object]
_SETTINGS = (
    "name",
    "description",
    "max_file_size",
    "quota",
    "conflicts",
    "secrets",
    "keep_days",
    "keep_versions",
)


class End(Protocol):
    """The end of the worker, which `stop` brings about; `announce` tells the keeper of it beforehand."""

    def announce(self, code: int) -> None: ...

    def is_kept(self) -> bool: ...

    def stop(self, code: int = 0) -> None: ...


class Service:
    """Everything that the control socket offers; `methods` is the table for the server."""

    def __init__(
        self,
        repository: Repository,
        filesystem: Filesystem,
        sessions: Sessions,
        config: Config,
        mount: str,
        end: End,
        settled: Settled,
    ) -> None:
        self._repository = QueuedRepository(repository, filesystem)
        self._filesystem = filesystem
        self._committer = Committer(self._repository, filesystem)
        self._backup_methods = BackupMethods(self._repository, self._committer, filesystem)
        self._git_methods = GitMethods(self._repository, self._committer)
        self._history_methods = HistoryMethods(self._committer, filesystem)
        self._pending_methods = PendingMethods(self._committer, filesystem)
        self._edit_methods = EditMethods(self._committer, sessions)
        self._sessions = sessions
        self._session_methods = SessionMethods(filesystem, sessions, config, mount, settled)
        self._redaction_methods = RedactionMethods(self._repository, filesystem, settled)
        self._forget_methods = ForgetMethods(self._repository, filesystem, sessions, self.delete_store)
        self._gc_methods = GcMethods(self._repository, filesystem, sessions)
        self._config = config
        self._mount = mount
        self._end = end
        self._settled = settled
        self._started = format_time(time.time_ns())

    def methods(self) -> Mapping[str, Handler]:
        methods = {
            "ping": self.ping,
            "status": self.status,
            "barrier": self.barrier,
            "store.create": self.store_create,
            "store.set": self.store_set,
            "store.archive": self.store_archive,
            "store.delete": self.store_delete,
            "restart": self.restart,
            "stop": self.stop,
            **self._session_methods.methods(),
            **settling(self._committing_methods(), self._settled),
            **self._redaction_methods.methods(),
            **self._forget_methods.methods(),
            **self._gc_methods.methods(),
        }
        return self._gc_methods.guarding(methods)

    def _committing_methods(self) -> Mapping[str, Handler]:
        """Those that write versions, which mounts are to show."""
        return {
            "import": self.import_directory,
            "deploy": self.deploy,
            **self._backup_methods.methods(),
            **self._git_methods.methods(),
            **self._history_methods.methods(),
            **self._pending_methods.methods(),
            **self._edit_methods.methods(),
        }

    async def end_what_was_held(self) -> None:
        """End sessions with the processes that hold them, until cancelled."""
        await self._session_methods.holding.serve()

    # The daemon

    async def ping(self, params: Parameters, peer: Peer, notify: Notify) -> object:
        return {"pid": os.getpid(), "state": self._repository.state}

    async def status(self, params: Parameters, peer: Peer, notify: Notify) -> object:
        resources = self._filesystem.resources
        batches = [
            {"store": store.store.name, "author": store.batch.author.label(), "names": len(store.batch.names)}
            for store in self._filesystem.stores.values()
            if store.batch is not None
        ]
        return {
            "worker": {
                "pid": os.getpid(),
                "started": self._started,
                "restarts": int(os.environ.get("ENGRAMFS_RESTARTS", "0")),
                "last_crash": os.environ.get("ENGRAMFS_LAST_CRASH") or None,
            },
            "mount": self._mount,
            "sessions": await self._session_methods.documents(),
            "batches": batches,
            "pending": self._pending_methods.waiting(),
            "secrets": self._secrets(),
            "journal": {"records": self._filesystem.unsealed_records(), "bytes": resources.journal.size},
            "failures": [
                {"time": format_time(failure.time), "store": failure.store, "what": failure.what}
                for failure in resources.failures
            ],
            "notices": await self._notices(),
        }

    async def _notices(self) -> list[str]:
        """What somebody should do something about. The list of mounts is read; none of them is touched."""
        met = top_mount(await trio.to_thread.run_sync(read_mounts), self._mount)
        is_hidden = met is None or not met.is_ours
        hidden = [said_of_hidden(self._mount, met)] if is_hidden else []
        return hidden if hygiene.is_available() else [*hidden, hygiene.MISSING]

    def _secrets(self) -> list[dict[str, object]]:
        """The newest versions that look like they hold one, and how many of their files do."""
        with self._repository.engine.reading() as reader:
            return [
                msgspec.structs.asdict(each) | {"time": format_time(each.time)}
                for each in hygiene.newest(reader)
            ]

    async def barrier(self, params: Parameters, peer: Peer, notify: Notify) -> object:
        """Seal what is open, and answer when it is in the log."""
        await self._filesystem.seal_all()
        return None

    async def stop(self, params: Parameters, peer: Peer, notify: Notify) -> object:
        """Seal and end; the keeper ends too, and takes the mounts off."""
        self._end.announce(0)
        await self._seal_if_possible()
        self._end.stop(0)
        return None

    async def restart(self, params: Parameters, peer: Peer, notify: Notify) -> object:
        """Seal and make room for another worker, which takes the mounts over.

        Raises `Unavailable` where no keeper would start one.
        """
        if not self._end.is_kept():
            raise Unavailable("no keeper runs that would start another worker; engramfs up gives it one")
        await self._seal_if_possible()
        self._end.stop(RESTART)
        return None

    async def _seal_if_possible(self) -> None:
        """What cannot be sealed stays in the journal, and does not keep a worker from ending."""
        with contextlib.suppress(StorageError):
            await self._filesystem.seal_all()

    # Stores

    async def store_create(self, params: Parameters, peer: Peer, notify: Notify) -> object:
        change = partial(
            stores.create,
            self._repository,
            self._config.store_limits(),
            now=time.time_ns(),
            **_given(params, *_SETTINGS),
        )
        document: dict[str, Any] = await trio.to_thread.run_sync(change)
        graft_store(self._filesystem, document["name"])
        return document

    async def store_set(self, params: Parameters, peer: Peer, notify: Notify) -> object:
        given = _given(params, *_SETTINGS)
        document = await trio.to_thread.run_sync(partial(stores.change, self._repository, **given))
        self._describe(document["name"])
        return document

    async def store_archive(self, params: Parameters, peer: Peer, notify: Notify) -> object:
        name, archived = _text(params, "name"), bool(params.get("archived", True))
        store = self._committer.store(name)
        live = self._filesystem.stores.get(store.id)
        if live is not None:
            await live.sealed()
        change = partial(stores.archive, self._repository, name=name, archived=archived)
        document = await trio.to_thread.run_sync(change)
        self._describe(name)
        return document

    async def store_delete(self, params: Parameters, peer: Peer, notify: Notify) -> object:
        return await self.delete_store(_text(params, "name"))

    async def delete_store(self, name: str) -> dict[str, Any]:
        """Raises `Conflict` while a session has it attached."""
        store = self._committer.store(name)
        require_unattached(self._sessions, name)
        live = self._filesystem.stores.get(store.id)
        self._filesystem.drop_store(store)
        if live is not None:
            await live.sealed()
        remove_store(self._filesystem, name)
        return await trio.to_thread.run_sync(partial(stores.delete, self._repository, name=name))

    def _describe(self, name: str) -> None:
        self._filesystem.describe(self._committer.store(name))

    # Versions

    async def import_directory(self, params: Parameters, peer: Peer, notify: Notify) -> object:
        """One version out of a directory, as the caller's mount namespace has it."""
        store = self._committer.writable(_text(params, "store"))
        directory = _text(params, "directory")
        message = str(params.get("message") or f"import of {directory}")
        return await self._commit_directory(importing.gather, store, directory, message, peer, notify)

    async def deploy(self, params: Parameters, peer: Peer, notify: Notify) -> object:
        """The program of an agent out of a directory, as one version."""
        agent, directory = _text(params, "agent"), _text(params, "directory")
        limits = self._config.store_limits()
        store, is_new = await trio.to_thread.run_sync(
            deploying.make_store, self._repository, agent, limits, time.time_ns()
        )
        if is_new:
            graft_store(self._filesystem, store.name)
        message = str(params.get("message") or f"deploy of {directory}")
        return await self._commit_directory(deploying.gather, store, directory, message, peer, notify)

    async def _commit_directory(
        self,
        gather: Callable[..., Gathered],
        store: Store,
        directory: str,
        message: str,
        peer: Peer,
        notify: Notify,
    ) -> object:
        """What `gather` makes of a directory of the caller's, as one version."""
        place = raw(f"/proc/{peer.pid}/root{directory}")
        read = partial(gather, self._repository, store, place, progress=_Progress(notify))
        with _named_as_by(peer):
            gathered = await trio.to_thread.run_sync(read)

            def plan(reader: Reader, store: Store) -> Commit:
                now = time.time_ns()
                return importing.plan_gathered(reader, store, gathered, author_of(peer), now, message)

            return await self._committer.apart(store, plan)


@contextlib.contextmanager
def _named_as_by(peer: Peer) -> Iterator[None]:
    """Errors name files as the caller does, who does not know the way that we take to them."""
    try:
        yield
    except EngramError as error:
        raise type(error)(error.message.replace(f"/proc/{peer.pid}/root/", "/")) from error


class _Progress:
    """Tells the client how far an import is, at most ten times a second; called from a thread."""

    def __init__(self, notify: Notify) -> None:
        self._notify = notify
        self._next = 0.0

    def __call__(self, done: int, total: int, done_bytes: int, total_bytes: int) -> None:
        now = time.monotonic()
        if now >= self._next or done == total:
            self._next = now + 0.1
            progress: dict[str, object] = {"done": done, "total": total}
            progress |= {"done_bytes": done_bytes, "total_bytes": total_bytes}
            trio.from_thread.run(self._notify, progress)


def _text(params: Parameters, key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str):
        raise UsageError(f"the parameter {key} is missing")
    return value


def _given(params: Parameters, *known: str) -> dict[str, Any]:
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise UsageError(f"unknown parameter {unknown[0]}; known are {', '.join(known)}")
    _text(params, "name")
    return {key: value for key, value in params.items() if value is not None}
