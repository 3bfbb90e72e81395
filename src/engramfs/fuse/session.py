"""From a descriptor of /dev/fuse to a served filesystem, and back.

pyfuse3 keeps one session in a process, in module globals; this class is the only one that touches them.
"""

import os
from collections.abc import Callable

import pyfuse3

from engramfs.fuse import readable
from engramfs.fuse.answered import Answered
from engramfs.fuse.notifier import Notifier
from engramfs.fuse.operations import Operations
from engramfs.fuse.takeover import Takeover
from engramfs.vfs.filesystem import Filesystem


class FuseSession:
    """One connection. Make the `Notifier` first: the filesystem takes it as its invalidator."""

    def __init__(
        self,
        filesystem: Filesystem,
        notifier: Notifier,
        descriptor: int,
        *,
        take_over: bool = False,
        answered: Answered | None = None,
    ) -> None:
        """Serve what is mounted on `descriptor`, or with `take_over` go on serving it.

        Raises `RuntimeError` when libfuse refuses it.
        """
        self._notifier = notifier
        self._on_init: Callable[[], None] = notifier.begin
        if take_over:
            takeover = Takeover(descriptor)
            descriptor = takeover.descriptor
            self._on_init = self._complete(takeover)
        readable.install(_marking(filesystem, answered))
        pyfuse3.init(
            Operations(filesystem, self._on_init, _calling(filesystem, answered)),
            f"/dev/fd/{descriptor}",
            set(),
        )
        if not take_over:
            os.set_blocking(descriptor, False)

    def _complete(self, takeover: Takeover) -> Callable[[], None]:
        def complete() -> None:
            takeover.complete()
            self._notifier.begin()

        return complete

    async def serve(self) -> None:
        """Answer requests until the mount is gone everywhere, or `stop`."""
        await readable.serve()

    def stop(self) -> None:
        """Let `serve` return. The mount stays; whoever made it takes it down."""
        pyfuse3.terminate()
        self._notifier.stop()


def _marking(filesystem: Filesystem, answered: Answered | None) -> Callable[[], None]:
    """What is done before each wait for a request: all operations before it have been answered."""
    if answered is None:
        return lambda: None
    journal, mark, last = filesystem.resources.journal, answered.mark, -1

    def idle() -> None:
        nonlocal last
        if journal.position != last:
            last = journal.position
            mark(last)

    return idle


def _calling(filesystem: Filesystem, answered: Answered | None) -> Callable[[int], None]:
    """What is done before each call on a name: its caller is noted where the next worker reads it."""
    expected = filesystem.resources.repeated.calling
    if answered is None:
        return expected
    note = answered.calling

    def calling(caller: int) -> None:
        expected(caller)
        note(caller)

    return calling
