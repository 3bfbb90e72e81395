"""The tree of the commit that was read last: files and symlinks by path, and the directories that they need.

It follows the commits of a stream, and says what changed since it was last asked. The cost is that of what
changes. Git keeps no empty directories, so a directory is there as long as there is something in it.

What git knows nothing of stays as it was to begin with: the modes and attributes of directories and files,
the directories that were empty then, and the names of one file.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from engramfs.errors import UsageError
from engramfs.history.graft import Wanted
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable

replace = msgspec.structs.replace


class CommitTree:
    """`entries` are what it begins with, a directory before what is in it."""

    def __init__(self, entries: Iterable[tuple[bytes, Entry]] = ()) -> None:
        self._files: dict[bytes, Entry] = {}
        self._directories: dict[bytes, Entry] = {}  # as they were to begin with
        self._empty: set[bytes] = set()  # of these, those that git does not know of
        self._linked: set[bytes] = set()  # names of files that had several
        self._inside: Counter[bytes] = Counter()  # how many names are in each directory
        self._touched: dict[bytes, None] = {}
        self._renamed: dict[bytes, bytes] = {}
        for path, entry in entries:
            self._begin_with(path, entry)
        self._keep_empty()
        self._touched.clear()

    def _begin_with(self, path: bytes, entry: Entry) -> None:
        if entry.kind is Kind.DIRECTORY:
            self._directories[path] = entry
            return
        if entry.links > 1:
            self._linked.add(path)
        else:
            entry = replace(entry, node=0)
        self.put(path, replace(entry, origin=0))

    def _keep_empty(self) -> None:
        """A directory with nothing in it counts as a name in itself."""
        for path in reversed(self._directories):
            if path and not self._inside[path]:
                self._empty.add(path)
                self._inside[path] = 1
                self._enter(path)

    def clear(self) -> None:
        for path in list(self._files):
            self.remove(path)
        self._drop_empty(b"")
        self._renamed.clear()

    def put(self, path: bytes, entry: Entry) -> None:
        if path not in self._files:
            if self._empty and self._inside[path]:
                self._drop_empty(path)
            self._enter(path)
        self._files[path] = entry
        self._touched[path] = None

    def _drop_empty(self, path: bytes) -> None:
        """Let no directory be at and below `path` that git does not know of."""
        for one in [one for one in self._empty if not path or one == path or one.startswith(path + b"/")]:
            self._empty.discard(one)
            self._inside[one] -= 1
            if not self._inside[one]:
                del self._inside[one]
                self._leave(one)

    def get(self, path: bytes) -> Entry | None:
        """The file or symlink at `path`."""
        return self._files.get(path)

    def remove(self, path: bytes) -> None:
        """Without effect when it is not there."""
        if self._files.pop(path, None) is not None:
            self._leave(path)

    def rename(self, renames: Iterable[tuple[bytes, bytes]]) -> None:
        """Move what is at the first of two paths to the second; nothing, when nothing is there."""
        moved = [(target, source, self._files.get(source)) for source, target in renames]
        for _, source, _ in moved:
            self.remove(source)
        for target, source, entry in moved:
            if entry is not None:
                self.put(target, entry)
                self._renamed[target] = source

    def __contains__(self, path: bytes) -> bool:
        """Whether a file or symlink is there."""
        return path in self._files

    def _enter(self, path: bytes) -> None:
        self._touched[path] = None
        while path:
            path = path.rpartition(b"/")[0]
            self._inside[path] += 1
            if self._inside[path] > 1:
                return
            self._touched[path] = None

    def _leave(self, path: bytes) -> None:
        self._touched[path] = None
        while path:
            path = path.rpartition(b"/")[0]
            self._inside[path] -= 1
            if self._inside[path]:
                return
            del self._inside[path]
            self._touched[path] = None

    def touched(self, now: int) -> Iterator[tuple[bytes, Entry | None]]:
        """What is at each path that may have changed since `take_up`, a directory before what is in it.

        Not what is at the root. `now` and errors are those of `everything`.
        """
        for path in sorted(self._touched):
            if path:
                yield path, self._at(path, now)

    @property
    def renamed(self) -> Mapping[bytes, bytes]:
        """Where the files were, by path, that were moved since `take_up`."""
        return self._renamed

    @property
    def touched_count(self) -> int:
        """How many paths may have changed since `take_up`."""
        return len(self._touched)

    @property
    def count(self) -> int:
        """How many files and directories there are."""
        return len(self._files) + len(self._inside)

    @property
    def touches_links(self) -> bool:
        """Whether a file may have changed that had several names to begin with."""
        return not self._linked.isdisjoint(self._touched)

    def take_up(self) -> None:
        """What is here is known now."""
        self._touched.clear()
        self._renamed.clear()

    def everything(self, root: Entry, now: int) -> Iterator[Wanted]:
        """The whole tree below `root`, as of a version made `now`, a directory before what is in it.

        Raises `UsageError` for a path that is a file and a directory as well.
        """
        yield Wanted(b"", root, b"")
        for path in sorted({*self._files, *self._inside} - {b""}):
            entry = self._at(path, now)
            assert entry is not None
            yield Wanted(path, entry, entry.node if entry.links > 1 else path)

    def _at(self, path: bytes, now: int) -> Entry | None:
        file, is_directory = self._files.get(path), self._inside[path] > 0
        if file is not None and is_directory:
            raise UsageError(f"{printable(path)} is both a file and a directory in the repository")
        if is_directory:
            known = self._directories.get(path) or Entry(0, Kind.DIRECTORY, 0o755, 0, now, now)
            return replace(known, node=0, origin=0, links=1, ctime=now)
        return replace(file, ctime=now) if file is not None else None
