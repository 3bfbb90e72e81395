"""Passages get their vectors in a thread, a few at a time, while searches go on.

A store of 10,000 records takes minutes. Whoever searches meanwhile finds by keywords everything, and by
meaning what has its vector: the newest first.
"""

import threading

import structlog

from engramfs.errors import EngramError
from engramfs.search.indexer import Indexer

_FEW = 16  # passages at once: a search waits for no more
_PAUSE = 0.03  # seconds between two steps, in which a search or another process takes its turn
_PATIENCE = 1.0  # seconds to wait for another process

_log = structlog.get_logger("engramfs.search")


class Backlog:
    """At most one thread at a time; it ends when nothing is left."""

    def __init__(self, indexer: Indexer) -> None:
        self._indexer = indexer
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def begin(self) -> None:
        """Start, unless it runs."""
        if self._thread is None or not self._thread.is_alive():
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name="engramfs-meaning", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop after the step that is being done."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(_PAUSE):
            try:
                step = self._indexer.step(_PATIENCE, at_once=_FEW)
            except EngramError as error:
                _log.warning("passages wait for their vectors", reason=error.message)
                return
            if step is not None and step.is_last:
                return
