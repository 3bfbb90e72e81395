"""What the method `edit` is asked and answers, and the part of it that needs no daemon.

A program that holds the store lock does the same by itself: see `engramfs.client`.
"""

from collections.abc import Collection, Sequence
from typing import Protocol, TypeVar

import msgspec

from engramfs.errors import NotFound, ReadOnly, Stale
from engramfs.history import catalog, commit, edit, forks, log, pending
from engramfs.history.commit import Commit
from engramfs.history.working_tree import Name
from engramfs.model.access import Access
from engramfs.model.author import Author
from engramfs.model.file_edit import EditedFile, EditLimits, FileEdit
from engramfs.model.transient import TransientNames
from engramfs.model.version import Version
from engramfs.storage.protocol import Writer

VIA = "tool"  # how a version says that it came this way


class EditRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call, for a session that has `store` attached. `head` is the version that it was planned for."""

    session: str
    store: str
    edits: tuple[FileEdit, ...]
    message: str = ""
    limits: EditLimits = EditLimits()
    head: int | None = None


class Written(msgspec.Struct, frozen=True):
    """What became of a call. `version` is the head after it, and `changed` whether the call made it.

    `position` is that of the feed: who follows it up to here knows of this version.
    """

    store: str
    version: int
    changed: bool
    position: int
    files: tuple[EditedFile, ...]
    pending: int = 0  # under which number it waits for approval; then nothing is written yet


class HasAccess(Protocol):
    """Of an attachment, what says whether its session may write to it."""

    @property
    def store(self) -> str: ...

    @property
    def access(self) -> Access: ...


Attachable = TypeVar("Attachable", bound=HasAccess)


def writable_attachment(session: str, attachments: Sequence[Attachable], store: str) -> Attachable:
    """The attachment by which a session writes to `store`: directly, rather than by asking.

    Raises `NotFound` when the session has no such store, and `ReadOnly` when it may only read it.
    """
    found = [each for each in attachments if each.store == store]
    if not found:
        raise NotFound(f"session {session} has no store {store}; engramfs session show lists what it has")
    for access in (Access.READ_WRITE, Access.ASK):
        for each in found:
            if each.access is access:
                return each
    raise ReadOnly(f"{store} is read-only in session {session}; nothing was written")


class Applied(msgspec.Struct, frozen=True):
    """The same inside of the transaction, with what live trees take over."""

    commit: Commit
    version: Version | None
    written: Written


def apply(
    writer: Writer,
    request: EditRequest,
    author: Author,
    now: int,
    *,
    first_node: int = 0,
    held: Collection[Name] = (),
    transient: TransientNames | None = None,
    fork: int = 0,
) -> Applied:
    """Plan and commit a call: to the store, or to a fork of it, where it waits for approval.

    Raises as `engramfs.history.edit.plan` does, `Archived`, and `Stale` when the head is another than asked.
    """
    store = catalog.writable(writer, request.store)
    head = catalog.head(writer, store.id).number
    if request.head is not None and request.head != head:
        raise Stale(
            f"{store.name} is at version {head} and not at {request.head} any more; nothing was written: "
            "look at it again",
            version=head,
        )
    target = forks.as_base(writer, catalog.get(writer, fork)) if fork else store
    planned = edit.plan(
        writer,
        target,
        request.edits,
        author=author,
        via=VIA,
        now=now,
        message=request.message,
        limits=request.limits,
        first_node=first_node,
        held=held,
        transient=transient,
    )
    offered = None
    if fork:
        version = forks.apply(writer, planned.commit, head)
        offered = pending.of_version(writer, target, version.number) if version is not None else None
    else:
        version = commit.apply(writer, planned.commit)
    written = Written(
        store=store.name,
        version=version.number if version is not None and not fork else head,
        changed=version is not None and not fork,
        position=log.feed_position(writer),
        files=planned.files,
        pending=offered.number if offered is not None else 0,
    )
    return Applied(planned.commit, version, written)
