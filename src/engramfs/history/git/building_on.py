"""Which version of a store the new commits of a repository build on.

They have to build on the head: nobody's work is undone then. So one of the commits that they follow from has
to be the head. A commit is a version

 1. when the version was made of it, by an import: the store wrote its id down itself; or
 2. when it was made of the version, by an export. Its message says so, with the chained digest, but anybody
    can write that: what counts is that its tree is that of the version, file by file.

The commit may have come in by a merge, of what an export added beside the branch: then the merge is what is
new, as one version, and what it merged is not looked at again.
"""

import hashlib
from collections.abc import Collection, Iterator

import msgspec

from engramfs.errors import Conflict
from engramfs.history import catalog, log
from engramfs.history.exporting import read_parts
from engramfs.history.git import edits
from engramfs.history.git.message import DIGEST, parse
from engramfs.history.git.source import Source
from engramfs.history.imported import commit_of
from engramfs.history.kept import is_partial
from engramfs.history.repository import Repository
from engramfs.history.tree import VersionTree
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.storage.protocol import Reader


class Imported(msgspec.Struct, frozen=True):
    """A commit, and the version that it is."""

    commit: str
    number: int


def where_to_go_on(
    repository: Repository, store: Store, source: Source, *, over: bool = False
) -> Imported | None:
    """What the import of `source` begins after; None: at its beginning. Of its `commits`, which go along that
    one then, the newer are those to import.

    Raises `Conflict`, unless `over`, when the head is none of the commits.
    """
    with repository.engine.reading() as reader:
        head = catalog.head(reader, store.id).number
    if head == 0:
        return None
    commit = _commit_of_head(repository, store, source, head)
    if commit is not None:
        source.follow(commit)
        return Imported(commit, head)
    last = last_version(repository, store, source)
    with repository.engine.reading() as reader:
        if over:
            # Of a version that is kept in part, what its tree was is not known any more.
            return last if last is not None and not is_partial(reader, store, last.number) else None
        other = commit_of(log.version(reader, store, head))
    related = printable(source.git.directory) if last is not None else ""
    if other is None:
        raise not_of_the_repository(store, head, related)
    raise Conflict(
        f"{store.name} was made of the commit {other[:10]}, which this history does not have: it was "
        f"rewritten, or is another one; {_advice(store, related)}"
    )


def not_of_the_repository(store: Store, head: int, related: str) -> Conflict:
    """The error that the head is none of the commits; `related` is where earlier versions are, or empty."""
    what = f"{store.name}@{head} did not come from the repository"
    return Conflict(f"{what}, and an import would undo what it changed; {_advice(store, related)}")


def _advice(store: Store, related: str) -> str:
    if not related:
        return "import into another store, or give --over"
    return (
        f"engramfs export --git {related} {store.name} adds what is new in the store; merge it there with "
        "git and import again, or give --over"
    )


def _commit_of_head(repository: Repository, store: Store, source: Source, head: int) -> str | None:
    with repository.engine.reading() as reader:
        version = log.version(reader, store, head)
    made_of = commit_of(version)
    if made_of is not None and source.has(made_of):
        return made_of
    candidates = source.saying(f"{DIGEST}: {version.digest.hex()}")
    for commit in sorted(candidates, key=lambda one: one not in source.first_parents):
        if exported_version(repository, store, source, commit) == head:
            return commit
    return None


def last_version(repository: Repository, store: Store, source: Source) -> Imported | None:
    """The newest of the commits of `source` that is a version."""
    order = {commit: place for place, commit in enumerate(source.commits)}
    with repository.engine.reading() as reader:
        imported = _last_imported(reader, store, order)
    for commit in source.saying(f"{DIGEST}: "):
        if commit not in order:
            continue
        if imported is not None and order[commit] > order[imported.commit]:
            break
        if (number := exported_version(repository, store, source, commit)) is not None:
            return Imported(commit, number)
    return imported


def _last_imported(reader: Reader, store: Store, known: Collection[str]) -> Imported | None:
    """The newest version that one of the commits `known` became."""
    for version in log.versions(reader, store.id):
        identifier = commit_of(version)
        if identifier in known:
            return Imported(identifier or "", version.number)
    return None


def exported_version(repository: Repository, store: Store, source: Source, commit: str) -> int | None:
    """The version that a commit was made of; None: of none that the store still has."""
    said = parse(source.message(commit))
    if said is None or said.store != store.name:
        return None
    with repository.engine.reading() as reader:
        version = log.find_version(reader, store.id, said.number)
        if version is None or version.digest.hex() != said.digest:
            return None
        if is_partial(reader, store, said.number):
            return said.number  # it can be no base
        files = dict(edits.whole(VersionTree(reader, store, said.number)).written)
    found = source.tree(commit)
    if found.keys() != files.keys():
        return None
    is_same = all(
        found[path] == (edits.mode(entry), _object_id(repository, store, source, path, entry))
        for path, entry in files.items()
    )
    return said.number if is_same else None


def _object_id(repository: Repository, store: Store, source: Source, path: bytes, entry: Entry) -> bytes:
    """The id that git gives to the content of a file or symlink."""
    digest = hashlib.new(source.object_format)
    digest.update(b"blob %d\0" % entry.size)
    for part in _content(repository, store, path, entry):
        digest.update(part)
    return digest.hexdigest().encode()


def _content(repository: Repository, store: Store, path: bytes, entry: Entry) -> Iterator[bytes]:
    if entry.kind is Kind.SYMLINK:
        return iter([entry.target])
    return read_parts(repository.engine, store, path, entry)
