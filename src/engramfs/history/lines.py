"""Contents as lines, and which lines two contents have in common.

Pure functions over bytes; only a line feed ends a line, and lines keep their ends. What is equal at the
beginning and at the end is set aside before anything is compared, so that a small edit of a large file
costs little.
"""

import difflib
from collections.abc import Sequence
from typing import NamedTuple

_SNIFFED = 8000  # bytes that are looked at for a NUL, as git does


class Match(NamedTuple):
    """`length` lines from `old` on in one content are those from `new` on in the other."""

    old: int
    new: int
    length: int


def is_binary(content: bytes) -> bool:
    """Whether a content is better not shown as text."""
    return b"\0" in content[:_SNIFFED]


def split_lines(content: bytes) -> list[bytes]:
    """Lines with their ends; only the last may lack one."""
    lines = content.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def matches(old: Sequence[bytes], new: Sequence[bytes]) -> list[Match]:
    """The runs of lines that both have, in order; they never cross."""
    shorter = min(len(old), len(new))
    before = 0
    while before < shorter and old[before] == new[before]:
        before += 1
    after = 0
    while after < shorter - before and old[-1 - after] == new[-1 - after]:
        after += 1
    found = [Match(0, 0, before)] if before else []
    middle_old, middle_new = old[before : len(old) - after], new[before : len(new) - after]
    if middle_old and middle_new:
        blocks = difflib.SequenceMatcher(None, middle_old, middle_new).get_matching_blocks()
        found += [Match(before + block.a, before + block.b, block.size) for block in blocks if block.size]
    if after:
        found.append(Match(len(old) - after, len(new) - after, after))
    return found
