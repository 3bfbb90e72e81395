"""The steps of a collection, in their order, and their pace.

Slices are made so large that each keeps the writer for a few milliseconds; where somebody else waits for the
writer too, a pause follows each that is as long as the slice took.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from engramfs.errors import Busy, NotFound
from engramfs.history import catalog, pending
from engramfs.history.collection.carrier import Carrier, Done
from engramfs.history.collection.layout import lay_out
from engramfs.history.collection.marking import Marks, mark, unneeded
from engramfs.history.collection.recoding import recodings
from engramfs.history.collection.report import Collected, Progress
from engramfs.history.collection.retention import Pruning, horizon
from engramfs.history.repository import Repository
from engramfs.model.store import Store

Item = TypeVar("Item")
_SLICE, _SLICE_ALONE = 0.002, 0.2  # seconds of the writer
_RETRY = 0.5  # seconds


class Pace:
    """How large the next slice is, and how long to wait before it."""

    def __init__(self, *, shared: bool) -> None:
        self._shared = shared
        self._target = _SLICE if shared else _SLICE_ALONE
        self.size = 50

    def carry(self, call: Callable[[], Done]) -> int:
        """What the slice did. One that has to wait is tried until it need not."""
        began = time.perf_counter()
        while True:
            try:
                done = call()
                break
            except Busy:
                time.sleep(_RETRY)
        factor = self._target / max(done.seconds, 1e-6)
        self.size = int(min(max(self.size * min(max(factor, 0.5), 2), 10), 2000))
        if self._shared:
            time.sleep(min(time.perf_counter() - began, 0.05))
        return done.count


def collect(
    repository: Repository, carrier: Carrier, now: int, progress: Progress, collected: Collected
) -> None:
    """Remove what no rule keeps and nothing needs, and make deltas of what was superseded.

    What was done is counted in `collected`. The file of the log is not wiped by this: see
    `engramfs.storage.lmdb_wiping`.
    """
    _Collection(repository, carrier, now, progress, collected).run()


class _Collection:
    def __init__(
        self,
        repository: Repository,
        carrier: Carrier,
        now: int,
        progress: Progress,
        collected: Collected,
    ) -> None:
        self._engine = repository.engine
        self._carrier = carrier
        self._now = now
        self._progress = progress
        self._pace = Pace(shared=carrier.shared)
        self._done = collected

    def run(self) -> None:
        self._carrier.begin()
        for store in self._stores():
            self._prune(store)
        marks = mark(self._engine, self._stepper("looking for what is needed"))
        self._recode(marks)
        self._sweep(marks)
        self._carrier.end(self._now)

    def _stores(self) -> list[Store]:
        with self._engine.reading() as reader:
            return list(catalog.every(reader))

    def _size(self) -> int:
        return self._pace.size

    def _stepper(self, what: str, total: int = 0) -> Callable[[int], None]:
        done = 0

        def step(more: int) -> None:
            nonlocal done
            done += more
            self._progress(what, done, total)

        step(0)
        return step

    def _prune(self, store: Store) -> None:
        try:
            with self._engine.reading() as reader:
                head = catalog.head(reader, store.id)
                oldest = horizon(reader, store, head, self._now)
            if oldest == head.oldest and oldest == 1:
                return
            pinned = self._carrier.set_oldest(store.id, oldest)
            with self._engine.reading() as reader:
                head = catalog.head(reader, store.id)
                pinned += pending.needed_bases(reader, store.id)
        except NotFound:
            return  # it was deleted meanwhile
        step = self._stepper(f"removing old versions of {store.name}", head.oldest)
        for slice_ in Pruning(self._engine, store, head, pinned).slices(self._size):
            removed = self._pace.carry(partial(self._carrier.prune, slice_))
            self._done.versions += removed
            step(removed)

    def _recode(self, marks: Marks) -> None:
        wanted = lay_out(self._engine, marks, self._stepper("looking for what was superseded"))
        step = self._stepper("making deltas", len(wanted))
        for rows in recodings(self._engine, marks, wanted, self._size, step):
            self._done.deltas += self._pace.carry(partial(self._carrier.recode, rows))

    def _sweep(self, marks: Marks) -> None:
        digests = unneeded(self._engine, marks, self._stepper("looking for what is not needed"))
        step = self._stepper("removing contents", len(digests))
        for some in self._pieces(digests):
            self._done.contents += self._pace.carry(partial(self._carrier.sweep, some))
            step(len(some))

    def _pieces(self, items: Sequence[Item]) -> Iterator[list[Item]]:
        start = 0
        while start < len(items):
            size = self._pace.size
            yield list(items[start : start + size])
            start += size
