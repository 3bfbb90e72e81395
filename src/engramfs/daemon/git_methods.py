"""The methods of the control socket that are about git repositories.

Git itself runs where it was asked for, and hands over a pipe: it has the caller's rights and files, and this
process needs no git.
"""

import time
from collections.abc import Mapping
from typing import IO

import msgspec
import trio

from engramfs.daemon.committing import Committer, QueuedRepository, author_of
from engramfs.daemon.control import Handler, Notify, Peer
from engramfs.errors import UsageError
from engramfs.history import catalog
from engramfs.history.commit import Commit
from engramfs.history.git.fast_export import GitCommit
from engramfs.history.git.importing import GitImport
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.storage.protocol import Writer

Parameters = dict[str, object]


class ImportRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`stream` is the caller's descriptor of a pipe from `git fast-export`, `base` the version that it begins
    after (0: none). `over` undoes what others wrote since."""

    store: str
    stream: int
    base: int = 0
    over: bool = False


class GitMethods:
    """Commits become versions; others may write to the store meanwhile, which ends the import."""

    def __init__(self, repository: QueuedRepository, committer: Committer) -> None:
        self._repository = repository
        self._committer = committer

    def methods(self) -> Mapping[str, Handler]:
        return {"import.git": self.import_commits}

    async def import_commits(self, params: Parameters, peer: Peer, notify: Notify) -> object:
        """Answers `{versions, version, skipped}`: how many are new, the head, and paths that are left out."""
        try:
            request = msgspec.convert(params, ImportRequest)
        except msgspec.ValidationError as error:
            raise UsageError(f"wrong parameters: {error}") from error
        store = self._committer.writable(request.store)
        run = GitImport(self._repository, store, author_of(peer), request.base, over=request.over)
        with _opened(peer, request.stream) as stream:
            made = await self._import(run, stream, request.store, notify)
        with self._repository.engine.reading() as reader:
            head = catalog.head(reader, store.id).number
        skipped = [printable(path) for path in sorted(run.skipped)]
        return {"versions": made, "version": head, "skipped": skipped}

    async def _import(self, run: GitImport, stream: IO[bytes], name: str, notify: Notify) -> int:
        commits, made, done = run.commits(stream), 0, 0
        while (commit := await trio.to_thread.run_sync(next, commits, None)) is not None:
            store = self._committer.writable(name)

            def plan(writer: Writer, store: Store = store, commit: GitCommit = commit) -> Commit:
                return run.plan(writer, store, commit, time.time_ns())

            document = await self._committer.at_once(store, plan, run.nodes_needed())
            run.done(document["number"] if document is not None else None)
            made += document is not None
            done += 1
            await notify({"done": done})
        return made


def _opened(peer: Peer, descriptor: int) -> IO[bytes]:
    try:
        return open(f"/proc/{peer.pid}/fd/{descriptor}", "rb")
    except OSError as error:
        raise UsageError(
            f"the stream cannot be read: {error.strerror}; is the caller still there?"
        ) from error
