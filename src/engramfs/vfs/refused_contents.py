"""What was written does not become the file: it waits as a pending version, and its writer is told so."""

import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from engramfs.history import refusal
from engramfs.history.refusal import Refused
from engramfs.vfs.fork import Fork
from engramfs.vfs.open_file import OpenFile
from engramfs.vfs.spool import Spool

if TYPE_CHECKING:
    from engramfs.vfs.writable_view import WritableView


class RefusedContents:
    """Those of one writable view."""

    def __init__(self, view: "WritableView") -> None:
        self._view = view
        self._store = view.store

    def offer(
        self, file: OpenFile, spool: Spool, digest: bytes, content: bytes | None, said: str, *flags: str
    ) -> None:
        """Let what is in `spool` wait for a person. `content` is None when it is a blob already.

        `said` tells what happened, in `.versions/status` and to who decides.
        """
        node, now = file.node, time.time_ns()
        store = self._store.below if isinstance(self._store, Fork) else self._store
        store.cut()  # what stands in the way is in the log before this
        places = [place for place in node.places if not place.view] or ([node.former] if node.former else [])
        entry = msgspec.structs.replace(
            node.entry, size=spool.size, digest=digest, mtime=spool.mtime, ctime=now, links=len(places)
        )
        refused = Refused(
            store=store.store.id,
            author=self._view.author,
            names=[(place.parent, place.name) for place in places],
            path=self._store.tree.path_of(node),
            entry=entry,
            content=content,
            opened=file.opened_digest,
            time=now,
            message=said,
            flags=tuple(sorted(("concurrent", *flags))),
        )
        held = contextlib.ExitStack()
        held.enter_context(self._store.resources.in_use.holding(digest))
        written = trio.Event()
        self._store.offers.append(written)
        self._store.resources.writer.submit(
            partial(refusal.offer, refused=refused), partial(self._offered, said, written, held)
        )

    def _offered(self, said: str, written: trio.Event, held: contextlib.ExitStack, number: int) -> None:
        held.close()
        written.set()
        self._store.offers.remove(written)
        if number:
            self._store.remember(f"{said}; what was written waits as pending {number}")
