"""How alike two texts are by their words, without any index: whether a memory says what another says already.

Two texts are the same when over 95 % of their words are in common and in order. One is contained in another
when its words stand there in a row, or each of its sentences does. In both a negation counts: "likes tea" is
neither contained in "no longer likes tea" nor in anything else that denies it.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from typing import Literal

import msgspec

from engramfs.search.terms import words

SAME = 0.95  # of two texts' words in common; more is the same
RELATED = 0.5  # and so much, or more, is related
_LONG = 1500  # words that differ; the order of more is not compared, which would take too long
_TRIES = 20  # places where a text stands in another
_END = re.compile(r"[.!?;]+(?=\s|$)|[。！？；…\n]+")
_ENGLISH = "no not never none without nor cannot t dont doesnt didnt isnt cant wont"  # "don't" ends with t
_NEGATIONS = frozenset([*_ENGLISH.split(), *"不没無无未别勿非沒"])

Kind = Literal["same", "contained", "contains", "differs"]


class Likeness(msgspec.Struct, frozen=True):
    """Of one text to another: the same, contained in it, contains it whole, or none of these.

    `score` is the share of words in common and in order, from 0 to 1; 1 for a text that is contained.
    """

    kind: Kind
    score: float


class Text:
    """A text, made ready to be compared with others."""

    def __init__(self, text: str) -> None:
        self._text = unicodedata.normalize("NFKC", text)
        self.sentences = [found for sentence in _END.split(self._text) if (found := words(sentence))]
        self.words = [word for sentence in self.sentences for word in sentence]

    @cached_property
    def marks(self) -> str:
        """What a text without words is known by."""
        return "".join(self._text.split())

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(self.words)

    @cached_property
    def joined(self) -> str:
        return "\0".join(["", *self.words, ""])

    @cached_property
    def _ends(self) -> list[int]:
        """The number of words up to the end of each sentence."""
        ends: list[int] = []
        for sentence in self.sentences:
            ends.append(len(sentence) + (ends[-1] if ends else 0))
        return ends

    def around(self, first: int, count: int) -> list[str]:
        """The sentences that `count` words from number `first` on belong to."""
        begin, end = bisect_right(self._ends, first), bisect_right(self._ends, first + count - 1)
        return self.words[self._ends[begin - 1] if begin else 0 : self._ends[end]]


def likeness(one: str, other: str) -> Likeness:
    """What `one` is to `other`."""
    return compare(Text(one), Text(other))


def compare(one: Text, other: Text) -> Likeness:
    """What `one` is to `other`."""
    if not one.words or not other.words:
        is_same = not one.words and not other.words and one.marks == other.marks
        return Likeness("same", 1.0) if is_same else Likeness("differs", 0.0)
    if one.words == other.words:
        return Likeness("same", 1.0)
    score = _share_in_common(one, other)
    if score > SAME and _negations(one.words) == _negations(other.words):
        return Likeness("same", score)
    if _holds(other, one):
        return Likeness("contained", 1.0)
    if _holds(one, other):
        return Likeness("contains", 1.0)
    return Likeness("differs", min(score, SAME))


def _share_in_common(one: Text, other: Text) -> float:
    """Of words alone, where so few are in common or so many differ that their order is not looked at."""
    length = len(one.words) + len(other.words)
    most = 2 * (one.counts & other.counts).total() / length
    if most < RELATED:
        return most
    start = _common(one.words, other.words)
    end = _common(one.words[start:][::-1], other.words[start:][::-1])
    mine = one.words[start : len(one.words) - end]
    its = other.words[start : len(other.words) - end]
    if len(mine) + len(its) > 2 * _LONG:
        return most
    matching = SequenceMatcher(None, mine, its, autojunk=False).get_matching_blocks()
    return 2 * (start + end + sum(block.size for block in matching)) / length


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """With how many words both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, its) in pairs if mine != its), min(len(one), len(other)))


def _negations(text: Sequence[str]) -> Counter[str]:
    return Counter(word for word in text if word in _NEGATIONS)


def _holds(whole: Text, part: Text) -> bool:
    """Whether `whole` says all that `part` says."""
    if len(part.words) > len(whole.words) or not part.counts <= whole.counts:
        return False
    if any(
        _negations(whole.around(at, len(part.words))) == _negations(part.words) for at in _at(whole, part)
    ):
        return True
    sentences = iter(whole.sentences)
    return all(sentence in sentences for sentence in part.sentences)  # each after the one before


def _at(whole: Text, part: Text) -> Iterator[int]:
    """The numbers of the words at which all words of `part` begin to stand in `whole`."""
    at = -1
    for _ in range(_TRIES):
        at = whole.joined.find(part.joined, at + 1)
        if at < 0:
            return
        yield whole.joined.count("\0", 0, at)
