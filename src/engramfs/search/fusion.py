"""Two rankings become one, by reciprocal rank: what both find comes before what one finds.

Scores of the two are not comparable, ranks are (Cormack, Clarke, Büttcher: Reciprocal Rank Fusion, 2009).
But a first place says little where next to nothing of the question was found, so each hit brings a
weight, from 0 to 1.
"""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from engramfs.search.query import Match

Key = TypeVar("Key")

# How slowly a place further down counts for less. Of 1 to 60, each half of the labelled questions by itself
# prefers this; so it does for a weight that is the share itself, and no power of it.
_RANK = 10


class Fused(msgspec.Struct, frozen=True):
    score: float  # 1 for the first of all rankings, with full weight
    matched: tuple[Match, ...]


def fuse(rankings: dict[Match, Sequence[tuple[Key, float]]]) -> list[tuple[Key, Fused]]:
    """The keys of all rankings, best first. Each is a list of (key, weight), best first, no key twice."""
    scores: dict[Key, float] = {}
    matched: dict[Key, tuple[Match, ...]] = {}
    share = (_RANK + 1) / max(1, len(rankings))
    for kind, ranking in rankings.items():
        for rank, (key, weight) in enumerate(ranking, 1):
            scores[key] = scores.get(key, 0.0) + weight * share / (_RANK + rank)
            matched[key] = (*matched.get(key, ()), kind)
    best = sorted(scores, key=lambda key: scores[key], reverse=True)
    return [(key, Fused(scores[key], matched[key])) for key in best]
