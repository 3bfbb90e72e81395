"""Who searches brings the index up to the log: all of it, or as much as a search may take.

What is here also knows whether meaning can be searched at present: an endpoint may be silent for a while, and
the model in the package may not load.
"""

import time
from collections.abc import Callable

from engramfs.errors import Full
from engramfs.search.backlog import Backlog
from engramfs.search.embedder import Embedder, NoMeaning
from engramfs.search.indexer import AT_ONCE, Indexer, Step

Progress = Callable[[Step], None]

_PAUSE = 0.03  # seconds between two steps, in which another process may take the lock
NEWEST = 16  # passages that get their vectors before a search goes on
_AGAIN = 60.0  # seconds until an embedder that did not answer is asked once more


class Following:
    """Safe to use from several threads. `missing` says why there is no embedder, if one is wanted."""

    def __init__(self, indexer: Indexer, embedder: Embedder | None, missing: NoMeaning | None = None) -> None:
        self._indexer = indexer
        self._has_embedder = embedder is not None
        self._backlog = Backlog(indexer)
        self._silent_until = 0.0  # of an embedder that did not answer
        self._is_full = False  # the disk
        self.reason = missing.message if missing is not None else None  # why meaning is not searched now
        self._standing = _keywords_alone(missing) if missing is not None else None
        self.notice = self._standing

    @property
    def has_meaning(self) -> bool:
        """Whether meaning is searched now."""
        return self._has_embedder and time.monotonic() >= self._silent_until

    def has_failed(self, error: NoMeaning) -> None:
        """The embedder did not answer: do without for a while, and say so."""
        self._silent_until = time.monotonic() + _AGAIN
        self.notice, self.reason = _keywords_alone(error), error.message

    def has_answered(self) -> None:
        if self._silent_until:
            self._silent_until, self.notice, self.reason = 0.0, self._standing, None

    def catch_up(self, patience: float, progress: Progress | None = None, *, meaning: bool = True) -> bool:
        """As `Search.catch_up`."""
        deadline = time.monotonic() + patience
        while True:
            step = self._step(deadline, AT_ONCE if meaning else 0)
            if step is not None and progress is not None:
                progress(step)
            if step is None or step.is_last:
                return step is not None
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE)

    def follow(self, patience: float, passages: int = NEWEST) -> None:
        """As `Search.follow`."""
        deadline = time.monotonic() + patience
        try:
            step = self._step(deadline, passages)
            while step is not None and step.files and time.monotonic() < deadline:
                step = self._step(deadline, passages)
        except Full as error:
            self._is_full = True
            self.notice = f"what was indexed before is searched; {error.message}"
            return
        if self._is_full:
            self._is_full, self.notice = False, self._standing
        if step is not None and step.passages:
            self._backlog.begin()

    def wait(self, position: int, timeout: float) -> bool:
        """As `Search.wait`."""
        deadline = time.monotonic() + timeout
        while True:
            step = self._step(deadline, NEWEST)
            if step is not None and step.files == 0 and step.position >= position:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE)

    def _step(self, deadline: float, at_once: int) -> Step | None:
        """One step; without meaning while the embedder does not answer."""
        left = max(0.0, deadline - time.monotonic())
        if not self.has_meaning:
            return self._indexer.step(left, at_once=0)
        try:
            return self._indexer.step(left, at_once=at_once)
        except NoMeaning as error:
            self.has_failed(error)
            return self._indexer.step(left, at_once=0)

    def close(self) -> None:
        self._backlog.close()


def _keywords_alone(reason: NoMeaning) -> str:
    return f"keyword search alone, since {reason.message}"
