"""A tool's call becomes one version: every edit of it, in order, or none.

Symbolic links are never followed, so no path leads out of the store. An edited file keeps its node and its
lasting identity.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from engramfs.errors import (
    AlreadyExists,
    Conflict,
    InvalidName,
    NotFound,
    NotUnique,
    Stale,
    TooLarge,
    UsageError,
)
from engramfs.history import hygiene
from engramfs.history.commit import Commit
from engramfs.history.working_tree import Name, WorkingTree
from engramfs.model.author import Author
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.file_edit import (
    Append,
    Create,
    Delete,
    Edit,
    EditedFile,
    EditLimits,
    FileEdit,
    Overwrite,
    Rename,
)
from engramfs.model.names import MAX_PART, MAX_PATH, printable, raw
from engramfs.model.quantities import format_size
from engramfs.model.store import Store
from engramfs.model.transient import TransientNames
from engramfs.storage.protocol import Reader

RESERVED = b".versions"  # at the root of a store


class Edited(msgspec.Struct, frozen=True):
    """The commit of a call, and what its files are after it, each once."""

    commit: Commit
    files: tuple[EditedFile, ...]


class _Place(NamedTuple):
    """Where a path leads: the directory (0: it is missing), the last name, and what is there."""

    parent: int
    name: bytes
    entry: Entry | None


def plan(
    reader: Reader,
    store: Store,
    edits: Sequence[FileEdit],
    *,
    author: Author,
    via: str,
    now: int,
    message: str = "",
    limits: EditLimits | None = None,
    first_node: int = 0,
    held: Collection[Name] = (),
    transient: TransientNames | None = None,
) -> Edited:
    """The commit that does all `edits` to the head of `store`; without changes when it comes to nothing.

    `held` and `first_node` are as `WorkingTree` has them. Raises `UsageError` for a path or text that cannot
    be, `InvalidName` for a new name that is `transient` (by default one of the usual), `NotFound`,
    `AlreadyExists`, `Stale`, `NotUnique`, `TooLarge`, `Busy` for a file that a mount has just created and not
    closed, `Conflict` for a link or directory where a file should be, `QuotaExceeded`, and
    `HoldsSecret` where the store refuses what looks like one.
    """
    limits = limits or EditLimits()
    if store.secrets == "refuse":
        hygiene.check_message(message)
    if not edits:
        raise UsageError("there is nothing to do; give at least one file")
    if len(edits) > limits.max_files:
        raise TooLarge(
            f"{len(edits)} files in one call are over the limit of {limits.max_files}; use two calls"
        )
    tree = WorkingTree(reader, store, now, first_node, held)
    editor = _Editor(tree, store, limits, transient or TransientNames())
    files: dict[str, EditedFile] = {}
    for edit in edits:
        edited = editor.apply(edit)
        if isinstance(edit, Rename):
            files = {path: file for path, file in files.items() if not _is_at_or_below(path, edit.path)}
        files[edited.path] = edited
    return Edited(editor.tree.commit(author, via, message), tuple(files.values()))


def check_size(path: str, text: str, limits: EditLimits | None = None) -> None:
    """Raise `TooLarge` for what no plan with these limits would take as the content of `path`."""
    _check_size(path, len(_bytes(text)), (limits or EditLimits()).max_file_size)


def _check_size(path: str, size: int, limit: int) -> None:
    if size <= limit:
        return
    shown, most = format_size(size), format_size(limit)
    if shown == most:  # as they are rounded
        shown, most = f"{size:,} bytes", f"{limit:,} bytes"
    raise TooLarge(f"{path} would have {shown}, over the limit of {most}; split it into several files")


def nodes_needed(edits: Sequence[FileEdit]) -> int:
    """How many node ids a plan of `edits` may use."""
    paths = [edit.new_path if isinstance(edit, Rename) else edit.path for edit in edits]
    return sum(path.count("/") + 1 for path in paths)


def _is_at_or_below(path: str, above: str) -> bool:
    return path == above or path.startswith(f"{above}/")


def checked_path(path: str) -> bytes:
    """`path` if it may name a file in a store. Raises `UsageError`."""
    try:
        name = raw(path)
    except UnicodeEncodeError:
        raise UsageError(f"path {path!r} is not text") from None
    parts = name.split(b"/")
    if not name or any(part in (b"", b".", b"..") for part in parts) or b"\0" in name:
        raise UsageError(f"path {path!r} is not allowed; give one relative to the store, without . and ..")
    if len(name) > MAX_PATH or any(len(part) > MAX_PART for part in parts):
        raise UsageError(f"path {path[:80]!r}… is too long; a part has at most {MAX_PART} bytes")
    if parts[0] == RESERVED:
        raise UsageError(f"{printable(RESERVED)} is reserved; choose another name")
    return name


class _Editor:
    def __init__(
        self, tree: WorkingTree, store: Store, limits: EditLimits, transient: TransientNames
    ) -> None:
        self.tree = tree
        self._transient = transient
        self._max_file_size = min(limits.max_file_size, store.limits.max_file_size)
        self._refuses_secrets = store.secrets == "refuse"

    def apply(self, edit: FileEdit) -> EditedFile:
        path = checked_path(edit.path)
        place = self._find(path)
        if not isinstance(edit, Create):
            self._check_expected(edit.path, edit.expected_sha256)
        match edit:
            case Create():
                return self._create(path, place, edit.content)
            case Overwrite() if place.entry is None and edit.expected_sha256 is None:
                return self._create(path, place, edit.content)
            case Overwrite():
                return self._fill(path, place, _bytes(edit.content))
            case Append():
                before = self.tree.content(_file(path, place))
                return self._fill(path, place, before + _bytes(edit.content))
            case Edit():
                return self._fill(path, place, self._replaced(path, place, edit))
            case Delete():
                self._delete(path, place, recursive=edit.recursive)
                return EditedFile(edit.path, None)
            case Rename():
                return self._rename(path, place, edit.new_path)

    def _find(self, path: bytes) -> _Place:
        parent = ROOT_NODE
        *above, last = path.split(b"/")
        for depth, name in enumerate(above, start=1):
            entry = self.tree.lookup(parent, name)
            if entry is None:
                return _Place(0, last, None)
            if entry.kind is not Kind.DIRECTORY:
                where = printable(b"/".join(path.split(b"/")[:depth]))
                what = entry.kind.name.lower()
                raise Conflict(f"{where} is a {what} and not a directory; choose another path")
            parent = entry.node
        return _Place(parent, last, self.tree.lookup(parent, last))

    def _check_expected(self, path: str, expected: str | None) -> None:
        """Raises `Stale` when the file has another digest than its reader saw, or is gone."""
        if expected is None:
            return
        digest = self.tree.head_digest(checked_path(path))
        if digest is None or digest.hex() != expected.lower():
            now = "does not exist" if digest is None else f"has sha256 {digest.hex()} now"
            raise Stale(
                f"{path} {now}, not {expected} as expected; nothing was written: read it again",
                path=path,
                sha256=digest.hex() if digest is not None else None,
            )

    def _create(self, path: bytes, place: _Place, content: str) -> EditedFile:
        if place.entry is not None:
            raise AlreadyExists(f"{printable(path)} exists; use overwrite, append or edit to change it")
        self._check_name(path)  # before the content: its error names the path
        data = self._allowed(path, _bytes(content))
        parent = place.parent or self._make_above(path)
        self._check_lasting(place.name, path)
        entry = self.tree.make_file(parent, place.name, data)
        return EditedFile(printable(path), entry.digest.hex())

    def _make_above(self, path: bytes) -> int:
        parent = ROOT_NODE
        *above, _ = path.split(b"/")
        for depth, name in enumerate(above, start=1):
            entry = self.tree.lookup(parent, name)
            if entry is None:
                self._check_name(b"/".join(above[:depth]))
                self._check_lasting(name, path)
                entry = self.tree.make_directory(parent, name)
            parent = entry.node
        return parent

    def _check_name(self, path: bytes) -> None:
        """Raises `HoldsSecret` for a path that is to be new, where the store refuses what looks like one."""
        if self._refuses_secrets:
            hygiene.check_name(path)

    def _check_lasting(self, name: bytes, path: bytes) -> None:
        """Raises `InvalidName` for a new name that a mount would take for an editor's scratch file."""
        if name in self._transient:
            raise InvalidName(
                f"{printable(path)} is not allowed: a name like {printable(name)} is an editor's scratch "
                "file, which no version keeps; choose another name"
            )

    def _fill(self, path: bytes, place: _Place, content: bytes) -> EditedFile:
        entry = _file(path, place)
        entry = self.tree.fill(place.parent, place.name, entry, self._allowed(path, content))
        return EditedFile(printable(path), entry.digest.hex())

    def _replaced(self, path: bytes, place: _Place, edit: Edit) -> bytes:
        old, before = _bytes(edit.old_text), self.tree.content(_file(path, place))
        if not old:
            raise UsageError("old_text is empty; give the text to replace")
        count = before.count(old)
        if count != 1:
            raise NotUnique(
                f"old_text occurs {count} times in {edit.path}, and it must occur exactly once; "
                + ("give more of the text around it" if count else "read the file again"),
                path=edit.path,
                count=count,
            )
        return before.replace(old, _bytes(edit.new_text))

    def _delete(self, path: bytes, place: _Place, *, recursive: bool) -> None:
        if place.entry is None:
            raise _missing(path, "there is nothing to delete")
        if place.entry.kind is Kind.DIRECTORY and not recursive:
            raise Conflict(f"{printable(path)} is a directory; delete its files one by one")
        self.tree.remove(place.parent, place.name, place.entry)

    def _rename(self, path: bytes, place: _Place, new_path: str) -> EditedFile:
        if place.entry is None:
            raise _missing(path, "there is nothing to rename")
        target = checked_path(new_path)
        if (target + b"/").startswith(path + b"/") and place.entry.kind is Kind.DIRECTORY:
            raise UsageError(f"{new_path} lies in {printable(path)} itself; choose another path")
        there = self._find(target)
        if there.entry is not None:
            raise AlreadyExists(f"{new_path} exists; choose another path, or delete it first")
        self._check_name(target)
        parent = there.parent or self._make_above(target)
        self._check_lasting(there.name, target)
        self.tree.rename(place.parent, place.name, place.entry, parent, there.name)
        return EditedFile(new_path, place.entry.digest.hex() or None)

    def _allowed(self, path: bytes, content: bytes) -> bytes:
        _check_size(printable(path), len(content), self._max_file_size)
        if self._refuses_secrets:
            hygiene.check(printable(path), content)
        return content


def _file(path: bytes, place: _Place) -> Entry:
    """What is at a place, if it is a file."""
    if place.entry is None:
        raise _missing(path)
    if place.entry.kind is not Kind.FILE:
        raise Conflict(f"{printable(path)} is a {place.entry.kind.name.lower()} and not a file")
    return place.entry


def _missing(path: bytes, do: str = "use create to make it") -> NotFound:
    return NotFound(f"{printable(path)} does not exist; {do}")


def _bytes(text: str) -> bytes:
    try:
        return raw(text)
    except UnicodeEncodeError:
        raise UsageError("the text holds half of a surrogate pair; send whole characters") from None
