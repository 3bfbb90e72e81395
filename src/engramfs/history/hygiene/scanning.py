"""What looks like a secret in a content, in a commit that is about to be a version, and in a version.

Looked at is the first MiB of each content, as far as it can be read (see `readable`), and of one version
64 MiB at most. It needs the GIL, so a thread that scans much pauses now and then, for the event loop's sake.
"""

import time
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from engramfs.errors import Corrupt, Redacted
from engramfs.history import log
from engramfs.history.hygiene.candidates import candidates, spans
from engramfs.history.hygiene.detectors import Alone, is_available, kinds_in
from engramfs.history.hygiene.readable import parts
from engramfs.model.entry import EMPTY_DIGEST, Kind
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.model.version import Change, ChangeKind
from engramfs.storage import blobs
from engramfs.storage.protocol import Reader

FLAG = "secret"
LOOKED_AT = blobs.PART  # bytes of one content
_OF_A_VERSION = 64 << 20  # bytes of all contents of one version
_SHOWN = 2000  # bytes of its line that are shown to the detectors from a candidate on
_MATCHED = 1100  # bytes: none of them has to see more to match
_BETWEEN_PAUSES, _PAUSE = 64 << 10, 20e-6  # bytes, seconds


class Found(msgspec.Struct, frozen=True):
    """Where something looks like a secret, and like which kind; never the secret."""

    line: int  # 1, 2, 3 …
    kind: str


class FoundAt(msgspec.Struct, frozen=True):
    """The same in a file of a version."""

    path: str
    line: int
    kind: str


def find(content: bytes) -> list[Found]:
    """What looks like a secret in a content, by line. Nothing without the library."""
    if not is_available():
        return []
    looked_at = content[:LOOKED_AT]
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


def files_with_secrets(
    reader: Reader, changes: Iterable[Change], contents: Mapping[bytes, bytes]
) -> Iterator[tuple[Change, list[Found]]]:
    """The changes by which something that looks like a secret is written.

    `contents` are those that are not blobs yet.
    """
    if not is_available():
        return
    left, since_pause = _OF_A_VERSION, 0
    known: dict[bytes, list[Found]] = {}
    for change in changes:
        if not _writes_content(change) or left <= 0:
            continue
        if change.digest not in known:
            content = contents.get(change.digest)
            content = _beginning(reader, change.digest) if content is None else content
            known[change.digest] = find(content)
            size = min(len(content), LOOKED_AT)
            left, since_pause = left - size, since_pause + size
            if since_pause >= _BETWEEN_PAUSES:
                time.sleep(_PAUSE)
                since_pause = 0
        if known[change.digest]:
            yield change, known[change.digest]


def _writes_content(change: Change) -> bool:
    if change.op is ChangeKind.DELETED or change.kind is not Kind.FILE or change.is_redacted:
        return False
    return bool(change.digest) and change.digest not in (EMPTY_DIGEST, change.from_digest)


def _beginning(reader: Reader, digest: bytes) -> bytes:
    """The part of a blob that is looked at; nothing where the content is gone, which others report."""
    try:
        return blobs.part(reader, digest, 0)
    except (Corrupt, Redacted):
        return b""


def said_of(store: str, number: int) -> str:
    """What is said of a version with the flag."""
    return f"version {number} looks like it holds a secret; engramfs log {store} --flag {FLAG} says where"


def of_version(reader: Reader, store: Store, number: int) -> list[FoundAt]:
    """What looks like a secret in what a version wrote, as far as it is still there."""
    return [
        FoundAt(printable(change.path), each.line, each.kind)
        for change, found in files_with_secrets(reader, log.changes(reader, store.id, number), {})
        for each in found
    ]
