"""The history of a store becomes commits of a git repository, one for each version.

A version that was a commit once becomes that very commit again, if all of it is known and it follows what it
followed then. Any other commit says in its message which version it is.

A second run goes on after the last version that is there, and leaves alone what people committed on top of
it until the store has that too. See `going_on`.

Concurrency. Versions are read in transactions of their own, contents in short ones, so none stays open for
long beside a running worker. A version or content that is removed meanwhile ends the export, and then the
repository is as it was.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from engramfs.errors import Corrupt
from engramfs.history import catalog, log
from engramfs.history.exporting import read_parts
from engramfs.history.git import edits, message
from engramfs.history.git.authors import signature_of
from engramfs.history.git.destination import STAGED, Destination
from engramfs.history.git.edits import Edits
from engramfs.history.git.fast_import import FastImport
from engramfs.history.git.going_on import LastExported, last_exported
from engramfs.history.git.original import original_of
from engramfs.history.git.signature import Signature
from engramfs.history.kept import is_partial
from engramfs.history.redaction_rows import redactions
from engramfs.history.repository import Repository
from engramfs.history.tree import VersionTree, walk
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable
from engramfs.model.redaction import Redaction
from engramfs.model.store import Store
from engramfs.model.version import Change, Version
from engramfs.storage import keys
from engramfs.storage.protocol import Table

Progress = Callable[[int, int, int, int], None]  # versions done, of all; bytes done, of all (0: unknown)

_AT_ONCE = 256  # versions whose headers are read in one transaction
_decode_redactions = msgspec.msgpack.Decoder(list[Redaction]).decode


class GitExported(msgspec.Struct, frozen=True):
    """What was written: `commits` new ones, so that the branch ends with version `version`.

    While the branch has `unknown` commits that the store does not have, it is `engramfs/main` that does.
    `redacted_since` are versions whose content the repository holds and the store does not any more.
    `refused` counts files that no git repository may hold, `empty_directories` those at the head.
    """

    commits: int
    version: int
    bytes: int
    refused: int
    empty_directories: int
    redacted_since: list[int]
    unknown: int


def export(
    repository: Repository,
    store: Store,
    directory: bytes,
    *,
    bare: bool = False,
    progress: Progress = lambda *_: None,
) -> GitExported:
    """Write the versions of `store` that the repository in `directory` does not have yet.

    Raises `Conflict` when it holds another history, what `Destination.open` raises, `Corrupt` naming a
    damaged content, and `Unavailable` when git fails.
    """
    destination = Destination.open(directory, bare=bare)
    with repository.engine.reading() as reader:
        head = catalog.head(reader, store.id)
    last = last_exported(repository, store, destination)
    run = _Export(repository, store, destination, last, head.number)
    return run.write(progress)


class _Export:
    def __init__(
        self,
        repository: Repository,
        store: Store,
        destination: Destination,
        last: LastExported | None,
        head: int,
    ) -> None:
        self._repository = repository
        self._store = store
        self._destination = destination
        self._head = head
        self._number = last.number if last is not None else 0
        self._redactions = last.redactions if last is not None else 0
        self._begin_at = last.commit if last is not None else None
        self._unknown = last.unknown if last is not None else 0
        self._refused = 0
        self._commits = 0

    def write(self, progress: Progress) -> GitExported:
        redacted_since = self._redacted_since()
        written = 0
        if self._number < self._head:
            total = self._head - self._number
            with FastImport(self._destination.git, STAGED, self._contents) as stream:
                stream.begin_at(self._begin_at)
                afresh = self._must_begin_afresh(redacted_since)
                for version in self._versions():
                    self._commit(stream, version, afresh=afresh)
                    afresh = False
                    progress(self._commits, total, stream.bytes, 0)
                written = stream.bytes
            self._finish()
        with self._repository.engine.reading() as reader:
            empty = _empty_directories(VersionTree(reader, self._store, self._number))
        return GitExported(
            self._commits, self._number, written, self._refused, empty, redacted_since, self._unknown
        )

    def _must_begin_afresh(self, redacted_since: list[int]) -> bool:
        """Whether the tree that the branch ends with cannot be read any more as it was."""
        with self._repository.engine.reading() as reader:
            last = reader.get(Table.VERSIONS, keys.version(self._store.id, self._number))
        return last is None or bool(redacted_since)

    def _redacted_since(self) -> list[int]:
        """The versions in the repository of which more was redacted than when they were written there."""
        with self._repository.engine.reading() as reader:
            start, stop = keys.version(self._store.id, 0), keys.version(self._store.id, self._number + 1)
            rows = [
                (each.time, keys.read_u64(key[4:]), each.changes or bool(each.header))
                for key, value in reader.scan(Table.REDACTED, start, stop)
                for each in _decode_redactions(value)
            ]
        rows.sort()
        since = rows[self._redactions :]
        return sorted({number for _, number, has_lost in since if has_lost} or {row[1] for row in since})

    def _versions(self) -> Iterator[Version]:
        number = self._number
        while number < self._head:
            with self._repository.engine.reading() as reader:
                start = keys.version(self._store.id, number + 1)
                stop = keys.version(self._store.id, self._head + 1)
                rows = reader.scan(Table.VERSIONS, start, stop)
                batch = [
                    log.decode_version(value) for _, (_, value) in zip(range(_AT_ONCE), rows, strict=False)
                ]
            if not batch:
                return
            yield from batch
            number = batch[-1].number

    def _commit(self, stream: FastImport, version: Version, *, afresh: bool) -> None:
        before, number = self._number, version.number
        missing = (before + 1, number - 1) if before + 1 < number else None
        with self._repository.engine.reading() as reader:
            redacted = redactions(reader, self._store.id, number)
            changes = list(log.changes(reader, self._store.id, number))
            partial = is_partial(reader, self._store, number)
            tree = VersionTree(reader, self._store, number)
            if afresh:
                changed = edits.whole(tree)
            else:
                places = None if missing or redacted else changes
                changed = edits.between(VersionTree(reader, self._store, before), tree, places)
        self._redactions += len(redacted)
        self._refused += changed.refused
        self._commits += 1
        self._number = number
        if not redacted and self._is_written_again(stream, version, changes, changed):
            return
        text = message.compose(
            self._store,
            version,
            changes,
            missing=missing,
            partial=partial,
            redacted=redacted,
            redactions=self._redactions,
        )
        stream.commit(*_signatures(version), text, changed)

    def _is_written_again(
        self, stream: FastImport, version: Version, changes: Sequence[Change], changed: Edits
    ) -> bool:
        """Whether the version could be made the commit that it once was."""
        original = original_of(version)
        if original is None or original.author is None or original.committer is None:
            return False
        if original.parent != (stream.newest() or ""):
            return False
        text = original.message(version, changes)
        return stream.commit_again(original.id, original.author, original.committer, text, changed)

    def _contents(self, path: bytes, entry: Entry) -> Iterator[bytes]:
        return read_parts(self._repository.engine, self._store, path, entry)

    def _finish(self) -> None:
        """Move the branch, once what git has is what the store has."""
        commit = self._destination.git.run("rev-parse", STAGED)
        with self._repository.engine.reading() as reader:
            expected = edits.whole(VersionTree(reader, self._store, self._number))
        wanted = {path: edits.mode(entry) for path, entry in expected.written}
        found = self._destination.tree(commit)
        if wanted != found:
            path = min(path for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path))
            raise Corrupt(
                f"{printable(path)} in {self._store.name}@{self._number} is not in git as it should be; "
                "nothing was changed, please report it"
            )
        if self._unknown:
            self._destination.put_beside(commit)
        else:
            self._destination.advance(commit)


def _signatures(version: Version) -> tuple[Signature, Signature]:
    """The author and the committer of a version's commit: of one that was a commit, those that are known."""
    own = signature_of(version)
    original = original_of(version)
    if original is None:
        return own, own
    return original.author or own, original.committer or own


def _empty_directories(tree: VersionTree) -> int:
    return sum(
        1
        for path, entry in walk(tree)
        if path and entry.kind is Kind.DIRECTORY and next(tree.children(entry.node), None) is None
    )
