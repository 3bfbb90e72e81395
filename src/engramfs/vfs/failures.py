"""What went wrong or was refused, newest last, as `status` shows it; the next worker is told as well.

Each is a line of JSON in a file, written when it happens: the worker may be killed next. A disk that is full
may not take it; then this worker alone can say it.
"""

import contextlib
import json
import os
import re
import time
from collections import deque
from collections.abc import Collection, Iterator

import msgspec

KEPT = 200
REDACTED = "(this named something below a directory whose name was redacted)"
_MOST_LINES = 4 * KEPT  # in the file, before those that are too old are dropped


class Failure(msgspec.Struct, frozen=True):
    """Something that went wrong or was refused; `store` is empty where it is of none."""

    time: int  # nanoseconds since 1970
    store: str
    what: str


class Failures:
    """The newest, oldest first. With `path` they are written there; with `keep` those there come first."""

    def __init__(self, path: str | None = None, *, keep: bool = False) -> None:
        self._path = path
        self._found: deque[Failure] = deque(_read(path) if path and keep else (), maxlen=KEPT)
        self._lines = 0
        self._write_anew()

    def __iter__(self) -> Iterator[Failure]:
        return iter(tuple(self._found))

    def add(self, store: str, what: str) -> None:
        failure = Failure(time.time_ns(), store, what)
        self._found.append(failure)
        if self._lines >= _MOST_LINES:
            self._write_anew()
        else:
            self._write(os.O_APPEND, _line(failure), 1)

    def redact(self, store: str, paths: Collection[str]) -> None:
        """Name these paths no more, which were redacted in `store`."""
        said = [
            msgspec.structs.replace(each, what=without(each.what, paths)) if each.store == store else each
            for each in self._found
        ]
        if said != list(self._found):
            self._found.clear()
            self._found.extend(said)
            self._write_anew()

    def _write_anew(self) -> None:
        self._write(os.O_TRUNC, b"".join(map(_line, self._found)), len(self._found) - self._lines)

    def _write(self, how: int, data: bytes, lines: int) -> None:
        if self._path is None:
            return
        with contextlib.suppress(OSError):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
            self._lines += lines


def without(what: str, paths: Collection[str]) -> str:
    """`what` without these paths; all of it goes where it names something below one of them."""
    if not paths:
        return what
    names = "|".join(re.escape(path) for path in sorted(paths, key=len, reverse=True))
    begin, end = r"(?<![^\s,:;'\"(])", r"(?![^\s,:;'\")])"
    if re.search(rf"{begin}(?:{names})/", what):
        return REDACTED
    return re.sub(f"{begin}(?:{names}){end}", "(redacted)", what)


def _line(failure: Failure) -> bytes:
    """JSON as the standard library has it: names that are not UTF-8 become escapes."""
    return json.dumps([failure.time, failure.store, failure.what]).encode() + b"\n"


def _read(path: str) -> Iterator[Failure]:
    """What an earlier worker left. The last line may be cut short."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as lines:
        for line in lines:
            with contextlib.suppress(ValueError, TypeError):
                moment, store, what = json.loads(line)
                yield Failure(int(moment), str(store), str(what))
