"""The log of a client as an engine, for what only reads and is kept: search, say.

The log behind it may be closed and opened again between two transactions, as it is when the program writes
without a daemon.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from engramfs.errors import Refused
from engramfs.storage.protocol import Reader, Usage, Writer

if TYPE_CHECKING:
    from engramfs.client.connection import Connection


class ReadingEngine:
    """Fulfils `engramfs.storage.protocol.Engine`; only `reading` does anything."""

    inline_reads = True

    def __init__(self, client: "Connection") -> None:
        self._client = client

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        with self._client.reading(sealed=False) as reader:
            yield reader

    def writing(self) -> AbstractContextManager[Writer]:
        raise _refused()

    def usage(self) -> Usage:
        raise _refused()

    def check(self) -> list[str]:
        raise _refused()

    def copy(self, directory: str) -> None:  # noqa: ARG002
        raise _refused()

    def drop_buffers(self) -> None:
        raise _refused()

    def close(self) -> None:
        """The client's log is the client's to close."""


def _refused() -> Refused:
    return Refused("this program reads the log and does nothing else with it")
