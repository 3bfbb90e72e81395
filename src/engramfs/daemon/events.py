"""What the keeper waits for, in its one thread: descriptors that become readable, signals, moments.

Standard library only.
"""

import contextlib
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator
from typing import Protocol


class HasFileno(Protocol):
    """What a selector can wait for."""

    def fileno(self) -> int: ...


class Events:
    """Each descriptor has one callback. They run in `wait`, and nowhere else."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def watch(self, what: int | HasFileno, then: Callable[[], object]) -> None:
        """Call `then` whenever `what` is readable."""
        self._selector.register(what, selectors.EVENT_READ, then)

    def forget(self, *watched: int | HasFileno) -> None:
        """Watch these no longer, as far as they are."""
        for what in watched:
            with contextlib.suppress(KeyError):
                self._selector.unregister(what)

    def wait(self, until: float | None) -> None:
        """Handle what has happened by the moment `until` (monotonic seconds), or wait for the next event."""
        limit = None if until is None else max(0.0, until - time.monotonic())
        for key, _ in self._selector.select(limit):
            key.data()

    @contextlib.contextmanager
    def signals(self, numbers: tuple[signal.Signals, ...], then: Callable[[], object]) -> Iterator[None]:
        """Call `then` when one of these signals came; after the context nothing is waited for any more."""
        came, wake = socket.socketpair()
        with came, wake, self._selector:
            for end in (came, wake):
                end.setblocking(False)
            signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
            for number in numbers:
                signal.signal(number, lambda *_: None)
            self.watch(came, lambda: (came.recv(64), then()))
            try:
                yield
            finally:
                signal.set_wakeup_fd(-1)
