"""The files that have the terms of a query, each by its best passage."""

from collections.abc import Iterable

import msgspec
import tantivy

from engramfs.search.filters import Filter
from engramfs.search.keyword_schema import Row
from engramfs.search.snapshot import Snapshot
from engramfs.search.terms import WeightedTerm

File = tuple[int, bytes]  # store id, path


class Hit(msgspec.Struct, frozen=True):
    row: Row
    score: float  # BM25, or the cosine


Ranking = dict[File, Hit]  # best first


def by_keywords(snapshot: Snapshot, terms: list[WeightedTerm], wanted: Filter, depth: int) -> Ranking:
    """The files of the best `depth` passages that have any of `terms`."""
    return of_files(snapshot, snapshot.best(terms, wanted, depth))


def of_files(snapshot: Snapshot, hits: Iterable[tuple[float, tantivy.DocAddress]]) -> Ranking:
    """The ranking of files that a ranking of passages, best first, amounts to."""
    found: Ranking = {}
    for score, address in hits:
        row = snapshot.row(address)
        found.setdefault((row.store, row.path), Hit(row, score))
    return found
