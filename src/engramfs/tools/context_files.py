"""The context tools: files of the stores to which a session may write, one call one version.

They read the present of a store. A mount of the same session may show an older version of it: there a context
that is pinned stays what it was.
"""

from typing import Any, Literal

import msgspec

from engramfs.client import Attachment
from engramfs.errors import TooLarge, Unsupported, UsageError
from engramfs.model.file_edit import Append, Create, Delete, Edit, EditLimits, Overwrite
from engramfs.model.names import printable
from engramfs.tools.reach import Reach, short_name

Answer = dict[str, Any]
LONGEST_MESSAGE = 4 << 10  # bytes


class ListContextFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    context: str | None = None


class ReadContextFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    context: str
    path: str


class FileChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One file of a call. What a mode needs beside its path is checked by `as_edit`."""

    path: str
    mode: Literal["create", "append", "edit", "overwrite", "delete"]
    content: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    expected_sha256: str | None = None


class WriteContext(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    context: str
    files: tuple[FileChange, ...]
    message: str = ""


class ContextFiles:
    """`limits` bound what one call may write."""

    def __init__(self, reach: Reach, limits: EditLimits | None = None) -> None:
        self._reach = reach
        self._limits = limits or EditLimits()

    def list_context_files(self, asked: ListContextFiles) -> Answer:
        self._reach.refresh()
        wanted = self._reach.writable()
        if asked.context is not None:
            wanted = [self._reach.named(asked.context)]
        return {"contexts": [self._described(each) for each in wanted]}

    def _described(self, attachment: Attachment) -> Answer:
        store = self._reach.client.store(attachment.store)
        files = self._reach.files(_current(attachment))
        return {
            "slug": short_name(attachment),
            "name": store.name,
            "description": store.description,
            "access": attachment.access,
            "version": store.version,
            "files": [{"path": each.path, "size": each.size, "sha256": each.sha256} for each in files],
        }

    def read_context_file(self, asked: ReadContextFile) -> Answer:
        self._reach.refresh()
        attachment = self._reach.named(asked.context)
        path = f"{attachment.inside}/{asked.path}" if attachment.inside else asked.path
        read = self._reach.read(_current(attachment), path)
        return {
            "context": short_name(attachment),
            "path": asked.path,
            "content": as_text(read.content, asked.path),
            "sha256": read.sha256,
            "version": read.version,
        }

    def write_context(self, asked: WriteContext) -> Answer:
        self._reach.refresh()
        attachment = self._reach.writable_named(asked.context)
        _check_message(asked.message)
        edits = [as_edit(each) for each in asked.files]
        written = self._reach.write(attachment, edits, asked.message, self._limits)
        return {
            "context": short_name(attachment),
            "version": written.version,
            "changed": written.changed,
            "files": [{"path": each.path, "sha256": each.sha256} for each in written.files],
        }


def _check_message(message: str) -> None:
    """Raises `TooLarge` for what is no message but a text."""
    size = len(message.encode(errors="replace"))
    if size > LONGEST_MESSAGE:
        raise TooLarge(
            f"a message has at most {LONGEST_MESSAGE:,} bytes, and this one {size:,}; "
            "write the rest into a file"
        )


def _current(attachment: Attachment) -> Attachment:
    """The same without its pin."""
    return msgspec.structs.replace(attachment, live=True)


def as_edit(change: FileChange) -> Create | Append | Edit | Overwrite | Delete:
    """Raises `UsageError` when the mode needs what is not there, or has no use for what is."""
    given = {key: value for key, value in msgspec.structs.asdict(change).items() if value is not None}
    try:
        return msgspec.convert(given, Create | Append | Edit | Overwrite | Delete)
    except msgspec.ValidationError as error:
        raise UsageError(f"{change.path}: mode {change.mode}: {error}") from error


def as_text(content: bytes, path: str) -> str:
    """Raises `Unsupported` for what is not UTF-8: an agent cannot read it, and must not write it back."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Unsupported(f"{printable(path.encode())} is not text; read it in a mount") from None
