"""Redaction, for the control socket and for the command alike."""

import time
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any

import msgspec
import trio

from engramfs.daemon.committing import author_of
from engramfs.daemon.control import Handler, Peer
from engramfs.daemon.request import taking
from engramfs.daemon.switching import Settled
from engramfs.errors import UsageError
from engramfs.history import catalog, pending
from engramfs.history.directory_redaction import redact_directory
from engramfs.history.directory_target import is_directory
from engramfs.history.message_redaction import Message, RedactedMessages, messages_with, redact_message
from engramfs.history.occurrences import Standing, standing
from engramfs.history.pending_redaction import redact_pending
from engramfs.history.recursive_redaction import redact_recursively
from engramfs.history.redacted_names import redacted_names
from engramfs.history.redaction import redact
from engramfs.history.redaction_rows import Removed
from engramfs.history.repository import Repository
from engramfs.history.tree import head_tree, resolve
from engramfs.model.author import Author
from engramfs.model.entry import EMPTY_DIGEST, Kind
from engramfs.model.names import printable, raw
from engramfs.model.store import Store
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.redacted import drop_redacted, say_no_more

Document = dict[str, Any]
_SHOWN = 100  # places where a content still stands


class RedactRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """With `pending`, the number is that of what was pending. With `message`, there is no path."""

    store: str
    number: int
    path: str
    reason: str
    everywhere: bool = False
    pending: bool = False
    recursive: bool = False
    message: bool = False


class Done(msgspec.Struct, frozen=True):
    """What was taken out: contents and names, or messages."""

    removed: tuple[Removed, ...] = ()
    messages: RedactedMessages | None = None


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
        done = await trio.to_thread.run_sync(partial(carry_out, self._repository, request, author_of(peer)))
        for removed in done.removed:
            for one in (removed, *removed.beside):
                drop_redacted(self._filesystem, one)
        say_no_more(self._filesystem, *await trio.to_thread.run_sync(_gone, self._repository, request, done))
        await self._settled()
        return await trio.to_thread.run_sync(describe, self._repository, request, done)


def _gone(repository: Repository, request: RedactRequest, done: Done) -> tuple[Store, set[str]]:
    """The store, and the paths that nobody is to read any more."""
    with repository.engine.reading() as reader:
        store = catalog.named(reader, request.store)
        names = redacted_names(reader, store, raw(request.path).strip(b"/"), done.removed)
    return store, {printable(name) for name in names}


def carry_out(repository: Repository, request: RedactRequest, author: Author) -> Done:
    """Raises what the functions of `engramfs.history` do that redact, and `UsageError`."""
    path, now = raw(request.path).strip(b"/"), time.time_ns()
    about = (repository, request.store, request.number)
    why = (author, request.reason, now)
    if request.message:
        messages = redact_message(*about, *why, is_pending=request.pending, everywhere=request.everywhere)
        return Done(messages=messages)
    if request.pending:
        return Done((redact_pending(*about, path, *why, everywhere=request.everywhere),))
    if not is_directory(*about, path):
        return Done((redact(*about, path, *why, everywhere=request.everywhere),))
    if request.everywhere:
        raise UsageError(f"{request.path} is a directory, and --everywhere is about a content; leave it out")
    if request.recursive:
        return Done(tuple(redact_recursively(*about, path, *why)))
    return Done((redact_directory(*about, path, *why),))


def describe(repository: Repository, request: RedactRequest, done: Done) -> Document:
    """What was done, as JSON; `standing` is where the same still is, the first hundred places.

    `instead` is the name that a directory has now. `messages` are those that name the path, unless the head
    has it: restoring a file, say, leaves one.
    """
    document: Document = {"store": request.store, "number": request.number, "path": request.path}
    if done.messages is not None:
        return {**document, "message": True, **_messages(done.messages, request.store)}
    versions, pendings = _numbers(repository, done.removed)
    left = (one for removed in done.removed for one in _standing(repository, removed))
    return {
        **document,
        "versions": sorted(versions),
        "pending": sorted(pendings),
        "changes": sum(removed.changes for removed in done.removed),
        "instead": printable(done.removed[-1].instead) or None,
        "standing": [msgspec.to_builtins(one) for one, _ in zip(left, range(_SHOWN), strict=False)],
        "messages": [_place(one, request.store) for one in _naming(repository, request)],
    }


def _naming(repository: Repository, request: RedactRequest) -> list[Message]:
    path = request.path.strip("/")
    with repository.engine.reading() as reader:
        store = catalog.named(reader, request.store)
        if not path or resolve(head_tree(reader, store), raw(path)) is not None:
            return []
    return list(islice(messages_with(repository.engine, store, path), _SHOWN))


def _place(one: Message, store: str) -> Document:
    """A version, or something pending, that has a message."""
    if one.pending:
        return {"store": f"{store} (pending)", "version": one.pending, "path": ""}
    return {"store": store, "version": one.number, "path": ""}


def _numbers(repository: Repository, done: tuple[Removed, ...]) -> tuple[set[int], set[int]]:
    """The versions that lost something, and what was pending and did."""
    versions: set[int] = set()
    pendings: set[int] = set()
    with repository.engine.reading() as reader:
        for removed in (one for each in done for one in (each, *each.beside)):
            store = catalog.get(reader, removed.store)
            if store.base:
                offered = (pending.of_version(reader, store, number) for number in removed.versions)
                pendings |= {one.number for one in offered if one is not None}
            else:
                versions |= set(removed.versions)
    return versions, pendings


def _standing(repository: Repository, removed: Removed) -> list[Standing]:
    """Nothing of a directory: its name was all."""
    is_nothing = removed.content.kind is Kind.DIRECTORY or removed.content.digest == EMPTY_DIGEST
    return [] if is_nothing else standing(repository.engine, removed.content, _SHOWN)


def _messages(messages: RedactedMessages, store: str) -> Document:
    return {
        "versions": [one.number for one in messages.lost if not one.pending],
        "pending": [one.pending for one in messages.lost if one.pending],
        "changes": 0,
        "standing": [_place(one, store) for one in messages.standing[:_SHOWN]],
    }
