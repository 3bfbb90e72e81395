"""From a write to a record: what happens to the content of a file that a view has open.

A small content (at most `INLINE` bytes) is read from the spool, digested and recorded in one step. A
larger one waits twice, for its digest and for becoming a blob; until then its bytes are frozen, so that
what is recorded is the file as it was at one moment. Races of the larger kind, and what is done:

 1. Another view records the same node while we wait: `_settle` compares the head only after the waiting,
    in the step that records.
 2. The file loses its last name while we wait: nothing is recorded, the bytes stay readable.
 3. A second close of the same file waits for the first to thaw it, and finds it clean.
"""

import contextlib
import hashlib
import time
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
import trio

from engramfs.errors import EngramError, FileTooLarge, QuotaExceeded, Stale, StorageError
from engramfs.model.entry import EMPTY_DIGEST, Entry
from engramfs.model.names import printable
from engramfs.model.operation import Update
from engramfs.model.quantities import format_size
from engramfs.storage import blobs
from engramfs.storage.journal import INLINE
from engramfs.storage.protocol import Writer
from engramfs.vfs.cut import Cut
from engramfs.vfs.held_still import HeldStill
from engramfs.vfs.node import Node
from engramfs.vfs.open_file import OpenFile
from engramfs.vfs.refused_contents import RefusedContents
from engramfs.vfs.refused_secrets import RefusedSecrets
from engramfs.vfs.spool import Spool

if TYPE_CHECKING:
    from engramfs.vfs.writable_view import WritableView

replace = msgspec.structs.replace


class Recorder:
    """The content half of one writable view."""

    def __init__(self, view: "WritableView", secrets: RefusedSecrets) -> None:
        self._view = view
        self._store = self.store = view.store
        self._refused = RefusedContents(view)
        self._secrets = secrets
        self._failed = view.store.resources.failed_closes

    # Changing bytes

    async def write(self, file: OpenFile, offset: int, data: bytes, *, at_end: bool = False) -> int:
        """Raises `FileTooLarge` and `QuotaExceeded`; then nothing was written.

        With `at_end` the data goes to the end. The kernel may not know yet where that is, so `offset` says
        only where it believes it to be.
        """
        if file.frozen is not None:
            await file.thawed()
        self._view.check_open()
        spool = self._spool(file)
        if at_end and offset != spool.size:
            if spool.is_repeated(offset, data):
                return len(data)
            offset = spool.size
            self._view.pages_are_void(file.node.id)
        self._check_growth(spool, max(spool.size, offset + len(data)))
        self._store.dirty.add(spool)
        try:
            written = spool.write(offset, data)
        except OSError:
            if not spool.dirty:
                self._store.dirty.discard(spool)
            raise
        spool.mtime = self._later(file.node.entry.mtime, spool.mtime)
        return written

    def empty(self, file: OpenFile) -> None:
        """O_TRUNC: the file is empty from now on, for this view."""
        spool = file.fresh()
        if spool is None:
            self.discard(file)
            if file.node.entry.digest == EMPTY_DIGEST:
                return
            spool = self._new_spool(file, ())
        spool.truncate(0)
        self._store.dirty.add(spool)
        spool.mtime = self._later(file.node.entry.mtime, spool.mtime)

    async def truncate(self, node: Node, size: int) -> None:
        """truncate(2) and ftruncate(2). Without an open descriptor there is no close to wait for."""
        file = self._view.files.get(node.id)
        opened = file is not None and file.writers > 0
        file = file or self._view.file(node.id)
        if file.frozen is not None:
            await file.thawed()
        if size == 0:
            self.empty(file)
        else:
            spool = self._spool(file)
            self._check_growth(spool, size)
            spool.truncate(size)
            self._store.dirty.add(spool)
            spool.mtime = self._later(node.entry.mtime, spool.mtime)
        if not opened:
            await self.record(file)
            self.let_go(file)

    def _later(self, *earlier: int) -> int:
        """Now; but after every mtime that the file had, so that each content has a time of its own."""
        now = time.time_ns()
        return now + 1 if now in earlier else now

    def _check_growth(self, spool: Spool, size: int) -> None:
        limits = self._store.store.limits
        if size > limits.max_file_size:
            self._store.remember(f"refused a write: a file may have {format_size(limits.max_file_size)}")
            raise FileTooLarge
        if size > spool.size and self._store.space_taken + size - spool.size > limits.quota:
            self._store.remember(f"refused a write: the quota of {format_size(limits.quota)} is used up")
            raise QuotaExceeded

    def _spool(self, file: OpenFile) -> Spool:
        """The spool to write to, filled with what the file holds now."""
        spool = file.fresh()
        if spool is not None:
            return spool
        self.discard(file)
        return self._new_spool(file, self._recorded(file.node))

    def _recorded(self, node: Node) -> Iterator[bytes]:
        """The content as of the last close, in parts."""
        size = node.entry.size
        return (self._view.read_recorded(node, start, blobs.PART) for start in range(0, size, blobs.PART))

    def _new_spool(self, file: OpenFile, pieces: Iterable[bytes]) -> Spool:
        entry, inode = file.node.entry, self._view.inode(file.node.id)
        directory = self._store.resources.spool_path
        file.spool = Spool(directory, inode, entry.digest, entry.size, pieces)
        return file.spool

    def discard(self, file: OpenFile) -> None:
        """Give the spool up, recorded or not."""
        if file.spool is not None:
            self._store.dirty.discard(file.spool)
            file.close()

    # Recording

    async def record(self, file: OpenFile) -> None:
        """A descriptor was closed or synced: record the content, unless nothing changed.

        Raises `Stale` where the store refuses to overwrite what another author recorded since, and
        `HoldsSecret` where it refuses what looks like one.
        """
        while file.frozen is not None:
            await file.thawed()
        self._view.check_open()
        try:
            await self._record_closed(file)
        except (StorageError, OSError) as error:  # above all: the disk is full
            self._failed.add(self, file, error)
            raise
        except EngramError:
            self._failed.discard(file)
            raise
        self._failed.discard(file)

    async def _record_closed(self, file: OpenFile) -> None:
        node, spool = file.node, file.spool
        if spool is None or not spool.dirty:
            if not node.born and node.places and not file.is_refused:
                self._record(node.entry, node.content)
            return
        if not node.places:
            self._keep_removed(file, spool)
            return
        spool = self._merge_append(file, spool) or spool
        if spool.size <= INLINE:
            content = spool.read(0, spool.size)
            digest = hashlib.sha256(content).digest()
            self._secrets.check(file, spool, digest, content)
            self._settle(file, spool, digest, content)
        else:
            await self._record_large(file, spool)

    async def record_last(self, file: OpenFile) -> None:
        """The last descriptor goes: an mmap may have written after its close. Raises as `record` does."""
        try:
            try:
                await self.record(file)
            finally:
                self._secrets.take_back(file)
        except HeldStill:  # it is not gone yet: this is asked for again
            file.writers += 1
            raise

    async def record_late(self, file: OpenFile) -> None:
        """A close that could not be recorded is made up for. Raises as `record` does."""
        try:
            await self.record(file)
        finally:
            if file.writers <= 0:
                self._secrets.take_back(file)
        self.let_go(file)

    def is_due(self, file: OpenFile) -> bool:
        """Whether what failed to be recorded at its close is still as it was then."""
        is_open = self._view.files.get(file.node.id) is file
        return is_open and (not file.node.born if file.spool is None else file.spool.is_closed)

    def let_go(self, file: OpenFile) -> None:
        """Of a file that nobody has open for writing, and that is recorded, nothing is kept."""
        if file.writers <= 0 and self._view.files.get(file.node.id) is file:
            self.discard(file)
            del self._view.files[file.node.id]

    def _keep_removed(self, file: OpenFile, spool: Spool) -> None:
        """The file has no name any more. Where another author took it, what was written waits."""
        node = file.node
        remover = self._store.removed_by.pop(node.id, self._view.number)
        if remover == self._view.number or not spool.size:
            return
        content = b"".join(spool.pieces())
        digest = hashlib.sha256(content).digest()
        self._secrets.check(file, spool, digest, content)
        path = printable(self._store.tree.path_of(node))
        said = f"{path} was closed after another author removed or replaced it"
        self._refused.offer(file, spool, digest, content, said)

    async def _record_large(self, file: OpenFile, spool: Spool) -> None:
        node, writer = file.node, self._store.resources.writer
        file.frozen = trio.Event()
        held = contextlib.ExitStack()
        try:
            while True:
                digest = await trio.to_thread.run_sync(spool.digest)
                held.enter_context(self._store.resources.in_use.holding(digest))
                if digest != node.entry.digest:
                    await self._secrets.check_large(file, spool)
                    await writer.run(partial(_put_blob, digest=digest, spool=spool))
                self._view.check_open()
                if not node.places or file.spool is not spool:
                    return
                merged = self._merge_append(file, spool)
                if merged is None:
                    break
                spool = merged
            self._settle(file, spool, digest, None)
        finally:
            held.close()
            file.frozen.set()
            file.frozen = None
            if self._view.revoked:
                self.discard(file)

    def _merge_append(self, file: OpenFile, spool: Spool) -> Spool | None:
        """Put what was only added here after what another author added; the new spool, if that was so."""
        node = file.node
        if not spool.appended or spool.base_digest == node.entry.digest or spool.size <= spool.base_size:
            return None
        merged = self._new_spool(file, chain(self._recorded(node), spool.pieces(spool.base_size)))
        merged.dirty, merged.mtime = True, spool.mtime
        self._store.dirty.discard(spool)
        self._store.dirty.add(merged)
        spool.close()
        self._view.pages_are_void(node.id)
        return merged

    def _settle(self, file: OpenFile, spool: Spool, digest: bytes, content: bytes | None) -> None:
        """Record what was closed against the head of this moment."""
        node, entry = file.node, file.node.entry
        overwrites: Cut | None = None
        if digest == entry.digest:
            content = node.content
        elif spool.base_digest != entry.digest or (
            file.opened_digest != spool.base_digest and not spool.appended  # moved before the first write
        ):
            overwrites = self._overwritten(file, spool, digest, content)
        ctime = max(entry.ctime + 1, spool.mtime, time.time_ns())
        changed = replace(entry, size=spool.size, digest=digest, mtime=spool.mtime, ctime=ctime)
        self._record(changed, content, overwrites)
        spool.recorded(digest)
        file.opened_digest = digest
        file.is_refused = False
        self._store.dirty.discard(spool)

    def _overwritten(self, file: OpenFile, spool: Spool, digest: bytes, content: bytes | None) -> Cut | None:
        """The cut whose content a later close overwrites. Raises `Stale` where the store refuses that."""
        if self._store.batch is not None and self._store.batch.author != self._view.author:
            self._store.cut()
        if self._store.store.conflicts == "keep":
            return self._store.last_cut(file.node)
        path = printable(self._store.tree.path_of(file.node))
        said = f"refused to overwrite {path}, which another author changed"
        self._refused.offer(file, spool, digest, content, said, "refused")
        self._store.dirty.discard(spool)
        spool.refuse()
        raise Stale(f"{path} changed since it was opened")

    def _record(self, entry: Entry, content: bytes | None, overwrites: Cut | None = None) -> None:
        view = self._view
        self._store.record(
            view.number, view.author, Update(entry), content=content, closed=True, overwrites=overwrites
        )


def _put_blob(writer: Writer, digest: bytes, spool: Spool) -> None:
    """A transaction may run twice (when the map had to grow), so the pieces are read anew each time."""
    blobs.put(writer, digest, spool.pieces())
