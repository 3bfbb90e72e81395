"""The keyword index as one commit left it: queries, and the rows of hits.

It stays what it is while others write, and even when its files are removed: they are mapped.
"""

from collections.abc import Iterator, Sequence

import msgspec
import tantivy

from engramfs.search.failures import translated
from engramfs.search.filters import Filter, filter_query, place_query
from engramfs.search.index_state import IndexState, decode_state
from engramfs.search.keyword_schema import STATE, Row, analyzer, decode_row, schema
from engramfs.search.terms import WeightedTerm

_LABELS = 0.6  # weight of a term in the labels, beside one in the text


class Snapshot:
    """One commit. Raises `IndexDamaged` for whatever cannot be read."""

    def __init__(self, index: tantivy.Index, directory: str) -> None:
        self._directory = directory
        with translated(directory):
            index.reload()
            self._searcher = index.searcher()

    @property
    def count(self) -> int:
        """How many passages there are."""
        return max(0, self._searcher.num_docs - 1)

    def state(self) -> IndexState | None:
        """How far the index is; None for one that was never committed."""
        with translated(self._directory):
            query = tantivy.Query.term_query(schema(), STATE, STATE)
            hits = self._searcher.search(query, 1, count=False).hits
            if not hits:
                return None
            try:
                return decode_state(bytes(self._searcher.doc(hits[0][1])["state_row"][0]))
            except msgspec.MsgspecError as error:
                raise ValueError(str(error)) from error

    def best(
        self, terms: Sequence[WeightedTerm], wanted: Filter, limit: int
    ) -> list[tuple[float, tantivy.DocAddress]]:
        """The passages that have any of `terms`, best first, with their scores (BM25)."""
        if not terms:
            return []
        any_of = [
            (tantivy.Occur.Should, _weighted(field, word, one.weight * share))
            for one in terms
            for word in analyzer().analyze(one.term)
            for field, share in (("terms", 1.0), ("labels", _LABELS))
        ]
        both = [
            (tantivy.Occur.Must, filter_query(wanted)),
            (tantivy.Occur.Must, tantivy.Query.boolean_query(any_of)),
        ]
        with translated(self._directory):
            query = tantivy.Query.boolean_query(both)
            return list(self._searcher.search(query, limit, count=False).hits)

    def frequency(self, stem: str) -> int:
        """How many passages have a stemmed term."""
        with translated(self._directory):
            return min(self.count, max(self._searcher.doc_freq(field, stem) for field in ("terms", "labels")))

    def addresses(self, wanted: Filter) -> list[tantivy.DocAddress]:
        """Every passage that may be found, in no order."""
        return self._addresses(filter_query(wanted))

    def _addresses(self, query: tantivy.Query) -> list[tantivy.DocAddress]:
        with translated(self._directory):
            return [address for _, address in self._searcher.search(query, _limit(self), count=False).hits]

    def vectors(self, addresses: list[tantivy.DocAddress]) -> list[int]:
        """The keys of the passages' vectors; 0 for what is no passage."""
        with translated(self._directory):
            return [int(key or 0) for key in self._searcher.fast_field_values("vector", addresses)]

    def row(self, address: tantivy.DocAddress) -> Row:
        return self._row(self._searcher.doc(address))

    def row_and_terms(self, address: tantivy.DocAddress) -> tuple[Row, str]:
        """A passage, and its terms and labels, joined by blanks."""
        document = self._searcher.doc(address)
        return self._row(document), f"{document['terms'][0]} {document['labels'][0]}"

    def _row(self, document: tantivy.Document) -> Row:
        with translated(self._directory):
            try:
                return decode_row(bytes(document["row"][0]))
            except (msgspec.MsgspecError, IndexError, KeyError) as error:
                raise ValueError(str(error)) from error

    def digests(self, store: int, path: bytes) -> dict[bytes, tuple[bytes, int]]:
        """The files that are indexed at and below `path`: path → digest, number of passages."""
        found: dict[bytes, tuple[bytes, int]] = {}
        for address in self._addresses(place_query(store, path)):
            row = self.row(address)
            found[row.path] = (row.digest, found.get(row.path, (b"", 0))[1] + 1)
        return found

    def everything(self) -> Iterator[tuple[Row, str, str]]:
        """Each passage with its terms and labels, in the order in which they came."""
        for address in self._addresses(tantivy.Query.all_query()):
            document = self._searcher.doc(address)
            if document.get_first("row") is not None:
                yield self._row(document), document["terms"][0], document["labels"][0]


def _weighted(field: str, word: str, weight: float) -> tantivy.Query:
    return tantivy.Query.boost_query(tantivy.Query.term_query(schema(), field, word, "freq"), weight)


def _limit(snapshot: Snapshot) -> int:
    return snapshot.count + 2
