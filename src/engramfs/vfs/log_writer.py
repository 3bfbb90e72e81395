"""The one thread that writes to the log.

Jobs run in the order in which they were handed over. Those that cannot fail for a reason of their own
(sealing, storing a blob) share one transaction, so that a hundred stores that become quiet together cost
one synced commit. Any other job has a transaction to itself.

When a shared transaction fails (the disk is full, say) its jobs stay at the front and are tried again,
after `RETRY` seconds at first and `RETRY_MAX` at most. Shared jobs behind them wait, which keeps the
order; jobs of their own are told the error, so that nobody waits for a disk to be cleared.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import structlog
import trio

from engramfs.errors import EngramError, Unusable
from engramfs.history.repository import Repository
from engramfs.storage.protocol import Writer

RETRY, RETRY_MAX = 0.25, 2.0  # seconds
_GROUP = 256  # jobs in one transaction at most

Result = TypeVar("Result")
log = structlog.get_logger("engramfs.log_writer")


class _Job(Generic[Result]):
    """Something to do in a write transaction; `done` is called on the event loop."""

    def __init__(
        self, body: Callable[[Writer], Result], done: Callable[[Result], None], *, shared: bool
    ) -> None:
        self.body = body
        self.done = done
        self.shared = shared
        self.failed: Callable[[BaseException], None] | None = None


class Submitter(Protocol):
    """What trees and views need of a log writer."""

    trouble: str

    def submit(self, body: Callable[[Writer], Result], done: Callable[[Result], None]) -> None: ...

    async def run(self, body: Callable[[Writer], Result]) -> Result: ...


class LogWriter:
    """Hand jobs over with `submit` or `run`; `serve` is the task that does them."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self.on_trouble: Callable[[str], None] = _ignore
        self._jobs: deque[_Job[Any]] = deque()
        self._arrived = trio.Event()
        self._limiter = trio.CapacityLimiter(1)
        self.trouble = ""  # why the front of the queue does not move, or empty

    def submit(self, body: Callable[[Writer], Result], done: Callable[[Result], None]) -> None:
        """Do `body` soon, together with others; it is tried until it succeeds, then `done` is called."""
        self._add(_Job(body, done, shared=True))

    async def run(self, body: Callable[[Writer], Result]) -> Result:
        """Do `body` after what was handed over before, and wait for its result or error.

        A cancelled caller stops waiting; the job is done all the same.
        """
        finished = trio.Event()
        outcome: list[Any] = []

        def done(result: Any) -> None:
            outcome.append((result, None))
            finished.set()

        def failed(error: BaseException) -> None:
            outcome.append((None, error))
            finished.set()

        job = _Job(body, done, shared=False)
        job.failed = failed
        self._add(job)
        await finished.wait()
        result, error = outcome[0]
        if error is not None:
            raise error
        settled: Result = result
        return settled

    def _add(self, job: _Job[Any]) -> None:
        self._jobs.append(job)
        self._arrived.set()

    @property
    def waiting(self) -> int:
        return len(self._jobs)

    async def serve(self) -> None:
        """Do jobs until cancelled. Raises `Unusable` when no job can be done any more."""
        pause = RETRY
        while True:
            if not self._jobs:
                self._arrived = trio.Event()
                await self._arrived.wait()
            group = self._next_group()
            try:
                results = await trio.to_thread.run_sync(self._do, group, limiter=self._limiter)
            except Unusable:
                raise
            except Exception as error:
                if self._reject(group, error):
                    continue
                await trio.sleep(pause)
                pause = min(pause * 2, RETRY_MAX)
                continue
            pause, self.trouble = RETRY, ""
            for job, result in zip(group, results, strict=True):
                self._jobs.popleft()
                self._finish(job, result)

    def _next_group(self) -> list[_Job[Any]]:
        group: list[_Job[Any]] = []
        for job in self._jobs:
            if not job.shared:
                return group or [job]
            group.append(job)
            if len(group) == _GROUP:
                break
        return group

    def _do(self, group: list[_Job[Any]]) -> list[Any]:
        return self._repository.transact(lambda writer: [job.body(writer) for job in group])

    def _reject(self, group: list[_Job[Any]], error: Exception) -> bool:
        """Tell the caller of a job of its own; whether that was all there was to do."""
        job = group[0]
        if not job.shared and job.failed is not None:
            self._jobs.popleft()
            job.failed(error)
            return True
        for waiting in [other for other in self._jobs if other.failed is not None]:
            self._jobs.remove(waiting)
            if waiting.failed is not None:
                waiting.failed(error)
        reason = error.message if isinstance(error, EngramError) else f"{type(error).__name__}: {error}"
        if reason != self.trouble:
            self.trouble = reason
            log.error("sealing failed, it is tried again", reason=reason, exc_info=error)
            self.on_trouble(f"sealing failed, it is tried again: {reason}")
        return False

    def _finish(self, job: _Job[Any], result: Any) -> None:
        try:
            job.done(result)
        except Exception as error:
            log.exception("what follows a commit failed")
            self.on_trouble(f"what follows a commit failed: {type(error).__name__}: {error}")


def _ignore(_what: str) -> None:
    pass
