"""A text in passages: pieces of a few paragraphs, each with its lines and the headings that it stands under.

A passage ends before a heading, and otherwise at the end of a paragraph once it is long enough; a paragraph
that is too long is cut between lines, and a line that is too long between words. Where the text goes on
under the same heading, the next passage repeats the last short line, so that a sentence that needs the one
before is found.
"""

import re
from collections.abc import Iterator

import msgspec

LONGEST = 1200  # of a passage, in weight: about 300 tokens of a model
_OVERLAP = 160  # weight of a line that is repeated
_WIDE = 3  # weight of a character from U+2E80 on, which is about a word; others weigh 1
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"\s*(```|~~~)")


class Passage(msgspec.Struct, frozen=True):
    """Lines `first` to `last` (1-based, inclusive) of a text, under `headings`, the outermost first."""

    first: int
    last: int
    text: str
    headings: tuple[str, ...] = ()


class _Line(msgspec.Struct, frozen=True):
    number: int
    text: str
    headings: tuple[str, ...]
    is_heading: bool = False


def passages(text: str, first_line: int = 1) -> list[Passage]:
    """The passages of `text`, whose first line has the number `first_line`. Blank text has none."""
    found: list[Passage] = []
    waiting: list[_Line] = []
    weight = 0
    for line in _lines(text, first_line):
        starts_section = line.is_heading and any(not one.is_heading for one in waiting)
        at_paragraph = not line.text.strip() and weight > LONGEST // 2
        is_full = weight + weight_of(line.text) > LONGEST and weight > 0
        if starts_section or at_paragraph or is_full:
            found.extend(_passage(waiting))
            waiting = _repeated(waiting) if is_full else []
            weight = sum(weight_of(one.text) for one in waiting)
        waiting.append(line)
        weight += weight_of(line.text)
    found.extend(_passage(waiting))
    return found


def beginning(text: str) -> str:
    """What the first passage of `text` says, or its first quarter if it is long; empty for a blank one."""
    first = next((passage.text for passage in passages(text.lstrip()[: 2 * LONGEST])), "")
    return cut(first, LONGEST // 4)


def cut(text: str, most: int = LONGEST) -> str:
    """As much of `text` from its start as has about that weight, and no more."""
    return text if weight_of(text) <= most else text[: most if text.isascii() else most // _WIDE]


def _lines(text: str, first_line: int) -> Iterator[_Line]:
    """The lines, too long ones in pieces of the same number, each with the headings above it."""
    headings: list[tuple[int, str]] = []
    fenced = False
    for number, line in enumerate(text.split("\n"), first_line):
        if _FENCE.match(line):
            fenced = not fenced
        heading = None if fenced else _HEADING.match(line)
        if heading:
            depth = len(heading[1])
            headings = [one for one in headings if one[0] < depth] + [(depth, heading[2])]
        trail = tuple(name for _, name in (headings[:-1] if heading else headings))
        for piece in _pieces(line.rstrip()):
            yield _Line(number, piece, trail, heading is not None)


def _pieces(line: str) -> Iterator[str]:
    while len(line) > LONGEST or weight_of(line) > LONGEST:
        end = LONGEST // 2 if weight_of(line[:LONGEST]) <= LONGEST else LONGEST // (2 * _WIDE)
        cut = line.rfind(" ", end // 2, end)
        end = cut if cut > 0 else end
        yield line[:end]
        line = line[end:]
    yield line


def weight_of(text: str) -> int:
    """About four for each token of a model."""
    if text.isascii():
        return len(text)
    return len(text) + (_WIDE - 1) * sum(character >= "\u2e80" for character in text)


def _passage(lines: list[_Line]) -> Iterator[Passage]:
    """The passage that `lines` make, without blank lines at its ends; none if all are blank."""
    telling = [at for at, line in enumerate(lines) if line.text.strip()]
    if telling:
        kept = lines[telling[0] : telling[-1] + 1]
        text = "\n".join(line.text for line in kept)
        yield Passage(kept[0].number, kept[-1].number, text, kept[0].headings)


def _repeated(lines: list[_Line]) -> list[_Line]:
    last = lines[-1]
    return [last] if len(lines) > 1 and last.text.strip() and weight_of(last.text) <= _OVERLAP else []
