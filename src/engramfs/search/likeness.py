"""How alike two texts are by their words, without any index: whether a memory says what another says already.

Two texts are the same only when what differs between them is small and says nothing: no name, number,
identifier or negation. One text is contained in another when it is some of its whole sentences or lines, so
that "likes tea" is not taken to be contained in "no longer likes tea".
"""

import re
import unicodedata
from collections import Counter
from difflib import SequenceMatcher
from typing import Literal

import msgspec

from engramfs.search.terms import STOP_WORDS, words

SAME = 0.95  # of two texts' words in common; more is the same
RELATED = 0.5  # and so much, or more, is related
_LONG = 1500  # words; the order of more is not compared, which would take too long
_END = re.compile(r"[.!?;]+(?=\s|$)|[。！？；…\n]+")
_NEGATIONS = frozenset([*["no", "not", "never", "none", "without", "nor", "cannot"], *"不没無无未别勿非沒"])

Kind = Literal["same", "contained", "contains", "differs"]


class Likeness(msgspec.Struct, frozen=True):
    """Of one text to another: the same, contained in it, contains it whole, or none of these.

    `score` is the share of words in common and in order, from 0 to 1; 1 for a text that is contained.
    """

    kind: Kind
    score: float


def likeness(one: str, other: str) -> Likeness:
    """What `one` is to `other`."""
    mine, its = words(one), words(other)
    if mine == its:
        return Likeness("same", 1.0)
    score = _share_in_common(mine, its)
    if score > SAME and _telling(mine) == _telling(its):
        return Likeness("same", score)
    if _holds(other, one):
        return Likeness("contained", 1.0)
    if _holds(one, other):
        return Likeness("contains", 1.0)
    return Likeness("differs", min(score, SAME))


def _share_in_common(one: list[str], other: list[str]) -> float:
    if not one or not other:
        return 0.0
    if len(one) + len(other) > 2 * _LONG:
        common = (Counter(one) & Counter(other)).total()
        return 2 * common / (len(one) + len(other))
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _telling(text: list[str]) -> Counter[str]:
    """The words that a text cannot lose without saying something else."""
    return Counter(word for word in text if word in _NEGATIONS or word not in STOP_WORDS)


def _holds(whole: str, part: str) -> bool:
    """Whether the sentences of `part` stand in `whole`, one after the other."""
    sought, sentences = _sentences(part), _sentences(whole)
    if not sought or len(sought) > len(sentences):
        return False
    return any(sentences[at : at + len(sought)] == sought for at in range(len(sentences) - len(sought) + 1))


def _sentences(text: str) -> list[list[str]]:
    folded = unicodedata.normalize("NFKC", text)
    return [found for sentence in _END.split(folded) if (found := words(sentence))]
