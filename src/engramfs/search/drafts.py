"""What one session sees and no head has, searched beside the index.

That is what it wrote and what waits for approval, and of a store that it sees as of an older version, what
changed since.

Nothing of it gets into the index, or into a file: it is ranked among the hits of the index each time.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from engramfs.search.coverage import Coverage
from engramfs.search.embedder import Embedder
from engramfs.search.filters import Filter
from engramfs.search.indexed_file import index_file, meanings, vector_key
from engramfs.search.keyword_ranking import File, Hit, Ranking
from engramfs.search.keyword_schema import Row
from engramfs.search.live_files import LiveFile
from engramfs.search.query import Drafts

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from engramfs.search.vectors import VectorFile

    Vector = NDArray[numpy.float32]

_AT_ONCE = 64  # passages that a search embeds: a second for the model in the package

Near = Iterable[tuple[Hit, float]]  # nearest first, with the cosine


class SearchedDrafts:
    """`drafts` by the id of their store, as far as they are in what is `wanted`."""

    def __init__(self, drafts: Mapping[int, Drafts], wanted: Filter) -> None:
        self._names = {store: of_store.store for store, of_store in drafts.items()}
        self._drafts = {
            (store, draft.path): draft for store, of_store in drafts.items() for draft in of_store.files
        }
        hidden = {(store, path) for store, of_store in drafts.items() for path in of_store.hidden}
        self._hidden = self._drafts.keys() | hidden
        self._passages = [
            passage
            for (store, path), draft in self._drafts.items()
            for passage in index_file(store, path, draft.entry, draft.content)
            if _is_wanted(passage.row, wanted)
        ]

    def among_words(self, ranking: Ranking, coverage: Coverage) -> Ranking:
        """Each before the first that has less of the question."""
        best: Ranking = {}
        for passage in self._passages:
            hit = Hit(passage.row, coverage.of(f"{passage.terms} {passage.labels}"))
            file = (hit.row.store, hit.row.path)
            if hit.weight > (best[file].weight if file in best else 0.0):
                best[file] = hit
        own = [(hit, hit.weight) for hit in best.values()]
        others = [(hit, hit.weight) for hit in ranking.values()]
        return {(hit.row.store, hit.row.path): hit for hit, _ in self._merged(own, others)}

    def among_meanings(self, near: Near, asked: "Vector", vectors: "DraftVectors") -> Near:
        """By the cosine; those without a vector not at all."""
        own = [
            (Hit(passage.row, 1.0), float(vector @ asked))
            for passage in self._passages
            if (vector := vectors.of(passage.row.vector)) is not None
        ]
        return self._merged(own, near)

    def texts(self) -> Iterator[str]:
        """What is embedded of them."""
        for draft in self._drafts.values():
            yield from meanings(draft.path, draft.content)

    def _merged(self, own: list[tuple[Hit, float]], others: Near) -> Iterator[tuple[Hit, float]]:
        """Without what the session does not see. The best first, and of each file its best passage."""
        waiting = sorted(own, key=lambda each: each[1])
        seen: set[File] = set()
        for hit, value in others:
            while waiting and waiting[-1][1] > value:
                yield from _new(waiting.pop(), seen)
            if not self.hides(hit.row):
                yield hit, value
        while waiting:
            yield from _new(waiting.pop(), seen)

    def hides(self, row: Row) -> bool:
        """Whether the session does not see a file of the index as it is there."""
        return (row.store, row.path) in self._hidden

    def read(self, row: Row) -> LiveFile | None:
        """The file of a hit, if it is one of these."""
        draft = self._drafts.get((row.store, row.path))
        if draft is None:
            return None
        return LiveFile(self._names[row.store], draft.version, draft.content.decode("utf-8", "replace"))


class DraftVectors:
    """Those of what is searched now; kept for the next search, which mostly has the same drafts.

    Of many, a search embeds a few. The others are found by their words until a later search has had its turn.
    """

    def __init__(self) -> None:
        self._known: dict[int, Vector] = {}

    def prepare(self, texts: Iterable[str], embedder: Embedder, indexed: "VectorFile") -> None:
        """Look up what was `indexed` once, and embed some of the rest. Raises `NoMeaning`."""
        wanted = {vector_key(text): text for text in texts}
        missing = [key for key in wanted if key not in self._known]
        self._known = {key: vector for key, vector in self._known.items() if key in wanted}
        self._known |= indexed.vectors(missing)
        some = [key for key in missing if key not in self._known][:_AT_ONCE]
        if some:
            self._known |= zip(some, embedder.passages([wanted[key] for key in some]), strict=True)

    def of(self, key: int) -> "Vector | None":
        return self._known.get(key)


def _new(each: tuple[Hit, float], seen: set[File]) -> Iterator[tuple[Hit, float]]:
    file = (each[0].row.store, each[0].row.path)
    if file not in seen:
        seen.add(file)
        yield each


def _is_wanted(row: Row, wanted: Filter) -> bool:
    """As `filter_query` has it of what is indexed. That it is in reach, its session knows."""
    under = not wanted.under or row.path == wanted.under or row.path.startswith(wanted.under + b"/")
    named = all(
        getattr(wanted, name) in (None, getattr(row, name)) for name in ("category", "agent", "session")
    )
    since = wanted.since is None or row.updated >= wanted.since
    until = wanted.until is None or row.updated <= wanted.until
    return under and named and since and until
