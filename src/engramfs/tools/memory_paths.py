"""Where paths under `/memories` lead.

`/memories` is the memory of the session's actor, so `/memories/notes.md` is the file `notes.md` of its store.
As in a mount, `/memories/user` is that memory too, and `/memories/org` is the memory of the organisation,
where the session has it.

Symbolic links are followed within a store; one that leads out is an escape, whatever is there.
"""

import posixpath
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from engramfs.client import Attachment
from engramfs.errors import UsageError
from engramfs.history.tree import resolve
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.names import raw
from engramfs.tools.reach import ORG_MEMORY, USER_MEMORY, Reach

if TYPE_CHECKING:
    from engramfs.history.tree import Tree

ROOT = "/memories"
_MAX_LINKS = 40


class Location(msgspec.Struct, frozen=True):
    """Where a path leads: `path` in the store of `attachment`, and what is there."""

    attachment: Attachment
    path: bytes  # b"" is the root
    entry: Entry | None

    @property
    def is_root(self) -> bool:
        return not self.path

    @property
    def root(self) -> str:
        """The path of the memory that it lies in."""
        return ORG_MEMORY if self.attachment.path == ORG_MEMORY else ROOT


def locate(reach: Reach, path: str) -> Location:
    """Raises `UsageError` for a path that is not under `/memories`, or that leads out of it."""
    attachment, inside = _attachment(reach, _plain(path))
    with reach.tree(attachment) as (_, _, tree):
        found = _followed(tree, inside, path)
        return Location(attachment, found, resolve(tree, found))


def organisation(reach: Reach) -> Attachment | None:
    """The attachment that `/memories/org` is."""
    return reach.at(ORG_MEMORY)


def _plain(path: str) -> str:
    """`path` without `.` and `..`, checked."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise UsageError(f"Path must start with {ROOT}, got: {path}")
    plain = posixpath.normpath(path)
    decoded = path
    for _ in range(3):  # `%252e` is one that was encoded twice
        decoded = unquote(decoded)
    encoded = ".." in decoded.replace("\\", "/").split("/") and ".." not in path.split("/")
    if encoded or "\0" in decoded or (plain != ROOT and not plain.startswith(f"{ROOT}/")):
        raise _escape(path)
    return plain


def _attachment(reach: Reach, plain: str) -> tuple[Attachment, bytes]:
    memory, org = reach.memory(), organisation(reach)
    for attachment, prefix in ((org, ORG_MEMORY), (memory, USER_MEMORY), (memory, ROOT)):
        if attachment is not None and (plain == prefix or plain.startswith(f"{prefix}/")):
            return attachment, _encoded(plain.removeprefix(prefix).strip("/"), plain)
    raise _escape(plain)


def _encoded(path: str, shown: str) -> bytes:
    try:
        return raw(path)
    except UnicodeEncodeError:
        raise _escape(shown) from None


def _followed(tree: "Tree", path: bytes, shown: str) -> bytes:
    """`path` with its links followed, as far as it exists."""
    left = [part for part in path.split(b"/") if part]
    done: list[bytes] = []
    nodes = [ROOT_NODE]
    links = 0
    while left:
        part = left.pop(0)
        if part == b"..":
            if not done:
                raise _escape(shown)
            done.pop()
            nodes.pop()
            continue
        entry = tree.lookup(nodes[-1], part) if nodes[-1] else None
        if entry is not None and entry.kind is Kind.SYMLINK:
            links += 1
            if links > _MAX_LINKS or entry.target.startswith(b"/"):
                raise _escape(shown)
            left = [each for each in entry.target.split(b"/") if each not in (b"", b".")] + left
            continue
        done.append(part)
        nodes.append(entry.node if entry is not None and entry.kind is Kind.DIRECTORY else 0)
    return b"/".join(done)


def _escape(path: str) -> UsageError:
    return UsageError(f"Path {path} would escape {ROOT} directory")
