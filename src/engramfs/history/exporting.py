"""The tree of a store, at its head or at a version, becomes a plain directory.

Nothing that is there already is written over: the directory is new or empty, and each file is created
exclusively. Set-uid and set-gid bits are not carried over, since what an agent wrote would then run with
the rights of whoever exports. Everything else that an entry has is: mode, mtime, symlinks, hard links and
`user.*` attributes.

Concurrency. The tree is listed in one read transaction; contents, which are never changed, are read in
transactions of their own, so that none stays open for long.
"""

import errno
import os
from collections.abc import Callable, Iterator

import msgspec

from engramfs.errors import Conflict, Corrupt, EngramError, Full, Unavailable, UsageError
from engramfs.history.repository import Repository
from engramfs.history.tree import tree_at, walk
from engramfs.history.unmade_directory import unmade
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.storage import blobs
from engramfs.storage.protocol import Engine

Progress = Callable[[int, int, int, int], None]  # files done, of all; bytes done, of all

_MODE = 0o1777
_PARTS = 8  # parts of a file in one read transaction


class Exported(msgspec.Struct, frozen=True):
    """What was written. `without_xattrs` counts entries whose attributes the filesystem there cannot keep.

    `redacted` counts files that are not there, since their content was taken out of the history;
    `redacted_paths` names them, printable.
    """

    files: int
    bytes: int
    without_xattrs: int
    redacted: int = 0
    redacted_paths: tuple[str, ...] = ()


def export(
    repository: Repository,
    store: Store,
    number: int | None,
    directory: bytes,
    progress: Progress = lambda *_: None,
) -> Exported:
    """Write the tree of `store` at `number` (None: its head) into `directory`.

    Raises `NotFound` for a version or parent directory that does not exist, `Conflict` when `directory` is
    not empty, `Corrupt` naming the store and path of a damaged content, `Full`, `Unavailable`.
    """
    with repository.engine.reading() as reader:
        entries = list(walk(tree_at(reader, store, number)))
    _prepare(directory)
    export = _Export(repository, store, directory, entries)
    export.write(progress)
    redacted = tuple(printable(path) for path, entry in entries if entry.is_redacted)
    return Exported(export.files, export.bytes, export.without_xattrs, len(redacted), redacted)


def _prepare(directory: bytes) -> None:
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        _check_empty(directory)
    except FileNotFoundError:
        raise unmade(directory) from None
    except OSError as error:
        raise _failed(directory, error) from error


def _check_empty(directory: bytes) -> None:
    try:
        names = os.listdir(directory)
    except NotADirectoryError:
        raise UsageError(f"{printable(directory)} is not a directory") from None
    except OSError as error:
        raise _failed(directory, error) from error
    if names:
        raise Conflict(f"{printable(directory)} is not empty; name a new directory, or empty it")


class _Export:
    def __init__(
        self, repository: Repository, store: Store, directory: bytes, entries: list[tuple[bytes, Entry]]
    ) -> None:
        self._engine = repository.engine
        self._store = store
        self._directory = directory
        self._entries = [(path, entry) for path, entry in entries if not entry.is_redacted]
        self._first: dict[int, bytes] = {}  # node → where its first name was written
        self.files = 0
        self.bytes = 0
        self.without_xattrs = 0

    def write(self, progress: Progress) -> None:
        sizes = {entry.node: entry.size for _, entry in self._entries if entry.kind is Kind.FILE}
        total = sum(sizes.values())
        for path, entry in self._entries:
            place = self._place(path)
            try:
                self._write_one(place, path, entry)
            except OSError as error:
                raise _failed(place, error) from error
            if entry.kind is Kind.FILE:
                progress(self.files, len(sizes), self.bytes, total)
        # Last and from the bottom up: writing into a directory changes its mtime, and may need its mode.
        for path, entry in reversed(self._entries):
            if entry.kind is Kind.DIRECTORY:
                place = self._place(path)
                try:
                    self._finish(place, entry)
                except OSError as error:
                    raise _failed(place, error) from error

    def _place(self, path: bytes) -> bytes:
        if any(name in (b".", b"..") or b"\0" in name for name in path.split(b"/")):
            raise Corrupt(f"store {self._store.name} holds the path {printable(path)!r}; run engramfs verify")
        return os.path.join(self._directory, path) if path else self._directory

    def _write_one(self, place: bytes, path: bytes, entry: Entry) -> None:
        if entry.kind is Kind.DIRECTORY:
            if path:
                os.mkdir(place, 0o700)
            return
        first = self._first.setdefault(entry.node, place)
        if first != place:
            os.link(first, place, follow_symlinks=False)
        elif entry.kind is Kind.SYMLINK:
            os.symlink(entry.target, place)
            os.utime(place, ns=(entry.mtime, entry.mtime), follow_symlinks=False)
        else:
            self._write_file(place, path, entry)
            self._finish(place, entry)
            self.files += 1

    def _write_file(self, place: bytes, path: bytes, entry: Entry) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(place, flags, 0o600), "wb", buffering=0) as file:
            for part in read_parts(self._engine, self._store, path, entry):
                view = memoryview(part)
                while view:
                    view = view[file.write(view) :]
                self.bytes += len(part)

    def _finish(self, place: bytes, entry: Entry) -> None:
        for name, value in entry.xattrs:
            try:
                os.setxattr(place, name, value, follow_symlinks=False)
            except OSError as error:
                if error.errno != errno.ENOTSUP:
                    raise
                self.without_xattrs += 1
                break
        os.chmod(place, entry.mode & _MODE)
        os.utime(place, ns=(entry.mtime, entry.mtime))


def read_parts(engine: Engine, store: Store, path: bytes, entry: Entry) -> Iterator[bytes]:
    """The content of a file, in short transactions; one of another size than the entry says is damaged.

    Raises `Corrupt` naming the store and the path.
    """
    count, left = blobs.count_parts(entry.size), entry.size
    for start in range(0, count, _PARTS):
        try:
            with engine.reading() as reader:
                numbers = range(start, min(start + _PARTS, count))
                parts = [blobs.part(reader, entry.digest, number) for number in numbers]
            left -= sum(len(part) for part in parts)
            if left < 0 or (left and start + _PARTS >= count):
                raise Corrupt(f"blob {entry.digest.hex()} has another size; run engramfs verify")
        except Corrupt as error:
            raise Corrupt(f"store {store.name}, {printable(path)}: {error.message}") from error
        yield from parts


def _failed(place: bytes, error: OSError) -> EngramError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Full(f"no space left to write {printable(place)}; free some, then export again")
    return Unavailable(f"cannot write {printable(place)}: {error.strerror}")
