"""Redaction, for the control socket and for the command alike: what is asked, and what is done."""

import time
from collections.abc import Iterator

import msgspec

from engramfs.errors import UsageError
from engramfs.history import catalog
from engramfs.history.directory_redaction import redact_directory
from engramfs.history.directory_target import is_directory, is_pending_directory
from engramfs.history.message_redaction import RedactedMessages, redact_message
from engramfs.history.pending_redaction import redact_pending
from engramfs.history.recursive_redaction import redact_recursively
from engramfs.history.redacted_names import redacted_names
from engramfs.history.redaction import redact
from engramfs.history.redaction_rows import Removed
from engramfs.history.repository import Repository
from engramfs.model.author import Author
from engramfs.model.names import printable, raw
from engramfs.model.store import Store


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

    @property
    def where(self) -> bytes:
        """The path in the store: `/`, `.` and nothing are its root."""
        return b"/".join(name for name in raw(self.path).split(b"/") if name not in (b"", b"."))


class Done(msgspec.Struct, frozen=True):
    """What was taken out: contents and names, or messages."""

    removed: tuple[Removed, ...] = ()
    messages: RedactedMessages | None = None

    def parts(self) -> Iterator[Removed]:
        """What was taken out, of the store and of its forks."""
        for removed in self.removed:
            yield from (removed, *removed.beside)


def carry_out(repository: Repository, request: RedactRequest, author: Author) -> Done:
    """Raises what the functions of `engramfs.history` do that redact, and `UsageError`."""
    path, now = request.where, time.time_ns()
    about = (repository, request.store, request.number)
    why = (author, request.reason, now)
    if request.message:
        messages = redact_message(*about, *why, is_pending=request.pending, everywhere=request.everywhere)
        return Done(messages=messages)
    if request.pending and is_pending_directory(*about, path) and not request.everywhere:
        return Done((redact_directory(*about, path, *why, is_pending=True),))
    if request.pending:
        return Done((redact_pending(*about, path, *why, everywhere=request.everywhere),))
    if not is_directory(*about, path):
        return Done((redact(*about, path, *why, everywhere=request.everywhere),))
    if request.everywhere:
        raise UsageError(f"{request.path} is a directory, and --everywhere is about a content; leave it out")
    if request.recursive:
        return Done(tuple(redact_recursively(*about, path, *why)))
    return Done((redact_directory(*about, path, *why),))


def paths_gone(repository: Repository, request: RedactRequest, done: Done) -> tuple[Store, set[str]]:
    """The store, and the paths that nobody is to read any more."""
    with repository.engine.reading() as reader:
        store = catalog.named(reader, request.store)
        names = redacted_names(reader, store, request.where, done.removed)
    return store, {printable(name) for name in names}
