"""What happened in a store lately that people should know of: `.versions/status` shows it."""

import time
from collections.abc import Collection, Iterable, Iterator

from engramfs.vfs.failures import Failure, unless_named

_KEPT = 20


class Recent:
    """Lines, newest last, each with its time; first those of an earlier worker."""

    def __init__(self, earlier: Iterable[Failure] = ()) -> None:
        self._lines = [_line(failure.time // 10**9, failure.what) for failure in earlier][-_KEPT:]

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def add(self, what: str) -> bool:
        """Keep it; False where it is the newest already: what goes on is said once."""
        if self._lines and self._lines[-1].partition(" ")[2] == what:
            return False
        self._lines.append(_line(time.time(), what))
        del self._lines[:-_KEPT]
        return True

    def redact(self, paths: Collection[str]) -> None:
        """Say no more what names one of these paths, which were redacted."""
        parts = (line.partition(" ") for line in self._lines)
        self._lines = [f"{moment} {unless_named(what, paths)}" for moment, _, what in parts]


def _line(moment: float, what: str) -> str:
    """`moment` in seconds since 1970."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(moment))} {what}"
