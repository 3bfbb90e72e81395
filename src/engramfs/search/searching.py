"""Search over the log of one state directory.

Concurrency. One object may be used from several threads: one at a time does something, the others wait.
Several processes may search at once; the one that holds the index lock indexes, the others find what is
there.
"""

import threading
from itertools import islice

from engramfs.history import catalog
from engramfs.model.names import printable, raw
from engramfs.search.coverage import Coverage
from engramfs.search.drafts import DraftVectors, Near, SearchedDrafts
from engramfs.search.embedder import Embedder, EmbedderSettings, NoMeaning, choose_embedder
from engramfs.search.filters import Filter
from engramfs.search.following import NEWEST, Following, Progress
from engramfs.search.fusion import Fused, fuse
from engramfs.search.index_directory import IndexDirectory
from engramfs.search.indexer import Indexer
from engramfs.search.keyword_ranking import File, Hit, Ranking, by_keywords, rarest
from engramfs.search.live_files import LiveFiles
from engramfs.search.open_index import OpenIndex, Present
from engramfs.search.passages import beginning, cut
from engramfs.search.query import Found, Kind, Match, Place, Query
from engramfs.search.results import shown
from engramfs.search.terms import WeightedTerm, query_terms
from engramfs.storage.protocol import Engine, Reader

_DEPTH = 200  # passages of each ranking, at least
_CANDIDATES = 30  # passages of each ranking that may say what a text says
_TERMS = 200  # of a long text or question, by which files are found


class Search:
    """Use `engramfs.search.opened`; close it with `close`."""

    def __init__(self, state: str, engine: Engine, settings: EmbedderSettings) -> None:
        self._engine = engine
        self._embedder, missing = _embedder(settings)
        directory = IndexDirectory(state)
        indexer = Indexer(engine, directory, self._embedder)
        identity = self._embedder.identity if self._embedder is not None else None
        self._index = OpenIndex(directory, indexer, identity)
        self._following = Following(indexer, self._embedder, missing)
        self._draft_vectors = DraftVectors()
        self._lock = threading.Lock()

    @property
    def has_meaning(self) -> bool:
        """Whether meaning is searched now."""
        return self._following.has_meaning

    @property
    def notice(self) -> str | None:
        """What a person should be told once, if anything: that meaning is not searched, and why."""
        return self._following.notice

    def catch_up(self, patience: float, progress: Progress | None = None, *, meaning: bool = True) -> bool:
        """Bring the index up to the log, `meaning` too, for at most about `patience` seconds; whether it is.

        Another process that holds the index lock is waited for as long. An embedder that does not answer is
        what `notice` says. Raises `Full`, and `Unavailable` when the index cannot be written.
        """
        return self._following.catch_up(patience, progress, meaning=meaning)

    def follow(self, patience: float, passages: int = NEWEST) -> None:
        """Bring the keywords up to the log, for at most about `patience` seconds, and the newest meanings.

        At most so many `passages` get their vectors before this returns.
        Other passages get their vectors in a thread meanwhile. On a full disk the index stays what it is,
        and `notice` says so. Raises `Unavailable` when the index cannot be written.
        """
        self._following.follow(patience, passages)

    def wait(self, position: int, timeout: float) -> bool:
        """Index up to that sequence of the feed; False when that took longer than `timeout` seconds.

        It can be found by keywords then; where meaning does not answer, `notice` says so. Raises as
        `catch_up` does.
        """
        return self._following.wait(position, timeout)

    def position(self) -> int:
        """The sequence of the feed up to which keywords are indexed."""
        with self._lock:
            state = self._index.present().keywords.state()
        return state.position if state is not None else 0

    def find(self, query: Query) -> list[Found]:
        """What matches, best first. Raises `Unavailable` when meaning alone is asked for and is not there.

        Where keywords are asked for too, or nothing is, `notice` says so and keywords are searched alone.
        """
        self.follow(query.patience, 0 if query.kind == "keyword" else NEWEST)
        kind = self._kind(query.kind)
        terms = query_terms(query.text)
        with self._engine.reading() as reader:
            wanted = _filter(query, LiveFiles(reader, query.reach))
            drafts = _drafts(reader, query, wanted)
        with self._lock:
            hits = self._fused(kind, query, terms, wanted, drafts)
        with self._engine.reading() as reader:
            files = LiveFiles(reader, query.reach)
            read = files.read if drafts is None else lambda row: drafts.read(row) or files.read(row)
            each = shown(read, hits, [one.term for one in terms])
            return list(islice(each, query.offset, query.offset + query.limit))

    def candidates(self, text: str, place: Place, under: str = "") -> list[tuple[str, float]]:
        """The files that may say what `text` says, as far as the index knows: path, likeness of meaning.

        That is from 0 to 1, and 0 where there is none; the words are for the caller to compare. A long text
        is looked for by its rarest terms and by the meaning of its beginning.
        """
        query = Query("", reach=(place,), under=under)  # a text may be longer than a question
        with self._engine.reading() as reader:
            wanted = _filter(query, LiveFiles(reader, query.reach))
        with self._lock:
            scored = self._nearest(text, wanted)
        with self._engine.reading() as reader:
            files = LiveFiles(reader, query.reach)
            return [
                (printable(hit.row.path), max(0.0, cosine))
                for hit, cosine in scored
                if files.read(hit.row) is not None
            ]

    def close(self) -> None:
        self._following.close()
        with self._lock:
            self._index.close()

    def _kind(self, kind: Kind | None) -> Kind:
        """What is searched, given what was asked for. Raises `Unavailable`."""
        reason = self._following.reason
        if kind == "keyword" or self.has_meaning:
            return kind or "hybrid"
        if kind is None or (kind == "hybrid" and reason is not None):
            return "keyword"
        raise NoMeaning(reason or "meaning is switched off by semantic = false in [search]")

    def _fused(
        self,
        kind: Kind,
        query: Query,
        terms: list[WeightedTerm],
        wanted: Filter,
        drafts: SearchedDrafts | None,
    ) -> list[tuple[Hit, Fused]]:
        try:
            rankings = self._rankings(kind, query, terms, wanted, drafts)
        except NoMeaning as error:
            self._following.has_failed(error)
            if kind == "semantic":
                raise
            rankings = self._rankings("keyword", query, terms, wanted, drafts)
        else:
            if kind != "keyword":
                self._following.has_answered()
        # Where both rankings have a file, its lines are those that the keywords are on.
        return [
            (next(rankings[match][file] for match in how.matched), how)
            for file, how in fuse({match: _weighted(ranking) for match, ranking in rankings.items()})
        ]

    def _rankings(
        self,
        kind: Kind,
        query: Query,
        terms: list[WeightedTerm],
        wanted: Filter,
        drafts: SearchedDrafts | None,
    ) -> dict[Match, Ranking]:
        depth = max(_DEPTH, 4 * (query.offset + query.limit))
        present = self._index.present()
        terms = rarest(present.keywords, terms, _TERMS)
        rankings: dict[Match, Ranking] = {}
        if kind != "semantic":
            found = by_keywords(present.keywords, terms, wanted, depth)
            if drafts is not None:
                found = drafts.among_words(found, Coverage(present.keywords, terms))
            rankings["keyword"] = found
        if kind != "keyword":
            rankings["semantic"] = self._by_meaning(present, query.text, wanted, depth, drafts)
        return rankings

    def _by_meaning(
        self, present: Present, text: str, wanted: Filter, depth: int, drafts: SearchedDrafts | None
    ) -> Ranking:
        from engramfs.search.meaning_ranking import by_meaning

        if self._embedder is None or present.vectors is None or not text.strip():
            return {}
        asked = self._embedder.question(cut(text))
        present.vectors.check(asked)
        near: Near = by_meaning(present.keywords, present.vectors, asked, wanted, depth)
        if drafts is not None:
            self._draft_vectors.prepare(drafts.texts(), self._embedder, present.vectors)
            near = drafts.among_meanings(near, asked, self._draft_vectors)
        least = self._embedder.least
        return {(hit.row.store, hit.row.path): hit for hit, cosine in near if cosine >= least}

    def _nearest(self, text: str, wanted: Filter) -> list[tuple[Hit, float]]:
        """With the likeness of their meaning, 0 where that is not known."""
        present = self._index.present()
        terms = rarest(present.keywords, query_terms(text), _TERMS)
        ranking = by_keywords(present.keywords, terms, wanted, _CANDIDATES)
        scored = {file: (hit, 0.0) for file, hit in ranking.items()}
        if self._embedder is not None and present.vectors is not None and self.has_meaning:
            from engramfs.search.meaning_ranking import by_meaning

            try:
                said = self._embedder.passages([beginning(text)])[0]
                present.vectors.check(said)
            except NoMeaning as error:
                self._following.has_failed(error)
                return list(scored.values())
            for hit, cosine in by_meaning(present.keywords, present.vectors, said, wanted, _CANDIDATES):
                scored[hit.row.store, hit.row.path] = (hit, cosine)
        return list(scored.values())


def _embedder(settings: EmbedderSettings) -> tuple[Embedder | None, NoMeaning | None]:
    """The embedder, or why there is none although one is wanted."""
    if not settings.semantic:
        return None, None
    try:
        return choose_embedder(settings), None
    except NoMeaning as error:
        return None, error


def _weighted(ranking: Ranking) -> list[tuple[File, float]]:
    return [(file, hit.weight) for file, hit in ranking.items()]


def _drafts(reader: Reader, query: Query, wanted: Filter) -> SearchedDrafts | None:
    known = {each: catalog.find(reader, each.store) for each in query.drafts if each.files or each.hidden}
    found = {store.id: each for each, store in known.items() if store is not None}
    return SearchedDrafts(found, wanted) if found else None


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
