"""Where an export goes on: which version of the store a repository ends with.

It has to hold this very history. Either its last commit names its version and the chained digest, which has
to be that of the store. Or a version of the store was made of this very commit: then both have its tree.

What people committed on top is theirs. Where that changes nothing, the export goes on after it; otherwise
beside it, after the newest commit that is a version.
"""

from collections.abc import Iterator

import msgspec

from engramfs.errors import Conflict
from engramfs.history import log
from engramfs.history.git.authors import signature_of
from engramfs.history.git.building_on import exported_version, last_version
from engramfs.history.git.destination import BRANCH, Destination
from engramfs.history.git.message import DIGEST, Exported, parse
from engramfs.history.git.original import original_of, parent_of
from engramfs.history.git.paths import is_left_out
from engramfs.history.git.source import Source
from engramfs.history.imported import commit_of
from engramfs.history.repository import Repository
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.storage.protocol import Reader

_DO = "export to a new directory"


class LastExported(msgspec.Struct, frozen=True):
    """The version that `commit` is, and how many redactions it takes account of.

    `unknown` counts the commits after it that the store does not have; without any, the branch goes on.
    """

    number: int
    redactions: int
    commit: bytes
    unknown: int = 0


def last_exported(repository: Repository, store: Store, destination: Destination) -> LastExported | None:
    """None when nothing is there yet. Raises `Conflict` unless it is the history of `store`."""
    if destination.tip is None:
        return None
    source = Source(destination.git.directory, BRANCH.decode())
    said = destination.exported()
    with repository.engine.reading() as reader:
        conflict = _not_this_history(reader, store, said, destination)
    if said is not None and conflict is None and _is_as_written(repository, store, source, said):
        return LastExported(said.number, said.redactions, destination.tip)
    with repository.engine.reading() as reader:
        number = _imported(reader, store, source.tip)
    if number is not None:
        _require_no_more(store, destination, destination.tip)
        return LastExported(number, _redactions(repository, store, source, source.tip), destination.tip)
    if said is not None and conflict is not None:
        raise conflict
    found = _before(repository, store, destination, source)
    if found is None:
        raise conflict or _not_as_written(store, destination)
    return found


def _is_as_written(repository: Repository, store: Store, source: Source, said: Exported) -> bool:
    """Whether nobody amended the last commit, or at least its files are those of the version still."""
    with repository.engine.reading() as reader:
        version = log.find_version(reader, store.id, said.number)
    if version is None:
        return True
    original = original_of(version)
    known = original.committer if original is not None else None
    if source.committer(source.tip) == (known or signature_of(version)):
        return True
    return exported_version(repository, store, source, source.tip) is not None


def _not_as_written(store: Store, destination: Destination) -> Conflict:
    return Conflict(
        f"the last commit of main in {destination.shown} was amended, and none before it is a version of "
        f"{store.name}; {_DO}"
    )


def _before(
    repository: Repository, store: Store, destination: Destination, source: Source
) -> LastExported | None:
    """The newest commit that is a version, where the last is none."""
    beside = destination.beside()
    if beside is not None and source.has(beside):
        source.follow(beside)
    last = last_version(repository, store, source)
    if last is None:
        return None
    newer = source.commits[: source.commits.index(last.commit)]
    redactions = _redactions(repository, store, source, last.commit)
    commit, tree = last.commit.encode(), source.tree_id(last.commit)
    _require_no_more(store, destination, commit)
    if all(source.tree_id(one) == tree for one in newer):
        return LastExported(last.number, redactions, source.tip.encode())
    return LastExported(last.number, redactions, commit, len(newer))


def _redactions(repository: Repository, store: Store, source: Source, commit: str) -> int:
    """How many redactions the commits up to `commit` take account of, as the last exported one says.

    Versions that were imported are not made the commits that they were once something was redacted, so
    those take account of no more.
    """
    upto = set(source.commits[source.commits.index(commit) :])
    for one in source.saying(f"{DIGEST}: "):
        said = parse(source.message(one)) if one in upto else None
        if said is not None and said.store == store.name:
            with repository.engine.reading() as reader:
                found = _digest_of(reader, store, said.number)
            if found is not None and found.hex() == said.digest:
                return said.redactions
    return 0


def _not_this_history(
    reader: Reader, store: Store, last: Exported | None, destination: Destination
) -> Conflict | None:
    """None when the newest exported version that the store still has is the same there."""
    shown = destination.shown
    if last is None:
        tip = (destination.tip or b"")[:10].decode()
        return Conflict(
            f"the last commit of main in {shown} ({tip}) did not come from a store; move such commits to "
            f"another branch, or {_DO}"
        )
    if last.store != store.name:
        return Conflict(f"{shown} holds the history of {last.store}, not of {store.name}; {_DO}")
    for exported in destination.earlier():
        found = _digest_of(reader, store, exported.number)
        if found is None:
            continue
        if found.hex() == exported.digest:
            return None
        return Conflict(
            f"{shown} holds another history: its version {exported.number} has the digest "
            f"{exported.digest[:16]}, and that of {store.name} {found.hex()[:16]}; {_DO}"
        )
    return Conflict(
        f"{store.name} has no version any more that {shown} holds, so nothing shows that it is one "
        f"history; {_DO}"
    )


def _digest_of(reader: Reader, store: Store, number: int) -> bytes | None:
    """The chained digest of a version; one that is gone is known by the one that follows from it."""
    version = log.find_version(reader, store.id, number)
    if version is not None:
        return version.digest
    following = log.find_version(reader, store.id, number + 1)
    return following.parent_digest if following is not None else None


def _imported(reader: Reader, store: Store, commit: str) -> int | None:
    """The version that was made of `commit`; one that is gone is known by the one that follows from it."""
    gone = None
    for version in log.versions(reader, store.id):
        if commit_of(version) == commit:
            return version.number
        before = version.number - 1
        if before and parent_of(version) == commit and log.find_version(reader, store.id, before) is None:
            gone = before
    return gone


def _require_no_more(store: Store, destination: Destination, commit: bytes) -> None:
    """Raises `Conflict` when the commit holds what the import left out: it would be removed there."""
    left_out = _left_out(destination, commit)
    if (path := next(left_out, None)) is not None:
        raise Conflict(
            f"{destination.shown} holds {printable(path)}, which {store.name} does not, as it keeps neither "
            f"submodules nor .versions; {_DO}"
        )


def _left_out(destination: Destination, commit: bytes) -> Iterator[bytes]:
    tree = destination.tree(commit)
    return (path for path, mode in tree.items() if is_left_out(path, mode))
