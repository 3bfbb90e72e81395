"""The index follows the log, a step at a time.

A step takes the index lock, does what fits into a second or two, commits and lets go, so that others who
search or write get their turn. Keywords come first; meaning follows, the newest passages first. A step that
is killed leaves the last commit, and the next one finds out by itself what is missing.

The log is only read, in short transactions: nothing here makes the worker wait.
"""

import time
from typing import TYPE_CHECKING

import msgspec
import structlog

from engramfs.errors import Corrupt
from engramfs.search.differences import Differences, NewFile, differences
from engramfs.search.document import LARGEST
from engramfs.search.embedder import Embedder
from engramfs.search.failures import IndexDamaged
from engramfs.search.forgetting import must_rewrite, rewrite
from engramfs.search.index_directory import IndexDirectory
from engramfs.search.index_state import IndexState
from engramfs.search.indexed_file import IndexedPassage, index_file, nothing_of
from engramfs.search.keyword_index import KeywordIndex, KeywordWriter
from engramfs.search.log_changes import LogChanges, fingerprint, is_of_this_log, log_changes
from engramfs.storage import blobs
from engramfs.storage.protocol import Engine

if TYPE_CHECKING:
    from engramfs.search.snapshot import Snapshot

_log = structlog.get_logger("engramfs.search")

_PATIENCE = 10.0  # seconds to wait for another process that may be making the index anew
AT_ONCE = 128  # passages that get their vectors in a step, if they are short
STEP = 2.0  # seconds of work before a step commits


class Step(msgspec.Struct, frozen=True):
    """What a step left to do. `position` is that of the feed up to which keywords are indexed."""

    position: int
    files: int = 0  # to index
    passages: int = 0  # without a vector

    @property
    def is_last(self) -> bool:
        return self.files == 0 and self.passages == 0


class _Done(msgspec.Struct, frozen=True):
    """When there was nothing left to do: while these are what they were, there is nothing again."""

    generation: int
    fingerprint: bytes
    position: int
    with_meaning: bool


class Indexer:
    """Writes the index of `engine`'s log. Threads and processes take turns, by the index lock."""

    def __init__(self, engine: Engine, directory: IndexDirectory, embedder: Embedder | None) -> None:
        self._engine = engine
        self._directory = directory
        self._embedder = embedder
        self._done: _Done | None = None

    def step(self, patience: float, *, at_once: int = AT_ONCE) -> Step | None:
        """Do a part of what is to be done; None when another process held the lock for `patience` seconds.

        Of passages without a vector at most `at_once` get theirs. An index that is missing, damaged or of
        another log is begun anew. Raises `Full` and `Unavailable`.
        """
        with self._engine.reading() as reader:
            now = fingerprint(reader)
        done = self._done
        if (
            done is not None
            and (done.generation, done.fingerprint) == (self._directory.current(), now)
            and (done.with_meaning or not at_once)
        ):
            return Step(done.position)
        with self._directory.locked(patience) as is_ours:
            if not is_ours:
                return None
            step = self._step_or_anew(at_once)
            if step.is_last:
                self._done = _Done(self._directory.current() or 0, now, step.position, at_once > 0)
        return step

    def _step_or_anew(self, at_once: int) -> Step:
        try:
            return self._step(at_once)
        except IndexDamaged as error:
            _log.warning("search index made anew", reason=error.message)
            self._begin_anew()
            return self._step(at_once)

    def _step(self, at_once: int) -> Step:
        generation = self._directory.current()
        if generation is None:
            generation = self._begin_anew()
        self._directory.remove_others(generation)
        index = KeywordIndex(self._directory.keywords(generation))
        snapshot = index.snapshot()
        state = snapshot.state()
        if state is None:
            raise IndexDamaged(f"the search index in {self._directory.path} does not say how far it is")
        with self._engine.reading() as reader:
            if not is_of_this_log(reader, state):
                raise IndexDamaged(f"the search index in {self._directory.path} is of another log")
            changes = log_changes(reader, state)
            found = differences(reader, snapshot, changes)
        files, state = self._index(index, state, changes, found)
        if files == 0 and must_rewrite(state, index.snapshot().count):
            generation = self._rewrite(index.snapshot(), state, generation)
        if files or self._embedder is None or not at_once:
            return Step(state.position, files)
        return Step(state.position, 0, self._embed(generation, self._embedder, at_once))

    def begin_anew(self, damaged: int) -> None:
        """Replace the generation `damaged` by an empty one, unless another process has done so."""
        with self._directory.locked(_PATIENCE) as is_ours:
            if is_ours and self._directory.current() == damaged:
                self._begin_anew()

    def _begin_anew(self) -> int:
        generation = self._directory.begin()
        with KeywordIndex(self._directory.keywords(generation), create=True).writing() as writer:
            writer.commit(IndexState())
        self._directory.publish(generation)
        return generation

    def _index(
        self, index: KeywordIndex, state: IndexState, changes: LogChanges, found: Differences
    ) -> tuple[int, IndexState]:
        """How many files are left for another step, and the state that was committed."""
        if changes.is_nothing and changes.state == state:
            return 0, state
        if not changes.gone and not found.new and not found.removed and not changes.state.must_forget:
            return 0, self._commit_position(index, changes.state)
        with index.writing() as writer:
            for store in changes.gone:
                writer.remove(store, b"")
            for store, path, _ in found.removed:
                writer.remove(store, path)
            done = self._add(writer, found.new)
            replaced = sum(count for _, _, count in found.removed)
            replaced += sum(file.replaces for file in found.new[:done])
            now = changes.state if done == len(found.new) else state
            committed = msgspec.structs.replace(
                now,
                replaced=state.replaced + replaced,
                must_forget=changes.state.must_forget or bool(found.removed),
            )
            writer.commit(committed)
        return len(found.new) - done, committed

    def _commit_position(self, index: KeywordIndex, state: IndexState) -> IndexState:
        with index.writing() as writer:
            writer.commit(state)
        return state

    def _add(self, writer: KeywordWriter, files: list[NewFile]) -> int:
        """Index as many of `files` as fit into a step; how many that were."""
        end = time.monotonic() + STEP
        for done, file in enumerate(files, 1):
            if file.replaces:
                writer.remove(file.store, file.path)
            for passage in self._passages(file):
                writer.add(passage.row, passage.terms, passage.labels)
            if time.monotonic() > end:
                return done
        return len(files)

    def _passages(self, file: NewFile) -> list[IndexedPassage]:
        """What is indexed of a file: a row that is never found, when it is no text, so that it is known."""
        nothing = [nothing_of(file.store, file.path, file.entry)]
        if file.entry.size > LARGEST:
            return nothing
        try:
            with self._engine.reading() as reader:
                content = blobs.read(reader, file.entry.digest, file.entry.size)
        except Corrupt as error:
            _log.warning("file not indexed", path=file.path, reason=error.message)
            return nothing
        return index_file(file.store, file.path, file.entry, content) or nothing

    def _embed(self, generation: int, embedder: Embedder, at_once: int) -> int:
        """How many passages are left without a vector."""
        from engramfs.search.meanings import embed_some
        from engramfs.search.vectors import VectorFile

        snapshot = KeywordIndex(self._directory.keywords(generation)).snapshot()
        vectors = VectorFile(self._directory.vectors(generation), embedder.identity)
        return embed_some(self._engine, snapshot, vectors, embedder, at_once)

    def _rewrite(self, snapshot: "Snapshot", state: IndexState, generation: int) -> int:
        """The number of the generation that has only what is there."""
        made = self._directory.begin()
        needed = rewrite(snapshot, state, self._directory.keywords(made))
        if self._embedder is not None:
            from engramfs.search.vectors import VectorFile

            kept = VectorFile(self._directory.vectors(generation), self._embedder.identity)
            kept.copy(self._directory.vectors(made), needed)
        self._directory.publish(made)
        return made
