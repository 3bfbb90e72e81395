"""A plain directory becomes the tree of a store, as one version.

Contents go into the log first, in transactions of bounded size, so that memory stays bounded however
large the files are; the commit that names them comes last. An import that fails leaves at most blobs that
no version names.

Concurrency. `gather` holds no transaction while it reads files, and others may write meanwhile. From
`plan_gathered` on, the head must not move until the commit is written.
"""

import os
from collections.abc import Callable, Collection, Hashable, Iterator

import msgspec

from engramfs.errors import FileTooLarge
from engramfs.history.commit import Commit
from engramfs.history.file_contents import FileContents
from engramfs.history.graft import Wanted, graft, over_quota
from engramfs.history.plain_directory import Found, scan
from engramfs.history.repository import Repository
from engramfs.history.stored_contents import PutBlobs
from engramfs.history.tree import HeadTree, walk
from engramfs.model.author import Author
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable
from engramfs.model.quantities import format_size
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader

Progress = Callable[[int, int, int, int], None]  # files done, of all; bytes done, of all


class Gathered(msgspec.Struct, frozen=True):
    """A directory as it was read. Its contents are in the log; `digests` are those of its files."""

    directory: bytes
    found: list[Found]
    digests: dict[Hashable, bytes]
    only: Collection[bytes] | None


def gather(
    repository: Repository,
    store: Store,
    directory: bytes,
    progress: Progress = lambda *_: None,
    put_blobs: PutBlobs | None = None,
    *,
    only: Collection[bytes] | None = None,
) -> Gathered:
    """Read `directory`, and store the contents of its files.

    `put_blobs` runs a body in a write transaction (default: `repository.transact`). With `only`, nothing but
    these names at the root takes part: everything else stays as it is.

    Raises `UsageError`, `NotFound` and `Conflict` as `plain_directory.scan` does, `FileTooLarge` and
    `QuotaExceeded` before anything is stored.
    """
    found = scan(directory, only)
    files = {_identity(one): one for one in found if one.kind is Kind.FILE}
    _check_limits(store, directory, list(files.values()))
    contents = FileContents(repository.engine, directory, put_blobs or repository.transact)
    digests: dict[Hashable, bytes] = {}
    done, total = 0, sum(one.size for one in files.values())
    for count, (identity, one) in enumerate(files.items(), start=1):
        digests[identity] = contents.store(one)
        done += one.size
        progress(count, len(files), done, total)
    contents.flush()
    return Gathered(directory, found, digests, only)


def plan_gathered(
    reader: Reader, store: Store, gathered: Gathered, author: Author, now: int, message: str = ""
) -> Commit:
    """The commit that makes the head in `reader` equal to what was gathered.

    Regular files, directories, symlinks and hard links are kept, with modes, mtimes and `user.*`
    attributes; what is at the head and not in the directory is deleted; `.versions` at the root of the
    directory is passed over. Without a difference there are no changes, so no version. Raises
    `QuotaExceeded`.
    """
    digests, only = gathered.digests, gathered.only
    wanted = [_wanted(one, digests.get(_identity(one), b""), now) for one in gathered.found]
    if only is not None:
        wanted = [*_kept(reader, store, only), *wanted[1:]]
    grafted = graft(reader, store, b"", keys.NO_PARENT, wanted, times=True)
    message = message or f"import of {printable(gathered.directory)}"
    return grafted.commit(store, author, "import", now, message)


def plan(
    repository: Repository,
    store: Store,
    directory: bytes,
    author: Author,
    now: int,
    message: str = "",
    progress: Progress = lambda *_: None,
    put_blobs: PutBlobs | None = None,
    *,
    only: Collection[bytes] | None = None,
) -> Commit:
    """`gather` and `plan_gathered`, for the one writer of a repository."""
    gathered = gather(repository, store, directory, progress, put_blobs, only=only)
    with repository.engine.reading() as reader:
        return plan_gathered(reader, store, gathered, author, now, message)


def _identity(one: Found) -> tuple[int, int] | bytes:
    """Equal for the names of one file. A directory that is mounted twice is two directories."""
    return one.path if one.kind is Kind.DIRECTORY else (one.device, one.inode)


def _kept(reader: Reader, store: Store, only: Collection[bytes]) -> Iterator[Wanted]:
    """The tree as it is, but for what is to take part."""
    for path, entry in walk(HeadTree(reader, store)):
        if path.split(b"/", 1)[0] not in only:
            yield Wanted(path, entry, ("kept", entry.node))


def _wanted(one: Found, digest: bytes, now: int) -> Wanted:
    entry = Entry(
        node=0,
        kind=one.kind,
        mode=one.mode,
        size=one.size,
        mtime=one.mtime,
        ctime=now,
        digest=digest,
        target=one.target,
        xattrs=one.xattrs,
    )
    return Wanted(one.path, entry, _identity(one))


def _check_limits(store: Store, directory: bytes, files: list[Found]) -> None:
    for one in files:
        if one.size > store.limits.max_file_size:
            raise FileTooLarge(
                f"{printable(os.path.join(directory, one.path))} is {format_size(one.size)}, over the "
                f"{format_size(store.limits.max_file_size)} that {store.name} allows "
                f"(engramfs store set {store.name} --max-file-size)"
            )
    total = sum(one.size for one in files)
    if total > store.limits.quota:
        raise over_quota(store, total)
