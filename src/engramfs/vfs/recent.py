"""What happened in a store lately that people should know of: `.versions/status` shows it."""

import time
from collections.abc import Iterator

_KEPT = 20


class Recent:
    """Lines, newest last, each with its time."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def add(self, what: str) -> bool:
        """Keep it; False where it is the newest already: what goes on is said once."""
        if self._lines and self._lines[-1].partition(" ")[2] == what:
            return False
        self._lines.append(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {what}")
        del self._lines[:-_KEPT]
        return True
