"""What of a content can be read as text.

In a text that is all of it. Anything else has a NUL somewhere. There a NUL ends a line, as it ends a string
of a program, so every string of a binary file is looked at, wherever it stands. Text in UTF-16 has a NUL at
every second place, as far as its letters are Latin ones; such runs are read as well, in either order of
bytes.

Not read is what has to be decoded first: UTF-32, base64, archives, images, what is encrypted.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_MARKS = bytes(
    ord("0") if byte == 0 else ord("x") if byte in b"\t\n\r" or 32 <= byte < 127 or byte >= 160 else ord(" ")
    for byte in range(256)
)
_SHORTEST = b"x0" * 6 + b"x"  # no secret that a detector knows has fewer letters
_RUN = re.compile(rb"(?:x0)*x")


class Part(NamedTuple):
    """Text, and where it is in the content: from `start` on, each of its bytes one of `width`."""

    text: bytes
    start: int
    width: int


def parts(content: bytes) -> Iterable[Part]:
    """All that can be read; of a content without a NUL that is one part."""
    if b"\0" not in content:
        return (Part(content, 0, 1),)
    return (Part(content.replace(b"\0", b"\n"), 0, 1), *_in_utf16(content))


def _in_utf16(content: bytes) -> Iterator[Part]:
    marks = content.translate(_MARKS)
    at = marks.find(_SHORTEST)
    while at >= 0:
        match = _RUN.match(marks, at)
        end = match.end() if match is not None else at + len(_SHORTEST)
        yield Part(content[at:end:2], at, 2)
        at = marks.find(_SHORTEST, end)
