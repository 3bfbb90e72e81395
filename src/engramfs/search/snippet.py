"""What is shown of a hit: the line that says most of what was asked, and as much around it as fits."""

from collections.abc import Iterable

from engramfs.search.keyword_schema import analyzer
from engramfs.search.terms import index_terms

LONGEST = 240  # characters
_BEFORE = 60  # of a cut line before its first match


def best_line(lines: list[str], terms: Iterable[str]) -> int:
    """The index of the line with the most of `terms`, each once; of the first with text when none has any."""
    wanted = _stems(terms)
    counts = [len(wanted & _stems(index_terms(line))) if line.strip() else -1 for line in lines]
    return max(range(len(lines)), key=lambda at: counts[at]) if lines else 0


def snippet(lines: list[str], at: int, terms: Iterable[str]) -> str:
    """The line `at` and lines after it on one line, at most `LONGEST` characters."""
    line = lines[at].strip()
    if len(line) > LONGEST:
        return _cut(line, terms)
    for following in lines[at + 1 :]:
        text = following.strip()
        if len(line) + 1 + len(text) > LONGEST:
            break
        line = f"{line} {text}".strip()
    return line


def _cut(line: str, terms: Iterable[str]) -> str:
    folded = line.casefold()
    places = [place for term in terms if len(term) > 1 and (place := folded.find(term)) >= 0]
    start = max(0, min(places, default=0) - _BEFORE)
    end = start + LONGEST - 2
    return ("…" if start else "") + line[start:end].strip() + ("…" if end < len(line) else "")


def _stems(terms: Iterable[str]) -> set[str]:
    return set(analyzer().analyze(" ".join(terms)))
