"""The places of a client: a state directory, and the daemon that serves it while one runs.

Concurrency. May be used from several threads; they take turns.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Self

from engramfs.client.searching import Searching
from engramfs.client.state import State
from engramfs.daemon.paths import locate

if TYPE_CHECKING:
    from engramfs.storage.protocol import Reader

_PATIENCE = 2.0  # seconds for another program that writes without a daemon to have done so


class Connection:
    """The state directory and daemon at these places, or at the usual ones; see `engramfs.daemon.paths`.

    `note` is told what a person should know: that a daemon which died left something, say.
    """

    def __init__(
        self,
        state: str | None = None,
        run: str | None = None,
        config: str | None = None,
        *,
        note: Callable[[str], None] = lambda _what: None,
    ) -> None:
        self.state = State(locate(state, run, config), note, _PATIENCE)
        self.lock = threading.RLock()
        self.searching = Searching(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self.searching.close()
        with self.lock:
            self.state.close()

    def is_running(self) -> bool:
        """Whether a daemon answers."""
        return self.state.control.is_running()

    @contextlib.contextmanager
    def reading(self, *, sealed: bool = True) -> "Iterator[Reader]":
        """A read transaction; with `sealed`, after everything that was acknowledged is in the log.

        Raises `NotFound` before anything was stored.
        """
        with self.lock:
            if sealed:
                self.state.seal()
            with self.state.read_transaction() as reader:
                yield reader
