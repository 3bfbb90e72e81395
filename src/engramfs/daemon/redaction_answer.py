"""What is said of a redaction that was done, and where the same still is."""

from itertools import islice
from typing import Any

import msgspec

from engramfs.daemon.redacting import Done, RedactRequest
from engramfs.history import catalog, pending
from engramfs.history.message_redaction import Message, RedactedMessages, messages_with
from engramfs.history.occurrences import Standing, standing
from engramfs.history.redaction_rows import Removed
from engramfs.history.repository import Repository
from engramfs.history.tree import head_tree, resolve
from engramfs.history.waiting_redaction import waits
from engramfs.model.entry import EMPTY_DIGEST, Kind
from engramfs.model.names import printable

Document = dict[str, Any]
_SHOWN = 100  # places where a content still stands


def describe(repository: Repository, request: RedactRequest, done: Done) -> Document:
    """What was done, as JSON; `standing` is where the same still is, the first hundred places.

    `waiting` are those of `pending` that wait on without it. `instead` is the name that a directory has now.
    `messages` are those that name the path, unless the head has it: restoring a file, say, leaves one.
    """
    document: Document = {"store": request.store, "number": request.number, "path": request.path}
    if done.messages is not None:
        return {**document, "message": True, **_messages(done.messages, request.store)}
    versions, pendings = _numbers(repository, done)
    left = (one for removed in done.removed for one in _standing(repository, removed))
    return {
        **document,
        "versions": sorted(versions),
        "pending": sorted(pendings),
        "waiting": sorted(number for number, waits_on in pendings.items() if waits_on),
        "changes": sum(removed.changes for removed in done.removed),
        "instead": printable(done.removed[-1].instead) or None,
        "standing": [msgspec.to_builtins(one) for one, _ in zip(left, range(_SHOWN), strict=False)],
        "messages": [_place(one, request.store) for one in _naming(repository, request)],
    }


def _naming(repository: Repository, request: RedactRequest) -> list[Message]:
    path = request.where
    with repository.engine.reading() as reader:
        store = catalog.named(reader, request.store)
        if not path or resolve(head_tree(reader, store), path) is not None:
            return []
    found = messages_with(repository.engine, store, printable(path), is_name=True)
    return list(islice(found, _SHOWN))


def _place(one: Message, store: str) -> Document:
    """A version, or something pending, that has a message."""
    if one.pending:
        return {"store": f"{store} (pending)", "version": one.pending, "path": ""}
    return {"store": store, "version": one.number, "path": ""}


def _numbers(repository: Repository, done: Done) -> tuple[set[int], dict[int, bool]]:
    """The versions that lost something, and what was pending and did: whether it waits on without it."""
    versions: set[int] = set()
    pendings: dict[int, bool] = {}
    with repository.engine.reading() as reader:
        for removed in done.parts():
            store = catalog.get(reader, removed.store)
            if store.base:
                offered = (pending.of_version(reader, store, number) for number in removed.versions)
                pendings |= {one.number: waits(one) for one in offered if one is not None}
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
