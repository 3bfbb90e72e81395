"""How much of a question a hit has: the share of its terms, the rare ones counting more.

A hit by keywords may be the best that there is and still have next to nothing of the question, as when
that is in another language than the answer.
"""

from collections.abc import Sequence
from math import log

from engramfs.search.keyword_schema import analyzer
from engramfs.search.snapshot import Snapshot
from engramfs.search.terms import WeightedTerm


class Coverage:
    """Of one question, over one snapshot."""

    def __init__(self, snapshot: Snapshot, terms: Sequence[WeightedTerm]) -> None:
        count = snapshot.count
        self._weights: dict[str, float] = {}
        for one in terms:
            for stem in analyzer().analyze(one.term):
                has = snapshot.frequency(stem)
                rarity = log(1 + (count - has + 0.5) / (has + 0.5))
                self._weights[stem] = max(one.weight * rarity, self._weights.get(stem, 0.0))
        self._all = sum(self._weights.values())

    def of(self, terms: str) -> float:
        """The share, from 0 to 1, that a passage with `terms` (joined by blanks) has."""
        if not self._all:
            return 0.0
        has = self._weights.keys() & analyzer().analyze(terms)
        return sum(self._weights[stem] for stem in has) / self._all
