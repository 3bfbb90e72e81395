"""Search over the log of one state directory.

Concurrency. One object may be used from several threads: one at a time does something, the others wait.
Several processes may search at once; the one that holds the index lock indexes, the others find what is
there.
"""

import threading
import time
from collections.abc import Callable
from itertools import islice

from engramfs.model.names import raw
from engramfs.search.backlog import Backlog
from engramfs.search.embedder import NO_MEANING, EmbedderSettings, NoMeaning, choose_embedder
from engramfs.search.filters import Filter
from engramfs.search.fusion import Fused, fuse
from engramfs.search.index_directory import IndexDirectory
from engramfs.search.indexer import AT_ONCE, Indexer, Step
from engramfs.search.keyword_ranking import File, Hit, Ranking, by_keywords
from engramfs.search.likeness import likeness
from engramfs.search.live_files import LiveFiles
from engramfs.search.open_index import OpenIndex, Present
from engramfs.search.query import Found, Kind, Match, Place, Query
from engramfs.search.results import found, shown
from engramfs.search.terms import WeightedTerm, query_terms
from engramfs.storage.protocol import Engine

Progress = Callable[[Step], None]

_DEPTH = 200  # passages of each ranking, at least
_CANDIDATES = 30  # passages of each ranking that `similar` compares word by word
_PAUSE = 0.03  # seconds between two steps, in which another process may take the lock
_NEWEST = 16  # passages that get their vectors before a search goes on
_AGAIN = 60.0  # seconds until an endpoint that did not answer is asked once more


class Search:
    """Use `engramfs.search.opened`; close it with `close`.

    `notice` is what a person should be told once, if anything: that meaning is not searched, and why.
    """

    def __init__(self, state: str, engine: Engine, settings: EmbedderSettings) -> None:
        self._engine = engine
        self._embedder = choose_embedder(settings)
        directory = IndexDirectory(state)
        self._indexer = Indexer(engine, directory, self._embedder)
        identity = self._embedder.identity if self._embedder is not None else None
        self._index = OpenIndex(directory, self._indexer, identity)
        self._backlog = Backlog(self._indexer)
        self._lock = threading.Lock()
        self._silent_until = 0.0  # of an endpoint
        self.notice = NO_MEANING if settings.semantic and self._embedder is None else None

    @property
    def has_meaning(self) -> bool:
        """Whether meaning is searched now."""
        return self._embedder is not None and time.monotonic() >= self._silent_until

    def catch_up(self, patience: float, progress: Progress | None = None) -> bool:
        """Bring the index up to the log, meaning too, for at most about `patience` seconds; whether it is.

        Another process that holds the index lock is waited for as long. An endpoint that does not answer is
        what `notice` says. Raises `Full`, and `Unavailable` when the index cannot be written.
        """
        deadline = time.monotonic() + patience
        while True:
            step = self._step(deadline, AT_ONCE)
            if step is not None and progress is not None:
                progress(step)
            if step is None or step.is_last:
                return step is not None
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE)

    def follow(self, patience: float) -> None:
        """Bring the keywords up to the log, for at most about `patience` seconds, and the newest meanings.

        Other passages get their vectors in a thread meanwhile. Raises as `catch_up` does.
        """
        deadline = time.monotonic() + patience
        step = self._step(deadline, _NEWEST)
        while step is not None and step.files and time.monotonic() < deadline:
            step = self._step(deadline, _NEWEST)
        if step is not None and step.passages:
            self._backlog.begin()

    def position(self) -> int:
        """The sequence of the feed up to which keywords are indexed."""
        with self._lock:
            state = self._index.present().keywords.state()
        return state.position if state is not None else 0

    def wait(self, position: int, timeout: float) -> bool:
        """Index up to that sequence of the feed; False when that took longer than `timeout` seconds.

        Raises as `catch_up` does, and `Unavailable` when an endpoint for meaning does not answer.
        """
        deadline = time.monotonic() + timeout
        while True:
            step = self._indexer.step(max(0.0, deadline - time.monotonic()), at_once=_NEWEST)
            if step is not None and step.files == 0 and step.position >= position:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE)

    def find(self, query: Query) -> list[Found]:
        """What matches, best first. Raises `Unavailable` for meaning that was asked for and is not there.

        Where it was not asked for, `notice` says so and keywords are searched alone.
        """
        kind = self._kind(query.kind)
        self.follow(query.patience)
        terms = query_terms(query.text)
        with self._engine.reading() as reader:
            wanted = _filter(query, LiveFiles(reader, query.reach))
        with self._lock:
            hits = self._fused(kind, query, terms, wanted)
        with self._engine.reading() as reader:
            files = LiveFiles(reader, query.reach)
            each = shown(files, hits, [one.term for one in terms])
            return list(islice(each, query.offset, query.offset + query.limit))

    def similar(self, text: str, place: Place, under: str = "", limit: int = 5) -> list[Found]:
        """The files that say most nearly what `text` says, as far as the index knows.

        `score` is from 0 to 1: the higher of the likeness of words (`engramfs.search.likeness`) and, where
        there is an embedder, that of meaning. From `RELATED` on two texts are related.
        """
        query = Query(text, reach=(place,), under=under)
        with self._engine.reading() as reader:
            wanted = _filter(query, LiveFiles(reader, query.reach))
        with self._lock:
            scored = self._nearest(text, wanted)
        similar: list[Found] = []
        with self._engine.reading() as reader:
            files = LiveFiles(reader, query.reach)
            for hit, score in scored:
                live = files.read(hit.row)
                if live is not None:
                    in_words = likeness(text, live.body(hit.row.path)).score
                    similar.append(found(hit.row, live, Fused(max(score, in_words), ()), []))
        return sorted(similar, key=lambda one: one.score, reverse=True)[:limit]

    def close(self) -> None:
        self._backlog.close()
        with self._lock:
            self._index.close()

    def _step(self, deadline: float, at_once: int) -> Step | None:
        """One step; without meaning while an endpoint does not answer."""
        left = max(0.0, deadline - time.monotonic())
        if not self.has_meaning:
            return self._indexer.step(left, at_once=0)
        try:
            step = self._indexer.step(left, at_once=at_once)
        except NoMeaning as error:
            self._do_without(error)
            return self._indexer.step(left, at_once=0)
        return step

    def _do_without(self, error: NoMeaning) -> None:
        self._silent_until = time.monotonic() + _AGAIN
        self.notice = f"keyword search alone, since {error.message}"

    def _kind(self, kind: Kind | None) -> Kind:
        """What is searched, given what was asked for. Raises `Unavailable`."""
        if kind is None:
            return "hybrid" if self.has_meaning else "keyword"
        if kind != "keyword" and self._embedder is None:
            raise NoMeaning(self.notice or "meaning is switched off by semantic = false in [search]")
        return kind

    def _fused(
        self, kind: Kind, query: Query, terms: list[WeightedTerm], wanted: Filter
    ) -> list[tuple[Hit, Fused]]:
        try:
            rankings = self._rankings(kind, query, terms, wanted)
        except NoMeaning as error:
            self._do_without(error)
            if query.kind is not None:
                raise
            rankings = self._rankings("keyword", query, terms, wanted)
        else:
            if kind != "keyword" and self._silent_until:
                self._silent_until, self.notice = 0.0, None  # it answers again
        # Where both rankings have a file, its lines are those that the keywords are on.
        return [
            (next(rankings[match][file] for match in how.matched), how)
            for file, how in fuse({match: _weighted(ranking) for match, ranking in rankings.items()})
        ]

    def _rankings(
        self, kind: Kind, query: Query, terms: list[WeightedTerm], wanted: Filter
    ) -> dict[Match, Ranking]:
        depth = max(_DEPTH, 4 * (query.offset + query.limit))
        present = self._index.present()
        rankings: dict[Match, Ranking] = {}
        if kind != "semantic":
            rankings["keyword"] = by_keywords(present.keywords, terms, wanted, depth)
        if kind != "keyword":
            rankings["semantic"] = self._by_meaning(present, query.text, wanted, depth)
        return rankings

    def _by_meaning(self, present: Present, text: str, wanted: Filter, depth: int) -> Ranking:
        from engramfs.search.meaning_ranking import by_meaning

        if self._embedder is None or present.vectors is None or not text.strip():
            return {}
        asked = self._embedder.question(text)
        near = by_meaning(present.keywords, present.vectors, asked, wanted, depth)
        least = self._embedder.least
        return {(hit.row.store, hit.row.path): hit for hit, cosine in near if cosine >= least}

    def _nearest(self, text: str, wanted: Filter) -> list[tuple[Hit, float]]:
        """Candidates for what is similar, with the likeness of their meaning, 0 where that is not known."""
        present = self._index.present()
        ranking = by_keywords(present.keywords, query_terms(text), wanted, _CANDIDATES)
        scored = {file: (hit, 0.0) for file, hit in ranking.items()}
        if self._embedder is not None and present.vectors is not None and self.has_meaning:
            from engramfs.search.meaning_ranking import by_meaning

            try:
                said = self._embedder.passages([text])[0]
            except NoMeaning as error:
                self._do_without(error)
                return list(scored.values())
            for hit, cosine in by_meaning(present.keywords, present.vectors, said, wanted, _CANDIDATES):
                scored[hit.row.store, hit.row.path] = (hit, cosine)
        return list(scored.values())


def _weighted(ranking: Ranking) -> list[tuple[File, float]]:
    return [(file, hit.weight) for file, hit in ranking.items()]


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
