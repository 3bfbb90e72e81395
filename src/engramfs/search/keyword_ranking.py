"""The files that have the terms of a question, each by its best passage."""

import msgspec

from engramfs.search.coverage import Coverage
from engramfs.search.filters import Filter
from engramfs.search.keyword_schema import Row, analyzer
from engramfs.search.snapshot import Snapshot
from engramfs.search.terms import WeightedTerm

File = tuple[int, bytes]  # store id, path


class Hit(msgspec.Struct, frozen=True):
    """`weight`, from 0 to 1, says what a place in the ranking is worth when it is fused with another."""

    row: Row
    weight: float


Ranking = dict[File, Hit]  # best first
_LOOKED_UP = 4000  # terms of a text whose frequency is asked for


def by_keywords(snapshot: Snapshot, terms: list[WeightedTerm], wanted: Filter, depth: int) -> Ranking:
    """The files of the best `depth` passages that have any of `terms`, weighted by how many they have."""
    coverage = Coverage(snapshot, terms)
    found: Ranking = {}
    for _, address in snapshot.best(terms, wanted, depth):
        row, its_terms = snapshot.row_and_terms(address)
        if (row.store, row.path) not in found:
            found[row.store, row.path] = Hit(row, coverage.of(its_terms))
    return found


def rarest(snapshot: Snapshot, terms: list[WeightedTerm], count: int) -> list[WeightedTerm]:
    """At most `count` of `terms` that some passage has, those of the fewest passages."""
    if len(terms) <= count:
        return terms
    some = terms[:: len(terms) // _LOOKED_UP + 1]
    frequencies = [
        (min(map(snapshot.frequency, analyzer().analyze(one.term)), default=0), one) for one in some
    ]
    known = [each for each in frequencies if each[0]]
    known.sort(key=lambda each: each[0])
    return [one for _, one in known[:count]]
