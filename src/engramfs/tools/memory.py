"""The tool `memory` of the Anthropic API (`memory_20250818`) over a session: six commands on paths.

Each command that changes something is one version. A file that another author changed between our look and
our write is looked at again.
"""

from collections.abc import Callable

from engramfs.errors import (
    AlreadyExists,
    Conflict,
    NotFound,
    NotUnique,
    ReadOnly,
    Refused,
    Stale,
    TooLarge,
    Unsupported,
    UsageError,
)
from engramfs.history.tree import Tree, resolve
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.file_edit import Create, Delete, EditLimits, FileEdit, Overwrite, Rename
from engramfs.model.names import printable
from engramfs.storage import blobs
from engramfs.tools import memory_text as text
from engramfs.tools.memory_command import MemoryCommand
from engramfs.tools.memory_paths import ROOT, Location, locate, organisation
from engramfs.tools.reach import ORG_MEMORY, Reach

LIMITS = EditLimits(max_file_size=2 << 20)  # the store's own limit holds beside it
_ATTEMPTS = 20  # of a command, while others change its file
_DEPTH = 2  # levels of a directory that are shown


class Memory:
    """The six commands. What is not done is an error whose message is for the model."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def run(self, asked: MemoryCommand) -> str:
        """Raises `UsageError` for an argument that is missing."""
        given = asked.needed()
        match asked.command:
            case "view":
                return self.view(given[0], asked.view_range)
            case "create":
                return self.create(*given)
            case "str_replace":
                return self.str_replace(given[0], given[1], asked.new_str or "")
            case "insert":
                return self.insert(*given)
            case "delete":
                return self.delete(*given)
            case "rename":
                return self.rename(*given)

    # Looking

    def view(self, path: str, view_range: tuple[int, ...] | None = None) -> str:
        self._reach.refresh()
        shown = path.rstrip("/") or path
        location = locate(self._reach, path)
        if location.entry is None:
            raise NotFound(text.missing(path))
        if location.entry.kind is Kind.DIRECTORY:
            return text.directory(shown, self._listing(shown, location))
        lines = self._content(location, path)[1].split("\n")
        if len(lines) > text.MAX_LINES:
            raise TooLarge(text.too_many_lines(path))
        first, last = 0, len(lines)
        if view_range is not None and len(view_range) == 2:
            first = max(1, view_range[0]) - 1
            last = len(lines) if view_range[1] == -1 else view_range[1]
        return text.file(path, lines[first:last], first + 1)

    def _listing(self, shown: str, location: Location) -> list[tuple[int, str]]:
        attachment = location.attachment
        with self._reach.tree(attachment) as (_, _, tree):
            assert location.entry is not None
            items = list(_below(tree, location.entry, shown, 1))
        if shown == ROOT and organisation(self._reach) is not None:
            items.append((0, f"{ORG_MEMORY}/"))
        return items

    def _content(self, location: Location, path: str) -> tuple[str, str]:
        """The digest and the text of a file."""
        attachment = location.attachment
        with self._reach.tree(attachment) as (reader, _, tree):
            entry = resolve(tree, location.path)
            if entry is None:
                raise NotFound(text.missing(path))
            if entry.kind is not Kind.FILE:
                raise Conflict(f"The path {path} is not a file.")
            content = blobs.read(reader, entry.digest, entry.size)
        try:
            return entry.digest.hex(), content.decode()
        except UnicodeDecodeError:
            raise Unsupported(f"The file {path} is not text.") from None

    # Changing

    def create(self, path: str, file_text: str) -> str:
        location = self._found(path)
        if location.entry is not None or location.is_root:
            raise AlreadyExists(text.exists(path))
        try:
            self._write(location, path, Create(printable(location.path), file_text))
        except AlreadyExists:
            raise AlreadyExists(text.exists(path)) from None
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        def change(content: str) -> tuple[str, str]:
            at = content.find(old_str) if old_str else -1
            if at < 0:
                raise NotFound(text.not_found(old_str, path))
            if content.count(old_str) > 1:
                raise NotUnique(text.not_unique(old_str, _lines_of(content, old_str)))
            changed = content.replace(old_str, new_str)
            return changed, text.edited(changed.split("\n"), content.count("\n", 0, at))

        return self._change(path, text.missing(path), change)

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        def change(content: str) -> tuple[str, str]:
            lines = content.split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= insert_line <= len(lines):
                raise UsageError(text.bad_line(insert_line, len(lines)))
            lines.insert(insert_line, insert_text.rstrip("\n"))
            return "\n".join(lines).removesuffix("\n") + "\n", f"The file {path} has been edited."

        return self._change(path, text.missing_error(path), change)

    def _change(self, path: str, missing: str, change: Callable[[str], tuple[str, str]]) -> str:
        """Write what `change` makes of a file's text, as the file is at that moment; `change`'s answer."""
        for _ in range(_ATTEMPTS):
            location = self._found(path)
            if location.entry is None:
                raise NotFound(missing)
            digest, before = self._content(location, path)
            after, answer = change(before)
            try:
                self._write(location, path, Overwrite(printable(location.path), after, digest))
            except Stale:
                continue
            return answer
        raise Conflict(f"Error: The file {path} is being changed by others all the time. Please try again")

    def delete(self, path: str) -> str:
        location = self._found(path)
        if location.is_root:
            raise Refused(text.root("delete", location.root))
        if location.entry is None:  # what is above it may be a file
            raise NotFound(text.missing_error(path))
        try:
            self._write(location, path, Delete(printable(location.path), recursive=True))
        except NotFound:
            raise NotFound(text.missing_error(path)) from None
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        old, new = self._found(old_path), self._found(new_path)
        if old.is_root:
            raise Refused(text.root("rename", old.root))
        if new.entry is not None:
            raise AlreadyExists(text.destination_exists(new_path))
        if old.entry is None:
            raise NotFound(text.missing_error(old_path))
        if old.attachment.store != new.attachment.store:
            raise Conflict(f"Error: {new_path} is in another memory than {old_path}")
        try:
            self._write(old, old_path, Rename(printable(old.path), printable(new.path)))
        except NotFound:
            raise NotFound(text.missing_error(old_path)) from None
        except AlreadyExists:
            raise AlreadyExists(text.destination_exists(new_path)) from None
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> str:
        """Remove everything, as one version."""
        self._reach.refresh()
        memory = self._reach.memory()
        with self._reach.tree(memory) as (_, _, tree):
            names = [printable(name) for name, _ in tree.children(ROOT_NODE)]
        if names:
            limits = EditLimits(max_files=len(names))
            self._reach.write(memory, [Delete(name, recursive=True) for name in names], limits=limits)
        return "All memory cleared"

    def _found(self, path: str) -> Location:
        self._reach.refresh()
        return locate(self._reach, path)

    def _write(self, location: Location, path: str, edit: FileEdit) -> None:
        if not location.attachment.writable:
            raise ReadOnly(f"Error: {path} is read-only")
        self._reach.write(location.attachment, [edit], limits=LIMITS)


def _below(tree: Tree, directory: Entry, shown: str, depth: int) -> list[tuple[int, str]]:
    """Size and path of what is in a directory: sorted, without what is hidden and without links."""
    found: list[tuple[int, str]] = []
    for name, entry in tree.children(directory.node):
        path = f"{shown}/{printable(name)}"
        if name.startswith(b".") or entry.kind is Kind.SYMLINK:
            continue
        if entry.kind is Kind.FILE:
            found.append((entry.size, path))
            continue
        found.append((0, f"{path}/"))
        if depth < _DEPTH:
            found.extend(_below(tree, entry, path, depth + 1))
    return found


def _lines_of(content: str, old: str) -> list[int]:
    """The number of the line in which each occurrence begins."""
    lines: list[int] = []
    at = content.find(old)
    while at >= 0:
        lines.append(content.count("\n", 0, at) + 1)
        at = content.find(old, at + 1)
    return lines
