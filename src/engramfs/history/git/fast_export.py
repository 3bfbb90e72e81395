"""The stream of `git fast-export`: commits, each after the contents that it brings.

It is read once, front to back, and may come from anybody: what is not as git writes it is an error, and so is
a stream that ends before it says that it is done.
"""

import re
from collections.abc import Callable, Iterator
from typing import IO

import msgspec

from engramfs.errors import Unavailable
from engramfs.history.git import signature
from engramfs.history.git.paths import unquoted
from engramfs.history.git.signature import Signature

TakeBlob = Callable[[int, int, IO[bytes]], None]  # of a mark and a size; reads so many bytes, no more

_LINE = 1 << 20  # bytes; no path or header is longer
_MESSAGE = 64 << 20  # bytes
_RENAMED = re.compile(rb'R ("(?:[^"\\]|\\.)*"|[^ ]+) (.+)', re.DOTALL)
_WRITTEN = re.compile(rb"M (\d{6}) (?::(\d+)|[0-9a-f]{40,64}) (.+)", re.DOTALL)


class Written(msgspec.Struct, frozen=True):
    """A path of a commit. `mark` names its content; a submodule has none."""

    path: bytes
    mode: bytes
    mark: int | None


class GitCommit(msgspec.Struct, frozen=True):
    """A commit. `parent` is the id of the one before; None: nothing was there before."""

    id: str
    mark: int
    author: Signature
    committer: Signature
    message: bytes
    parent: str | None
    is_merge: bool  # it has more parents
    removed: tuple[bytes, ...]
    renamed: tuple[tuple[bytes, bytes], ...]  # from and to; where the content changed too, it is written
    written: tuple[Written, ...]


def commits(stream: IO[bytes], take_blob: TakeBlob) -> Iterator[GitCommit]:
    """Every commit, in order; `take_blob` is given each content before the commit that needs it.

    Raises `Unavailable` when the stream is no such stream, or is cut short.
    """
    reader = _Reader(stream)
    while (line := reader.line()) != b"done":
        if line == b"blob":
            mark = reader.mark()
            take_blob(mark, reader.data_size(), stream)
        elif line.startswith(b"commit "):
            yield reader.commit()
        elif line and not line.startswith((b"feature ", b"reset ", b"from ")):
            raise _malformed(line)


class _Reader:
    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._ahead: bytes | None = None
        self._last = "", ""  # the mark and the id of the commit that was read last

    def line(self) -> bytes:
        """Without its end."""
        if self._ahead is not None:
            line, self._ahead = self._ahead, None
            return line
        line = self._stream.readline(_LINE)
        if not line.endswith(b"\n"):
            raise Unavailable(
                "git ended before the history did; does git fsck find anything in the repository?"
            )
        return line[:-1]

    def _optional(self, prefix: bytes) -> bytes | None:
        """The rest of the next line, if it begins so."""
        line = self.line()
        if line.startswith(prefix):
            return line[len(prefix) :]
        self._ahead = line
        return None

    def mark(self) -> int:
        mark = _number(self._needed(b"mark :"))
        self._optional(b"original-oid ")
        return mark

    def _needed(self, prefix: bytes) -> bytes:
        found = self._optional(prefix)
        if found is None:
            raise _malformed(self._ahead or b"")
        return found

    def data_size(self) -> int:
        return _number(self._needed(b"data "))

    def commit(self) -> GitCommit:
        mark = _number(self._needed(b"mark :"))
        identifier = self._needed(b"original-oid ").decode("ascii", "replace")
        author, committer = (_signature(self._needed(who)) for who in (b"author ", b"committer "))
        while (line := self.line()).startswith((b"encoding ", b"gpgsig ")):
            if line.startswith(b"gpgsig "):
                self._bytes(self.data_size())
        self._ahead = line
        message = self._bytes(self.data_size())
        if (line := self.line()) != b"":  # an end of line may follow what has a length
            self._ahead = line
        parent, is_merge = self._parent(), False
        while self._optional(b"merge ") is not None:
            is_merge = True
        self._last = f":{mark}", identifier
        return GitCommit(identifier, mark, author, committer, message, parent, is_merge, *self._changes())

    def _parent(self) -> str | None:
        found = self._optional(b"from ")
        text = found.decode("ascii", "replace") if found is not None else None
        return self._last[1] if text == self._last[0] else text

    def _bytes(self, size: int) -> bytes:
        if size > _MESSAGE:
            raise Unavailable(f"a commit has a message of {size:,} bytes; git rev-list may find which")
        content = self._stream.read(size)
        if len(content) < size:
            raise Unavailable(
                "git ended before the history did; does git fsck find anything in the repository?"
            )
        return content

    def _changes(self) -> tuple[tuple[bytes, ...], tuple[tuple[bytes, bytes], ...], tuple[Written, ...]]:
        removed, renamed, written = [], [], []
        while line := self.line():
            if line.startswith(b"D "):
                removed.append(unquoted(line[2:]))
            elif match := _RENAMED.fullmatch(line):
                renamed.append((unquoted(match[1]), unquoted(match[2])))
            elif match := _WRITTEN.fullmatch(line):
                mark = int(match[2]) if match[2] is not None else None
                written.append(Written(unquoted(match[3]), match[1], mark))
            elif line != b"deleteall":
                self._ahead = line  # the next command: the line between may be left out
                break
        return tuple(removed), tuple(renamed), tuple(written)


def _signature(text: bytes) -> Signature:
    found = signature.read(text)
    if found is None:
        raise _malformed(text)
    return found


def _number(text: bytes) -> int:
    if not text.isdigit():
        raise _malformed(text)
    return int(text)


def _malformed(line: bytes) -> Unavailable:
    return Unavailable(f"this is no stream of git fast-export: {line[:80]!r}")
