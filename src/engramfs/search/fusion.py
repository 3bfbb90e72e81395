"""Two rankings become one, by reciprocal rank: what both find comes before what one finds.

Scores of the two are not comparable, ranks are. (Cormack, Clarke, Büttcher: Reciprocal Rank Fusion, 2009.)
"""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from engramfs.search.query import Match

Key = TypeVar("Key")

_RANK = 60  # how slowly a place further down counts for less


class Fused(msgspec.Struct, frozen=True):
    score: float
    matched: tuple[Match, ...]


def fuse(rankings: dict[Match, Sequence[Key]]) -> list[tuple[Key, Fused]]:
    """The keys of all rankings (each best first and without repetition), best first."""
    scores: dict[Key, float] = {}
    matched: dict[Key, tuple[Match, ...]] = {}
    for kind, ranking in rankings.items():
        for rank, key in enumerate(ranking, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (_RANK + rank)
            matched[key] = (*matched.get(key, ()), kind)
    best = sorted(scores, key=lambda key: scores[key], reverse=True)
    return [(key, Fused(scores[key], matched[key])) for key in best]
