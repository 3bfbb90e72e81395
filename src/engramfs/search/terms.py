"""Text as the terms that keyword search knows: words, identifiers and their parts, CJK characters and pairs.

Words are folded (NFKC, case). An identifier is kept whole and in its parts: `batch.max_age` gives itself,
`batch`, `max_age`, `max` and `age`; `readOnlyView` gives itself, `read`, `only` and `view`. Chinese,
Japanese and Korean are written without blanks that would end a word, so each character and each pair of
neighbours is a term, and a word of one or two characters is found exactly.

The index stems what it is given (English); terms here are not stemmed yet.
"""

import re
import unicodedata
from functools import lru_cache

import msgspec

_CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"([{_CJK}]+)|([^\W{_CJK}]+(?:[._/:@#+\-\\]+[^\W{_CJK}]+)*)")
_SEPARATOR = re.compile(r"[._/:@#+\-\\]+")
_STEP = re.compile(r"[/:@#+\\]+")  # between the steps of a path, which are names themselves
_DOT = re.compile(r"[./:@#+\\]+")  # and between the names of a dotted name
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W0-9A-Za-z_]+")
_LONGEST = 120  # characters of a term; longer ones are data, not words
_SINGLE = 0.2  # weight of one character of a longer run in a query

# What questions are made of. Only left out of a query that says something else as well.
_ENGLISH = """
    a about after all am an and any are as at be been before but by can could did do does for from get had has
    have he her him his how i if in into is it its know me my of on or our shall she should so some tell than
    that the their them then there these they this to us was we were what when where which who whom whose why
    will with would you your
"""
_CHINESE_PAIRS = """
    什么 怎么 哪个 哪些 哪里 哪种 哪一 哪位 为什 如何 多少 几个 几点 是否 有没 没有 是不 不是 的是 是什 么是
    谁的 是谁 是哪 叫什 一个 这个 那个 我们 你们 他们 什麼 怎麼 么时 时候 麼時 時候 请问 可以 应该
"""
_CHINESE_SINGLES = (
    "的了是在吗呢吧么什怎哪谁我你他她它们和与及或也都就要会有不为以及个把被让给对从到这那请问嗎麼個"
)
STOP_WORDS = frozenset([*_ENGLISH.split(), *_CHINESE_PAIRS.split(), *_CHINESE_SINGLES])


class WeightedTerm(msgspec.Struct, frozen=True):
    """A term of a query; a hit's score counts it `weight` times."""

    term: str
    weight: float


def index_terms(text: str) -> list[str]:
    """Every term of `text`, as often as it occurs, in order."""
    terms: list[str] = []
    for match in _RUN.finditer(unicodedata.normalize("NFKC", text)):
        run = match[1]
        if run is None:
            terms.extend(_word_terms(match[2]))
            continue
        terms.extend(run)
        terms.extend(run[at : at + 2] for at in range(len(run) - 1))
    return terms


def words(text: str) -> list[str]:
    """The words of `text` in order, each once for each time: identifiers whole, of CJK each character."""
    found: list[str] = []
    for match in _RUN.finditer(unicodedata.normalize("NFKC", text)):
        found.extend(match[1] or [match[2].casefold()])
    return found


def query_terms(text: str) -> list[WeightedTerm]:
    """The terms to look for, each once. Without what questions are made of, unless there is nothing else."""
    found: dict[str, float] = {}
    for match in _RUN.finditer(unicodedata.normalize("NFKC", text)):
        run = match[1]
        if run is None:
            weighted = [(term, 1.0) for term in _asked_for(match[2])]
        elif len(run) == 1:
            weighted = [(run, 1.0)]
        else:
            weighted = [(run[at : at + 2], 1.0) for at in range(len(run) - 1)]
            weighted += [(character, _SINGLE) for character in run]
        for term, weight in weighted:
            found[term] = max(weight, found.get(term, 0.0))
    telling = {term: weight for term, weight in found.items() if term not in STOP_WORDS}
    return [WeightedTerm(term, weight) for term, weight in (telling or found).items()]


def _asked_for(word: str) -> list[str]:
    """The terms to look for. A letter or digit of an identifier says nothing of it: any list has one."""
    terms = _word_terms(word)
    return [term for term in terms if len(term) > 1] or list(terms)


@lru_cache(maxsize=1 << 16)
def _word_terms(word: str) -> tuple[str, ...]:
    """A word or identifier: whole, the names that it is made of, and their parts. Each once, folded."""
    found = [word]
    if _SEPARATOR.search(word):
        found += _STEP.split(word)
        found += _DOT.split(word)
        found += _SEPARATOR.split(word)
    parts = [part for name in _SEPARATOR.split(word) for part in _HUMP.findall(name)]
    if len(parts) > 1:
        found += parts
    folded = (term.casefold().strip("_") for term in found)
    return tuple(dict.fromkeys(term for term in folded if 0 < len(term) <= _LONGEST))
