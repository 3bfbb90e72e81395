"""Commits become versions of a store: each makes the tree of the store that of the commit.

The first one of a history looks at the whole tree. From then on, unless somebody else writes meanwhile, a
commit costs what it changes.

A file that a commit moved stays the same file, as git finds it: by its content.

The message of such a version names the commit, so a second run finds where to go on. See
`engramfs.history.imported`.
"""

import tempfile
from collections.abc import Iterator
from typing import IO

import msgspec

from engramfs.errors import Conflict, FileTooLarge, QuotaExceeded, Unavailable, UsageError
from engramfs.history import catalog
from engramfs.history.commit import Commit
from engramfs.history.git.authors import author_of
from engramfs.history.git.building_on import not_of_the_repository
from engramfs.history.git.commit_tree import CommitTree
from engramfs.history.git.fast_export import GitCommit, Written, commits
from engramfs.history.git.message import Exported, parse
from engramfs.history.git.original import lines_of
from engramfs.history.git.paths import is_left_out
from engramfs.history.graft import graft
from engramfs.history.imported import IMPORTED_BY, with_source
from engramfs.history.replacing import replacing
from engramfs.history.repository import Repository
from engramfs.history.stored_contents import StoredContents
from engramfs.history.tree import HeadTree, VersionTree, walk
from engramfs.model.author import Author
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import MAX_PART, MAX_PATH, printable
from engramfs.model.quantities import format_size
from engramfs.model.store import Store
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Reader

_SECOND = 10**9
_LATEST = 1 << 33  # seconds since 1970 that a file may have as its time
_TARGET = 4095  # bytes of a symlink
_SYMLINK, _EXECUTABLE = b"120000", b"100755"


class GitImport:
    """Commits of a stream, one after another, for one store.

    `base` is the version whose tree the first commit builds on; unless `over`, it has to be the head.
    Use: for each of `commits`, commit what `plan` makes of it, and tell `done` the number of the version.
    """

    def __init__(
        self, repository: Repository, store: Store, author: Author, base: int = 0, *, over: bool = False
    ) -> None:
        self._repository = repository
        self._store = store
        self._who = author.label()
        self._contents = StoredContents(repository.engine, repository.transact)
        self._blobs: dict[int, tuple[bytes, int]] = {}  # mark → digest and size
        self._too_large: dict[int, int] = {}  # mark → size
        self._tree = CommitTree(self._entries_of(base))
        self._expected = base
        self._in_step = base > 0  # whether the version expected has the tree of the last commit but this
        self._over = over
        self.skipped: set[bytes] = set()  # submodules, and what is in the place of .versions

    def _entries_of(self, number: int) -> list[tuple[bytes, Entry]]:
        if number == 0:
            return []
        with self._repository.engine.reading() as reader:
            return list(walk(VersionTree(reader, self._store, number)))

    def commits(self, stream: IO[bytes]) -> Iterator[GitCommit]:
        """Every commit of the stream, once its contents are in the log."""
        for commit in commits(stream, self._take):
            if commit.parent is None:
                self._tree.clear()
            for path in commit.removed:
                self._tree.remove(path)
            self._rename(commit)
            mtime = min(commit.committer.seconds, _LATEST) * _SECOND
            for written in commit.written:
                self._check_size(written, commit)
                self._write(written, mtime)
            self._contents.flush()
            yield commit

    def _rename(self, commit: GitCommit) -> None:
        left_out = [target for source, target in commit.renamed if source not in self._tree]
        for _, target in commit.renamed:
            _check_path(target)
        self._tree.rename(commit.renamed)
        self.skipped.update(left_out)

    def _take(self, mark: int, size: int, stream: IO[bytes]) -> None:
        if size > self._store.limits.max_file_size:
            self._too_large[mark] = size  # which file it is, only a commit says
            for start in range(0, size, blobs.PART):
                _exactly(stream, min(size - start, blobs.PART))
            return
        if size <= blobs.PART:
            self._blobs[mark] = (self._contents.store_bytes(_exactly(stream, size)), size)
            return
        with tempfile.TemporaryFile(dir=self._repository.spool_path) as file:
            left = size
            while left:
                part = _exactly(stream, min(left, blobs.PART))
                file.write(part)
                left -= len(part)
            file.seek(0)
            self._blobs[mark] = (self._contents.store(file, size, _spool_changed), size)

    def _check_size(self, written: Written, commit: GitCommit) -> None:
        size = self._too_large.get(written.mark or 0)
        if size is not None and not is_left_out(written.path, written.mode):
            what = f"{printable(written.path)} in commit {commit.id[:12]}"
            allowed = format_size(self._store.limits.max_file_size)
            raise FileTooLarge(
                f"{what} is {format_size(size)}, over the {allowed} that "
                f"{self._store.name} allows (engramfs store set {self._store.name} --max-file-size)"
            )

    def _write(self, written: Written, mtime: int) -> None:
        path = written.path
        if is_left_out(path, written.mode) or written.mark is None:
            self._tree.remove(path)
            self.skipped.add(path)
            return
        _check_path(path)
        if written.mark not in self._blobs:
            raise Unavailable(f"git gave no content for {printable(path)}; does git fsck find anything?")
        digest, size = self._blobs[written.mark]
        if written.mode == _SYMLINK:
            target = self._contents.read(digest, size)
            if not 0 < size <= _TARGET or b"\0" in target:
                raise UsageError(f"the symlink {printable(path)} leads nowhere that a path can name")
            self._tree.put(path, Entry(0, Kind.SYMLINK, 0o777, size, mtime, mtime, target=target))
        else:
            made = Entry(0, Kind.FILE, 0o644, size, mtime, mtime, digest)
            self._tree.put(path, _like(made, self._tree.get(path), written.mode == _EXECUTABLE))

    def plan(self, reader: Reader, store: Store, commit: GitCommit, now: int) -> Commit:
        """The commit that makes the head what `commit` is; `reader` is the transaction that it is written in.

        Raises `Conflict` when others wrote meanwhile, and `QuotaExceeded`.
        """
        head = catalog.head(reader, store.id)
        if head.number != self._expected and not self._over:
            raise not_of_the_repository(store, head.number, related="DIR")
        try:
            if self._in_step and head.number == self._expected and not self._tree.touches_links:
                grafted = replacing(reader, store, self._tree.touched(now), self._tree.renamed)
            else:
                root = HeadTree(reader, store).root()
                everything = self._tree.everything(root, now)
                grafted = graft(
                    reader,
                    store,
                    b"",
                    keys.NO_PARENT,
                    everything,
                    times=False,
                    renamed=self._tree.renamed,
                )
        except QuotaExceeded as error:
            raise QuotaExceeded(f"commit {commit.id[:10]}: {error.message}") from error
        exported = parse(commit.message)
        author = author_of(commit, exported.lines if exported is not None else [])
        return grafted.commit(store, author, "import", now, _message(commit, exported, self._who))

    def nodes_needed(self) -> int:
        """How many new nodes the version of the last commit may have."""
        in_step = self._in_step and not self._over and not self._tree.touches_links
        return self._tree.touched_count if in_step else self._tree.count

    def done(self, number: int | None) -> None:
        """A commit became the version `number`; None: nothing changed."""
        if number is not None:
            self._expected = number
        self._in_step = True
        self._tree.take_up()


def _like(made: Entry, before: Entry | None, is_executable: bool) -> Entry:
    """A file with what git does not say of it: as it was before."""
    if before is not None and before.kind is Kind.FILE:
        made = msgspec.structs.replace(made, mode=before.mode, xattrs=before.xattrs)
    if bool(made.mode & 0o100) == is_executable:
        return made
    mode = made.mode | 0o100 | (made.mode & 0o444) >> 2 if is_executable else made.mode & ~0o111
    return msgspec.structs.replace(made, mode=mode)


def _check_path(path: bytes) -> None:
    names = path.split(b"/")
    if any(name in (b"", b".", b"..") or b"\0" in name for name in names):
        raise UsageError(f"the repository holds the path {printable(path)!r}, which names no file")
    if len(path) > MAX_PATH or any(len(name) > MAX_PART for name in names):
        raise UsageError(f"the path {printable(path)[:80]}… is too long for a store; rename it in git")


def _exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) != size:
        raise Conflict("git ended in the middle of a file; try again")
    return content


def _spool_changed() -> Conflict:
    return Conflict("a file changed while it was stored; try again")


def _message(commit: GitCommit, exported: Exported | None, who: str) -> str:
    """Its message, and where it came from; of a commit that a store wrote, what the version's message was."""
    lines = [*lines_of(commit), (IMPORTED_BY, who)]
    if exported is not None:
        return with_source(exported.text, [*exported.lines, *lines])
    return with_source(commit.message.decode("utf-8", "replace").strip(), lines)
