"""Search over the log of one state directory.

Concurrency. One object may be used from several threads: one at a time does something, the others wait.
Several processes may search at once; the one that holds the index lock indexes, the others find what is
there.
"""

import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from engramfs.errors import Unavailable
from engramfs.model.names import printable, raw
from engramfs.search.embedder import NO_MEANING, EmbedderSettings, choose_embedder
from engramfs.search.failures import IndexDamaged
from engramfs.search.filters import Filter
from engramfs.search.fusion import Fused, fuse
from engramfs.search.index_directory import IndexDirectory
from engramfs.search.indexer import Indexer, Step
from engramfs.search.keyword_index import KeywordIndex
from engramfs.search.keyword_ranking import File, Ranking, by_keywords
from engramfs.search.keyword_schema import Row
from engramfs.search.live_files import LiveFile, LiveFiles
from engramfs.search.query import Found, Kind, Match, Place, Query
from engramfs.search.snapshot import Snapshot
from engramfs.search.snippet import best_line, snippet
from engramfs.search.terms import WeightedTerm, query_terms
from engramfs.storage.protocol import Engine

if TYPE_CHECKING:
    from engramfs.search.vectors import VectorFile

Progress = Callable[[Step], None]

_DEPTH = 200  # passages of each ranking, at least
_PAUSE = 0.03  # seconds between two steps, in which another process may take the lock
_ATTEMPTS = 5  # to open an index that another process replaces meanwhile


class Search:
    """Use `opened`; close it with `close`. `notice` is what a person should be told once, if anything."""

    def __init__(self, state: str, engine: Engine, settings: EmbedderSettings) -> None:
        self._engine = engine
        self._embedder = choose_embedder(settings)
        self._directory = IndexDirectory(state)
        self._indexer = Indexer(engine, self._directory, self._embedder)
        self._lock = threading.RLock()
        self._generation = 0
        self._index: KeywordIndex | None = None
        self._vectors: VectorFile | None = None
        self.notice = NO_MEANING if settings.semantic and self._embedder is None else None

    @property
    def has_meaning(self) -> bool:
        return self._embedder is not None

    def catch_up(self, patience: float, progress: Progress | None = None) -> bool:
        """Bring the index up to the log, for at most about `patience` seconds; whether it is.

        Another process that holds the index lock is waited for as long. Raises `Full` and `Unavailable`.
        """
        deadline = time.monotonic() + patience
        with self._lock:
            while True:
                step = self._indexer.step(max(0.0, deadline - time.monotonic()))
                if step is not None and progress is not None:
                    progress(step)
                if step is None or step.is_last:
                    return step is not None
                if time.monotonic() > deadline:
                    return False
                time.sleep(_PAUSE)

    def position(self) -> int:
        """The sequence of the feed up to which everything is indexed."""
        with self._lock:
            state = self._snapshot()[0].state()
            return state.position if state is not None else 0

    def wait(self, position: int, timeout: float) -> bool:
        """Index up to that sequence of the feed; False when that took longer than `timeout` seconds."""
        deadline = time.monotonic() + timeout
        with self._lock:
            while True:
                step = self._indexer.step(max(0.0, deadline - time.monotonic()))
                if step is not None and step.files == 0 and step.position >= position:
                    return True
                if time.monotonic() > deadline:
                    return False
                time.sleep(_PAUSE)

    def find(self, query: Query) -> list[Found]:
        """What matches, best first. Raises `Unavailable` for meaning that there is none of."""
        with self._lock:
            self.catch_up(query.patience)
            kind = self._kind(query.kind)
            terms = query_terms(query.text)
            with self._engine.reading() as reader:
                files = LiveFiles(reader, query.reach)
                rankings = self._rankings(kind, query, terms, _filter(query, files))
                fused = fuse({match: list(ranking) for match, ranking in rankings.items()})
                shown = _shown(files, rankings, fused, [one.term for one in terms])
                return list(islice(shown, query.offset, query.offset + query.limit))

    def similar(self, text: str, place: Place, under: str = "", limit: int = 5) -> list[Found]:
        """The files that say most nearly what `text` says, as far as the index knows; `score` is from 0 to 1.

        By meaning where there is any; by keywords otherwise, and then the score is only that of the ranking.
        """
        kind: Kind = "semantic" if self._embedder is not None else "keyword"
        return self.find(Query(text, reach=(place,), under=under, limit=limit, kind=kind, patience=0.0))

    def close(self) -> None:
        with self._lock:
            self._index = self._vectors = None

    def _kind(self, kind: Kind | None) -> Kind:
        if kind is None:
            return "hybrid" if self._embedder is not None else "keyword"
        if kind != "keyword" and self._embedder is None:
            raise Unavailable(self.notice or "meaning is switched off by semantic = false in [search]")
        return kind

    def _rankings(
        self, kind: Kind, query: Query, terms: list[WeightedTerm], wanted: Filter
    ) -> dict[Match, Ranking]:
        depth = max(_DEPTH, 4 * (query.offset + query.limit))
        snapshot, vectors = self._snapshot()
        rankings: dict[Match, Ranking] = {}
        if kind != "semantic":
            rankings["keyword"] = by_keywords(snapshot, terms, wanted, depth)
        if kind != "keyword" and self._embedder is not None and vectors is not None:
            from engramfs.search.meaning_ranking import by_meaning

            rankings["semantic"] = by_meaning(snapshot, vectors, self._embedder, query.text, wanted, depth)
        return rankings

    def _snapshot(self) -> "tuple[Snapshot, VectorFile | None]":
        """The index as it is now. Another process may put a new generation in its place at any moment."""
        for _ in range(_ATTEMPTS):
            generation = self._directory.current()
            if generation is None:
                self._indexer.step(0.0, meaning=False)
                continue
            try:
                return self._open(generation)
            except IndexDamaged:
                self._index = None
                if self._directory.current() == generation:
                    self._indexer.begin_anew(generation)
        raise IndexDamaged(
            f"the search index in {self._directory.path} cannot be opened; remove the directory"
        )

    def _open(self, generation: int) -> "tuple[Snapshot, VectorFile | None]":
        if self._index is None or self._generation != generation:
            self._index = KeywordIndex(self._directory.keywords(generation))
            self._vectors = None
            self._generation = generation
        if self._embedder is not None:
            from engramfs.search.vectors import VectorFile

            if self._vectors is None:
                self._vectors = VectorFile(self._directory.vectors(generation), self._embedder.identity)
            else:
                self._vectors.follow()
        return self._index.snapshot(), self._vectors


def _filter(query: Query, files: LiveFiles) -> Filter:
    return Filter(
        places=files.places(),
        under=raw(query.under).strip(b"/"),
        category=query.category,
        agent=query.agent,
        session=query.session,
        since=query.since,
        until=query.until,
    )


def _shown(
    files: LiveFiles, rankings: dict[Match, Ranking], fused: list[tuple[File, Fused]], terms: list[str]
) -> Iterator[Found]:
    """Those hits that are still so, as they are shown. Lazy: no more is read than is asked for."""
    for key, how in fused:
        # Where both rankings have the file, its lines are those that the keywords are on.
        hit = next(rankings[match][key] for match in how.matched)
        live = files.read(hit.row)
        if live is not None:
            yield _found(hit.row, live, how, terms)


def _found(row: Row, live: LiveFile, how: Fused, terms: list[str]) -> Found:
    lines = live.text.split("\n")[row.first - 1 : row.last]
    at = best_line(lines, terms)
    return Found(
        store=live.store,
        path=printable(row.path),
        line=row.first + at,
        first_line=row.first,
        last_line=row.last,
        snippet=snippet(lines, at, terms) if lines else "",
        score=how.score,
        matched=how.matched,
        version=live.version,
        digest=row.digest.hex(),
        created=row.created,
        updated=row.updated,
        category=row.category,
        agent=row.agent,
        session=row.session,
    )
