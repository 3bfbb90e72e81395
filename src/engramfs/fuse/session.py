"""From a descriptor of /dev/fuse to a served filesystem, and back.

pyfuse3 keeps one session in a process, in module globals; this class is the only one that touches them.
"""

import os

import pyfuse3

from engramfs.fuse import readable
from engramfs.fuse.notifier import Notifier
from engramfs.fuse.operations import Operations
from engramfs.vfs.filesystem import Filesystem


class FuseSession:
    """One connection. Make the `Notifier` first: the filesystem takes it as its invalidator."""

    def __init__(self, filesystem: Filesystem, notifier: Notifier, descriptor: int) -> None:
        """Serve what is mounted on `descriptor`. Raises `RuntimeError` when libfuse refuses it."""
        self._notifier = notifier
        readable.install()
        pyfuse3.init(Operations(filesystem), f"/dev/fd/{descriptor}", set())
        os.set_blocking(descriptor, False)

    async def serve(self) -> None:
        """Answer requests until the mount is gone everywhere, or `stop`."""
        await readable.serve()

    def stop(self) -> None:
        """Let `serve` return. The mount stays; whoever made it takes it down."""
        pyfuse3.terminate()
        self._notifier.stop()
