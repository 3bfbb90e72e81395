"""A backend of deepagents over a session. Needs the extra `engramfs[deepagents]`.

    backend = EngramBackend(client.open_session(agent="digest", actor="alice"))
    agent = create_deep_agent(backend=backend, …)

Paths are those that a mount of the session has (`/memories/user/…`); with `root`, those below it. A write, an
edit, a delete is one version of its store, and so is an upload of several files, for each store it touches.
An agent is shown `\\n` at the end of each line; what it edits keeps the line endings that it had.
The asynchronous methods are those of `BackendProtocol`, which run these in threads.
"""

import base64
from collections.abc import Callable

from deepagents.backends.protocol import (
    FILE_NOT_FOUND,
    INVALID_PATH,
    IS_DIRECTORY,
    PERMISSION_DENIED,
    BackendProtocol,
    DeleteResult,
    EditResult,
    FileData,
    FileDownloadResponse,
    FileInfo,
    FileOperationError,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.utils import (
    InvalidGlobPatternError,
    _get_backend_read_file_type,
    compile_grep_include_glob,
    grep_matches_from_files,
    perform_string_replacement,
    slice_read_response,
)

from engramfs.client import Attachment, Session
from engramfs.errors import Conflict, EngramError, NotFound, Refused, Stale, UsageError
from engramfs.model.file_edit import Delete, EditLimits, FileEdit, Overwrite
from engramfs.model.line_endings import replace_text, with_newlines
from engramfs.model.names import printable
from engramfs.model.times import format_time
from engramfs.tools.reach import Reach
from engramfs.tools.session_tree import Item, SessionTree

LIMITS = EditLimits(max_file_size=8 << 20, max_files=1000)  # the store's own limit holds beside it
_ATTEMPTS = 20  # of an edit, while others change the file
_TOO_LARGE_TO_SEARCH = 10 << 20  # bytes


class EngramBackend(BackendProtocol):
    """The files of `session`; `root` is a path of it that is `/` for the agent."""

    def __init__(self, session: Session, root: str = "/") -> None:
        self._reach = Reach(session)
        self._tree = SessionTree(self._reach, root)

    # Looking

    def ls(self, path: str) -> LsResult:
        try:
            self._reach.refresh()
            return LsResult(entries=[_info(item) for item in self._tree.children(path)])
        except NotFound:
            return LsResult(error=f"Path '{path}': path_not_found")
        except Conflict:
            return LsResult(error=f"Path '{path}': not_a_directory")
        except EngramError as error:
            return LsResult(error=f"Cannot list '{path}': {self._reach.told(error)}")

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        try:
            self._reach.refresh()
            item, content = self._tree.read(file_path)
        except NotFound:
            return ReadResult(error=f"File '{file_path}' not found")
        except EngramError as error:
            return ReadResult(error=f"Error reading file '{file_path}': {self._reach.told(error)}")
        data = _file_data(item, content)
        if data["encoding"] != "utf-8":
            return ReadResult(file_data=data)
        return slice_read_response(data, offset, limit)

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        try:
            self._reach.refresh()
            found = [item for item in self._tree.files(path or "/") if 0 < item.size <= _TOO_LARGE_TO_SEARCH]
            files = {item.path: _searched(_file_data(item, self._tree.read(item.path)[1])) for item in found}
        except EngramError as error:
            why = self._reach.told(error)
            return GrepResult(error=f"Error searching path '{path or '/'}': {why}", matches=[])
        return grep_matches_from_files(files, pattern, path or "/", glob, max_count=max_count)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        base = (path or "/").rstrip("/")
        try:
            matches = compile_grep_include_glob(pattern)
            self._reach.refresh()
            found = [
                _info(item)
                for item in self._tree.files(path or "/")
                if item.path != base and matches(item.path.removeprefix(base).lstrip("/"))
            ]
        except InvalidGlobPatternError as error:
            return GlobResult(error=str(error))
        except EngramError as error:
            return GlobResult(error=f"Error searching path '{path or '/'}': {self._reach.told(error)}")
        return GlobResult(matches=sorted(found, key=lambda info: info["path"]))

    # Changing

    def write(self, file_path: str, content: str) -> WriteResult:
        error = self._change(file_path, lambda inside: Overwrite(inside, content))
        if error is not None:
            return WriteResult(error=f"Error writing file '{file_path}': {self._reach.told(error)}")
        return WriteResult(path=file_path)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        for _ in range(_ATTEMPTS):
            try:
                return self._edited(file_path, old_string, new_string, replace_all)
            except Stale:  # another changed it between our look and our write
                continue
            except NotFound:
                return EditResult(error=f"Error: File '{file_path}' not found")
            except EngramError as error:
                return EditResult(error=f"Error editing file '{file_path}': {self._reach.told(error)}")
        return EditResult(error=f"Error editing file '{file_path}': it is being changed by others; try again")

    def _edited(self, path: str, old: str, new: str, replace_all: bool) -> EditResult:
        self._reach.refresh()
        item, content = self._tree.read(path)
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return EditResult(error="Error: Cannot edit binary files with text replacements.")
        shown, sought = with_newlines(text), with_newlines(old)
        replaced = perform_string_replacement(shown, sought, new, replace_all)
        if isinstance(replaced, str):
            return EditResult(error=replaced)
        attachment, inside = self._tree.writable_place(path)
        change = Overwrite(inside, replace_text(text, old, new), item.sha256)
        self._reach.write(attachment, [change], limits=LIMITS)
        return EditResult(path=path, occurrences=replaced[1])

    def delete(self, file_path: str) -> DeleteResult:
        error = self._change(file_path, lambda inside: Delete(inside, recursive=True))
        if isinstance(error, NotFound) or (isinstance(error, Conflict) and self._is_below_file(file_path)):
            return DeleteResult(error=f"Error: '{file_path}' not found")
        if error is not None:
            return DeleteResult(error=f"Error deleting '{file_path}': {self._reach.told(error)}")
        return DeleteResult(path=file_path)

    def _is_below_file(self, path: str) -> bool:
        """Whether something above `path` is a file, so that there can be nothing at it."""
        above = path.rstrip("/").rpartition("/")[0]
        while above:
            item = self._tree.item(above)
            if item is not None:
                return not item.is_directory
            above = above.rpartition("/")[0]
        return False

    def _change(self, path: str, edit: Callable[[str], FileEdit]) -> EngramError | None:
        try:
            self._reach.refresh()
            attachment, inside = self._tree.writable_place(path)
            self._reach.write(attachment, [edit(inside)], limits=LIMITS)
        except EngramError as error:
            return error
        return None

    # Whole files

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """One version of each store; where a store refuses one of its files, it takes none of them."""
        self._reach.refresh()
        errors: dict[int, str] = {}
        stores: dict[str, Attachment] = {}
        by_store: dict[str, list[tuple[int, FileEdit]]] = {}
        for at, (path, content) in enumerate(files):
            try:
                attachment, inside = self._tree.writable_place(path)
                item = self._tree.item(path)
                if item is not None and item.is_directory:
                    raise Conflict(f"{path} is a directory")
                if self._is_below_file(path):
                    raise UsageError(f"{path} is below a file")
                stores[attachment.store] = attachment
                by_store.setdefault(attachment.store, []).append((at, Overwrite(inside, printable(content))))
            except EngramError as error:
                errors[at] = self._code(error)
        for store, edits in by_store.items():
            try:
                self._reach.write(stores[store], [edit for _, edit in edits], limits=LIMITS)
            except EngramError as error:
                errors |= {at: self._code(error) for at, _ in edits}
        return [FileUploadResponse(path=path, error=errors.get(at)) for at, (path, _) in enumerate(files)]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        self._reach.refresh()
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path=path, content=self._tree.read(path)[1])
        except NotFound:
            if self._is_below_file(path):
                return FileDownloadResponse(path=path, error=INVALID_PATH)
            is_there = self._tree.item(path) is not None
            return FileDownloadResponse(path=path, error=IS_DIRECTORY if is_there else FILE_NOT_FOUND)
        except EngramError as error:
            return FileDownloadResponse(path=path, error=self._code(error))

    def _code(self, error: EngramError) -> FileOperationError | str:
        """The protocol's word for an error, or what it says."""
        if isinstance(error, NotFound):
            return FILE_NOT_FOUND
        if isinstance(error, Refused) and error.code in ("read_only", "refused", "archived"):
            return PERMISSION_DENIED
        if isinstance(error, Conflict) and error.code == "conflict":
            return IS_DIRECTORY
        if isinstance(error, UsageError):
            return INVALID_PATH
        return self._reach.told(error)


def _info(item: Item) -> FileInfo:
    path = f"{item.path}/" if item.is_directory else item.path
    info = FileInfo(path=path, is_dir=item.is_directory, size=item.size)
    if item.mtime:
        info["modified_at"] = format_time(item.mtime)
    return info


def _searched(data: FileData) -> FileData:
    """Without the end of the last line, after which the SDK would see one more."""
    if data["encoding"] == "utf-8":
        data["content"] = data["content"].removesuffix("\n")
    return data


def _file_data(item: Item, content: bytes) -> FileData:
    data = FileData(content="", encoding="utf-8", modified_at=format_time(item.mtime))
    if _get_backend_read_file_type(item.path) == "text":
        try:
            data["content"] = content.decode()
        except UnicodeDecodeError:
            pass
        else:
            return data
    data["encoding"] = "base64"
    data["content"] = base64.standard_b64encode(content).decode()
    return data
