"""A three-way merge of texts, line by line.

Pure functions. What one side changed is taken from it; lines that both changed, each in its own way, are a
conflict, and so are changes of neighbouring lines, as with git.
"""

from collections.abc import Sequence

import msgspec

from engramfs.history.lines import matches, split_lines


class _Span(msgspec.Struct, frozen=True):
    """Lines `base` on of the base that both sides still have."""

    base: int
    ours: int
    theirs: int
    length: int


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """The content in which both sides' changes of `base` are made; None when they conflict.

    A content with a NUL byte is binary: it only merges when one side left `base` as it was, or both made the
    same of it. When both sides did nothing but append lines, both appendices stay, ours first, as they do
    when two writers append at the same time.
    """
    if ours in (theirs, base):
        return theirs
    if theirs == base:
        return ours
    if any(b"\0" in content for content in (base, ours, theirs)):
        return None
    if base.endswith(b"\n") and ours.startswith(base) and theirs.startswith(base) and ours.endswith(b"\n"):
        return ours + theirs[len(base) :]
    return _merge_lines(split_lines(base), split_lines(ours), split_lines(theirs))


def _merge_lines(base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]) -> bytes | None:
    merged: list[bytes] = []
    at_base = at_ours = at_theirs = 0
    for span in [*_kept_by_both(base, ours, theirs), _Span(len(base), len(ours), len(theirs), 0)]:
        between = _merge_region(
            base[at_base : span.base], ours[at_ours : span.ours], theirs[at_theirs : span.theirs]
        )
        if between is None:
            return None
        merged += between
        at_base, at_ours, at_theirs = (start + span.length for start in (span.base, span.ours, span.theirs))
        merged += base[span.base : at_base]
    return b"".join(merged)


def _merge_region(
    base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]
) -> Sequence[bytes] | None:
    """What becomes of the lines between two spans that both sides kept."""
    if ours in (theirs, base):
        return theirs
    return ours if theirs == base else None


def _kept_by_both(base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]) -> list[_Span]:
    """Where the lines that our side kept and those that their side kept overlap, in order."""
    spans = []
    our_matches, their_matches = matches(base, ours), matches(base, theirs)
    mine = other = 0
    while mine < len(our_matches) and other < len(their_matches):
        one, two = our_matches[mine], their_matches[other]
        start = max(one.old, two.old)
        end = min(one.old + one.length, two.old + two.length)
        if start < end:
            spans.append(_Span(start, one.new + start - one.old, two.new + start - two.old, end - start))
        if one.old + one.length < two.old + two.length:
            mine += 1
        else:
            other += 1
    return spans
