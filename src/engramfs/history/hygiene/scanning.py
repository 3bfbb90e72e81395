"""What looks like a secret in a text.

Looked at is the first MiB of each content, as far as it can be read (see `readable`).
"""

from collections.abc import Iterator

import msgspec

from engramfs.history.hygiene.candidates import candidates, is_ordinary, spans
from engramfs.history.hygiene.detectors import Alone, is_available, kinds_in
from engramfs.history.hygiene.readable import parts
from engramfs.storage import blobs

LOOKED_AT = blobs.PART  # bytes of one content
_SHOWN = 2000  # bytes of its line that are shown to the detectors from a candidate on
_MATCHED = 1100  # bytes: none of them has to see more to match


class Found(msgspec.Struct, frozen=True):
    """Where something looks like a secret, and like which kind; never the secret."""

    line: int  # 1, 2, 3 …
    kind: str


def find(content: bytes) -> list[Found]:
    """What looks like a secret in a content, by line. Nothing without the library."""
    if not is_available():
        return []
    looked_at = content[:LOOKED_AT]
    if b"\0" not in looked_at and is_ordinary(looked_at):
        return []
    found: set[tuple[int, str]] = set()
    for text, begins, width in parts(looked_at):
        for start, end, detector in _shown(text):
            if kinds := list(kinds_in(text[start:end].decode("utf-8", "replace"), detector)):
                number = looked_at.count(b"\n", 0, begins + start * width) + 1
                found.update((number, kind) for kind in kinds)
    return [Found(*each) for each in sorted(found)]


def _shown(text: bytes) -> Iterator[tuple[int, int, Alone | None]]:
    """Parts of lines, and the detector that is shown them; None for all that are not shown their own."""
    for span in spans(text):
        yield span.start, _in_line(text, *span[:2]), span.detector
    seen = 0  # by all
    for at in sorted(candidates(text)):
        if at + _MATCHED > seen:
            end = _in_line(text, at, at + _SHOWN)
            yield at, end, None
            seen = end if end == at + _SHOWN else end + _MATCHED


def _in_line(text: bytes, start: int, end: int) -> int:
    """`end`, or where the line ends before."""
    newline = text.find(b"\n", start, end)
    return newline if newline >= 0 else min(end, len(text))


def find_in_name(path: bytes) -> list[Found]:
    """What looks like a secret in a path that is new: in its last name, or across that and what is above.

    What the directories above hold by themselves was found when they were made.
    """
    found = find(path)
    if not found:
        return []
    above, _, name = path.rpartition(b"/")
    return find(name) or ([] if find(above) else found)


def attribute_as_text(name: bytes, value: bytes) -> bytes:
    """An extended attribute as it is looked at: its name says what the value is."""
    return name + b"=" + value
