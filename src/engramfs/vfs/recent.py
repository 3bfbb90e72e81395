"""What happened in a store lately that people should know of: `.versions/status` shows it.

Agents read that too, in sandboxes, and where the state directory is on the host is none of their business:
`engramfs status` names it.
"""

import re
import time
from collections.abc import Collection, Iterable, Iterator

from engramfs.vfs.failures import Failure, without

_KEPT = 20
_STATE = "(state directory)"


class Recent:
    """Lines, newest last, each with its time; first those of an earlier worker. They do not name `state`."""

    def __init__(self, earlier: Iterable[Failure] = (), *, state: str = "") -> None:
        self._state = re.compile(re.escape(state) + r"(?!\w)") if state.startswith("/") else None
        self._lines = [_line(each.time // 10**9, self._shown(each.what)) for each in earlier][-_KEPT:]

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def add(self, what: str) -> bool:
        """Keep it; False where it is the newest already: what goes on is said once."""
        what = self._shown(what)
        if self._lines and self._lines[-1].partition(" ")[2] == what:
            return False
        self._lines.append(_line(time.time(), what))
        del self._lines[:-_KEPT]
        return True

    def _shown(self, what: str) -> str:
        return self._state.sub(_STATE, what) if self._state is not None else what

    def redact(self, paths: Collection[str]) -> None:
        """Name these paths no more, which were redacted."""
        parts = (line.partition(" ") for line in self._lines)
        self._lines = [f"{moment} {without(what, paths)}" for moment, _, what in parts]


def _line(moment: float, what: str) -> str:
    """`moment` in seconds since 1970."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(moment))} {what}"
