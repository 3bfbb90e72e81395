"""The files of a session under the paths that its mounts have: `/memories/user/notes.md`.

Directories above attachments are there, and nothing can be made in them. Links are not followed, nor shown.
"""

import posixpath
from collections.abc import Iterator

import msgspec

from engramfs.client import Attachment
from engramfs.errors import Conflict, NotFound, ReadOnly, UsageError
from engramfs.history.tree import resolve, walk
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable, raw
from engramfs.storage import blobs
from engramfs.tools.reach import Reach


class Item(msgspec.Struct, frozen=True):
    """A file or directory. `size` in bytes, `mtime` in nanoseconds since 1970, `sha256` of files alone."""

    path: str
    is_directory: bool
    size: int = 0
    mtime: int = 0
    sha256: str = ""


class SessionTree:
    """`root` is a path of the session that is `/` here."""

    def __init__(self, reach: Reach, root: str = "/") -> None:
        self._reach = reach
        self._root = root.rstrip("/")

    def place(self, path: str) -> tuple[Attachment, str]:
        """The attachment that a path lies in, and the path in its store.

        Raises `UsageError` for a path that is none, `NotFound` for one that no attachment has.
        """
        whole = self._whole(path)
        for attachment in self._reach:
            if whole == attachment.path or whole.startswith(f"{attachment.path}/"):
                below = whole.removeprefix(attachment.path).lstrip("/")
                return attachment, "/".join(part for part in (attachment.inside, below) if part)
        raise NotFound(f"{path} is not in this session")

    def _whole(self, path: str) -> str:
        parts = path.split("/")
        if not path.startswith("/") or "\0" in path or any(part in (".", "..") for part in parts):
            raise UsageError(f"path {path!r} is not allowed; give an absolute one, without . and ..")
        return self._root + posixpath.normpath(path).rstrip("/")

    def writable_place(self, path: str) -> tuple[Attachment, str]:
        """The same, for writing. Raises `ReadOnly` too, and `Conflict` for an attachment itself."""
        try:
            attachment, inside = self.place(path)
        except NotFound:
            raise ReadOnly(f"{path} is not in a store; write to a path in one") from None
        if not attachment.writable:
            raise ReadOnly(f"{path} is read-only")
        if not inside or inside == attachment.inside:
            raise Conflict(f"{path} is a store, not a file in it")
        return attachment, inside

    def item(self, path: str) -> Item | None:
        """What is at a path; None when nothing is."""
        whole = self._whole(path) or "/"
        prefix = whole.rstrip("/") + "/"
        if any(each.path.startswith(prefix) for each in self._reach):
            return Item(path, is_directory=True)
        try:
            attachment, inside = self.place(path)
        except NotFound:
            return None
        with self._reach.tree(attachment) as (_, _, tree):
            entry = resolve(tree, raw(inside))
        return _item(path, entry) if entry is not None and entry.kind is not Kind.SYMLINK else None

    def children(self, path: str) -> list[Item]:
        """What is in a directory, by name. Raises `NotFound`, and `Conflict` for a file."""
        shown = path.rstrip("/")
        found = {}
        prefix = self._whole(path).rstrip("/") + "/"
        for attachment in self._reach:
            if attachment.path.startswith(prefix):
                name = attachment.path.removeprefix(prefix).split("/")[0]
                found[name] = Item(f"{shown}/{name}", is_directory=True)
        if not found:
            attachment, inside = self.place(path)
            with self._reach.tree(attachment) as (_, _, tree):
                entry = resolve(tree, raw(inside))
                if entry is None:
                    raise NotFound(f"{path} does not exist")
                if entry.kind is not Kind.DIRECTORY:
                    raise Conflict(f"{path} is not a directory")
                for name_bytes, child in tree.children(entry.node):
                    if child.kind is not Kind.SYMLINK:
                        found[printable(name_bytes)] = _item(f"{shown}/{printable(name_bytes)}", child)
        return [found[name] for name in sorted(found)]

    def files(self, path: str = "/") -> Iterator[Item]:
        """Every file at and below a path, by attachment and path."""
        whole = self._whole(path)
        for attachment in self._reach:
            below = attachment.path.startswith(whole.rstrip("/") + "/") or attachment.path == whole
            inside = attachment.inside
            if not below:
                if not whole.startswith(f"{attachment.path}/"):
                    continue
                inside = self.place(path)[1]
            start = attachment.path if below else whole
            with self._reach.tree(attachment) as (_, _, tree):
                for found, entry in walk(tree, raw(inside)):
                    if entry.kind is Kind.FILE:
                        rest = printable(found).removeprefix(inside).lstrip("/")
                        yield _item((f"{start}/{rest}" if rest else start).removeprefix(self._root), entry)

    def read(self, path: str) -> tuple[Item, bytes]:
        """A file and its content. Raises `NotFound`, and `Conflict` for a directory."""
        attachment, inside = self.place(path)
        with self._reach.tree(attachment) as (reader, _, tree):
            entry = resolve(tree, raw(inside))
            if entry is None or entry.kind is Kind.SYMLINK:
                raise NotFound(f"{path} does not exist")
            if entry.kind is not Kind.FILE:
                raise Conflict(f"{path} is a directory")
            return _item(path, entry), blobs.read(reader, entry.digest, entry.size)


def _item(path: str, entry: Entry) -> Item:
    is_directory = entry.kind is Kind.DIRECTORY
    return Item(path, is_directory, 0 if is_directory else entry.size, entry.mtime, entry.digest.hex())
