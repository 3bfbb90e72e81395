"""The head of a store, for one session to read and write.

Names (create, rename, unlink …) are checked here and recorded at once. Content goes to a spool, and is
recorded when a descriptor is closed or synced: see `recording`.

Concurrency. A method that is not a coroutine is one step. `write`, `set_attributes`, `flush`, `sync` and
`release` may wait, for a large content alone; `OpenFile.frozen` keeps that content still meanwhile.
"""

import stat
import time

import msgspec

from engramfs.errors import (
    Archived,
    EntryExists,
    InvalidArgument,
    IsDirectory,
    NameTooLong,
    NoAttribute,
    NoEntry,
    NotDirectory,
    NotEmpty,
    NotPermitted,
    Stale,
    TooManyLinks,
)
from engramfs.model.access import Access
from engramfs.model.author import Author
from engramfs.model.entry import EMPTY_DIGEST, ROOT_NODE, Entry, Kind
from engramfs.model.names import MAX_PART, MAX_PATH, printable
from engramfs.model.operation import Link, Operation, Rename, Unlink, Update
from engramfs.vfs import extended_attributes
from engramfs.vfs.attributes import Attributes, Opened, SetAttributes
from engramfs.vfs.live_store import LiveStore
from engramfs.vfs.live_view import LiveView
from engramfs.vfs.losing import say_what_is_lost
from engramfs.vfs.message_attribute import MessageAttribute
from engramfs.vfs.node import Node
from engramfs.vfs.open_file import OpenFile
from engramfs.vfs.recording import Recorder
from engramfs.vfs.refused_secrets import RefusedSecrets
from engramfs.vfs.renaming import EXCHANGE, check_flags, check_rename
from engramfs.vfs.repeated import DoneBefore
from engramfs.vfs.spool import Spool
from engramfs.vfs.view import MARKS, VERSIONS

_MAX_LINKS = 65000
replace = msgspec.structs.replace


class WritableView(LiveView):
    """A `read_write` attachment. It belongs to one session, which is how a version knows its author."""

    access = Access.READ_WRITE

    def __init__(self, number: int, uid: int, gid: int, store: LiveStore, author: Author) -> None:
        super().__init__(number, uid, gid, store)
        self.author = author
        self.files: dict[int, OpenFile] = {}
        self.revoked = False
        self._secrets = RefusedSecrets(self)
        self._recorder = Recorder(self, self._secrets)
        self._message = MessageAttribute(store, number, author, self._secrets)
        self._unrecorded = store.resources.unrecorded
        self._before = DoneBefore(store.resources.repeated, store.tree, number)

    # Showing

    def show(self, node: Node) -> Attributes:
        shown = super().show(node)
        file = self.files.get(node.id)
        spool = file.fresh() if file is not None else None
        if spool is None or not spool.dirty:
            return shown
        return replace(
            shown,
            size=spool.size,
            blocks=spool.blocks(),
            mtime=spool.mtime,
            ctime=max(shown.ctime, spool.mtime),
            atime=node.entry.atime or spool.mtime,
        )

    def read(self, node: int, offset: int, size: int) -> bytes:
        file = self.files.get(node)
        spool = file.fresh() if file is not None else None
        if spool is not None:
            return spool.read(offset, size)
        return super().read(node, offset, size)

    def check_open(self) -> None:
        """Raises `Stale` once the session has ended or its actor was switched."""
        if self.revoked:
            raise Stale

    def marks(self, node: int) -> dict[bytes, bytes]:
        session = self.author.session
        found = super().marks(node) | ({MARKS + b"session": session.encode()} if session else {})
        return found | self._message.marks(node)

    def check_writable(self) -> None:
        self.check_open()
        if self.store.store.archived:
            raise Archived(f"store {self.store.store.name} is archived")

    # Names

    def create(self, parent: int, name: bytes, mode: int, *, write: bool = True) -> Attributes:
        """A new file, opened; with `write` it enters the log when it is closed, else now."""
        if not write:
            return self.make_file(parent, name, mode)
        node = self._make(parent, name, Kind.FILE, mode, closed=False)
        self._opened(node).created_as = node.places
        return self.show(node)

    def make_file(self, parent: int, name: bytes, mode: int) -> Attributes:
        return self.show(self._make(parent, name, Kind.FILE, mode, closed=True))

    def make_directory(self, parent: int, name: bytes, mode: int) -> Attributes:
        if self.node(parent).entry.mode & stat.S_ISGID:
            mode |= stat.S_ISGID
        return self.show(self._make(parent, name, Kind.DIRECTORY, mode, closed=True))

    def make_symlink(self, parent: int, name: bytes, target: bytes) -> Attributes:
        return self.show(self._make(parent, name, Kind.SYMLINK, 0o777, closed=True, target=target))

    def make_special(self, parent: int, name: bytes) -> Attributes:
        self._free_name(parent, name)
        raise NotPermitted

    def _make(
        self, parent: int, name: bytes, kind: Kind, mode: int, *, closed: bool, target: bytes = b""
    ) -> Node:
        made = self._before.linked(parent, name)
        if made is not None and made.entry.kind is kind:
            return made
        self._free_name(parent, name)
        self._secrets.check_target(parent, name, target)
        now = time.time_ns()
        identifier = self.tree.ids.take()
        entry = Entry(
            node=identifier,
            kind=kind,
            mode=mode & 0o7777,
            size=len(target),
            mtime=now,
            ctime=now,
            digest=EMPTY_DIGEST if kind is Kind.FILE else b"",
            target=target,
            origin=identifier,
        )
        self._record(Link(parent, name, entry), closed=closed)
        return self.tree.nodes[identifier]

    def _free_name(self, parent: int, name: bytes) -> None:
        self.check_writable()
        directory = self._living_directory(parent)
        self._check_name(parent, name)
        if self.tree.find(directory, name, self.number) is not None:
            raise EntryExists
        self._secrets.check_name(parent, name)

    def _living_directory(self, identifier: int) -> Node:
        node = self.node(identifier)
        if not node.is_directory:
            raise NotDirectory
        if not node.places:
            raise NoEntry
        return node

    def _check_name(self, parent: int, name: bytes) -> None:
        if len(name) > MAX_PART or len(self.tree.path(parent, name)) > MAX_PATH:
            raise NameTooLong
        if name == VERSIONS and parent == ROOT_NODE:
            raise NotPermitted

    def link(self, node: int, parent: int, name: bytes) -> Attributes:
        known = self.node(node)
        if self._before.linked(parent, name) is known:
            return self.show(known)
        self._free_name(parent, name)
        if known.is_directory:
            raise NotPermitted
        if not known.places:
            raise NoEntry
        if known.links_in(self.number) >= _MAX_LINKS:
            raise TooManyLinks
        entry = replace(known.entry, ctime=time.time_ns())
        self._record(Link(parent, name, entry), closed=known.born)
        return self.show(known)

    def unlink(self, parent: int, name: bytes) -> None:
        self.check_writable()
        if self._before.unlinked(parent, name):
            return
        self._check_name(parent, name)
        node = self.find(parent, name)
        if node.is_directory:
            raise IsDirectory
        self._record(Unlink(parent, name, time.time_ns()))
        node.entry = replace(node.entry, ctime=time.time_ns())

    def remove_directory(self, parent: int, name: bytes) -> None:
        self.check_writable()
        if self._before.unlinked(parent, name):
            return
        self._check_name(parent, name)
        node = self.find(parent, name)
        if not node.is_directory:
            raise NotDirectory
        if not self.tree.is_empty(node, self.number):
            raise NotEmpty
        self._record(Unlink(parent, name, time.time_ns()))

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int) -> None:
        self.check_writable()
        check_flags(flags)
        if self._before.renamed(parent, name, new_parent, new_name):
            return
        self._check_name(parent, name)
        self._check_name(new_parent, new_name)
        moved = self.find(parent, name)
        source, target = self.node(parent), self._living_directory(new_parent)
        replaced = self.tree.find(target, new_name, self.number)
        check_rename(self.tree, self.number, moved, source, target, replaced, flags)
        if replaced is moved:
            return
        if replaced is None:
            self._secrets.check_name(new_parent, new_name)
        exchange = bool(flags & EXCHANGE)
        entry = replace(moved.entry, ctime=time.time_ns())
        if not exchange and replaced is not None and replaced.entry.kind is moved.entry.kind is Kind.FILE:
            entry = replace(entry, origin=replaced.entry.origin)
        self._record(Rename(moved.id, parent, name, new_parent, new_name, exchange, entry))

    def _record(self, operation: Operation, *, closed: bool = False) -> None:
        self.store.record(self.number, self.author, operation, closed=closed)

    # Attributes

    async def set_attributes(self, node: int, wanted: SetAttributes) -> Attributes:
        self.check_writable()
        known = self.node(node)
        if (wanted.uid not in (None, self.uid)) or (wanted.gid not in (None, self.gid)):
            raise NotPermitted
        if wanted.size is not None:
            if known.entry.kind is not Kind.FILE:
                raise IsDirectory if known.is_directory else InvalidArgument
            await self._recorder.truncate(known, wanted.size)
        if wanted.mode is not None or wanted.mtime is not None or wanted.atime is not None:
            self._set_entry_attributes(known, wanted)
        return self.show(known)

    def _set_entry_attributes(self, node: Node, wanted: SetAttributes) -> None:
        entry = node.entry
        file = self.files.get(node.id)
        if wanted.mtime is not None and file is not None and file.spool is not None and file.spool.dirty:
            file.spool.mtime = wanted.mtime
        changed = replace(
            entry,
            mode=entry.mode if wanted.mode is None else wanted.mode & 0o7777,
            mtime=entry.mtime if wanted.mtime is None else wanted.mtime,
            atime=entry.atime if wanted.atime is None else wanted.atime,
            ctime=time.time_ns(),
        )
        self._set_entry(node, changed)

    def _set_entry(self, node: Node, entry: Entry) -> None:
        """Record attributes; of a file without a name only its open descriptors know."""
        if node.places:
            self._record(Update(entry))
        else:
            node.entry = entry

    def set_xattr(self, node: int, name: bytes, value: bytes) -> None:
        self.check_writable()
        if self._message.is_named(node, name):
            self._message.set(value)
            return
        extended_attributes.check_name(name)
        known = self.node(node)
        self._secrets.check_attribute(known, name, value)
        self._set_entry(known, extended_attributes.added(known.entry, name, value))

    def remove_xattr(self, node: int, name: bytes) -> None:
        self.check_writable()
        if self._message.is_named(node, name):
            self._message.remove(done_before=self._before.noted())
            return
        extended_attributes.check_name(name)
        known = self.node(node)
        try:
            changed = extended_attributes.removed(known.entry, name)
        except NoAttribute:
            if self._before.updated(node):
                return
            raise
        self._set_entry(known, changed)

    # Content

    def open(self, node: int, *, write: bool, truncate: bool) -> Opened:
        known = self.node(node)
        if known.is_directory:
            raise IsDirectory
        if write or truncate:
            self.check_writable()
        if write:
            self._unrecorded.check_can_be_opened(self.inode(node))
            self._opened(known)
        if truncate:
            self._recorder.empty(self.files.get(node) or self._opened(known))
        losses = self._unrecorded.losses(self.inode(node))
        return Opened(keep_cache=self._pages_are_good(node) and not truncate, losses=losses)

    def _opened(self, node: Node) -> OpenFile:
        file = self.files.get(node.id)
        if file is None:
            file = self.files[node.id] = OpenFile(node)
        elif file.spool is None or not file.spool.dirty:
            file.opened_digest = node.entry.digest
        file.writers += 1
        return file

    def file(self, node: int) -> OpenFile:
        """What is open for writing; made anew for a descriptor that an earlier worker had open."""
        file = self.files.get(node)
        if file is None:
            file = self.files[node] = OpenFile(self.node(node))
        return file

    def lose(self, node: int) -> None:
        """What an earlier worker had of an open file is gone: whoever has it open is told.

        Raises `NoEntry` when it was removed, and nobody has it open.
        """
        path = printable(self.tree.path_of(self.node(node)))
        self._unrecorded.lose(self.inode(node))
        self.pages_are_void(node)
        self.store.remember(
            f"what session {self.author.session} had written to {path} and not closed is lost"
        )

    def is_lost(self, node: int, losses: int) -> bool:
        return losses < self._unrecorded.losses(self.inode(node))

    def pages_are_void(self, node: int) -> None:
        """The content is not what the kernel makes of what was written here."""
        self.stale.add(node)
        self.store.resources.invalidator.inode_changed(self.inode(node), content=True)

    def adopt(self, node: int, spool: Spool) -> None:
        """Go on with a spool of an earlier worker."""
        file = self.file(node)
        file.spool = spool
        self.store.dirty.add(spool)
        if spool.is_closed:
            self.store.resources.failed_closes.adopt(self._recorder, file)

    async def thawed(self, node: int) -> None:
        """Before `open` with `truncate`: a content that is being recorded stays whole until it is."""
        file = self.files.get(node)
        if file is not None:
            await file.thawed()

    async def write(self, node: int, offset: int, data: bytes, *, at_end: bool = False) -> int:
        """With `at_end` (O_APPEND) the end counts, not `offset`: the kernel may not know of it yet."""
        self.check_writable()
        return await self._recorder.write(self.file(node), offset, data, at_end=at_end)

    def _to_record(self, node: int) -> OpenFile | None:
        """What is open for writing; a new file has to be recorded even if it was an earlier worker's."""
        known = self.tree.nodes.get(node)
        return self.file(node) if known is not None and not known.born else self.files.get(node)

    async def flush(self, node: int) -> None:
        file = self._to_record(node)
        if file is not None:
            await self._recorder.record(file)
            if self.store.resources.settings.sync_on_close:
                await self.store.resources.journal_synced()

    async def sync(self, node: int) -> None:
        file = self._to_record(node)
        if file is not None:
            await self._recorder.record(file)
        await self.store.durable()

    async def release(self, node: int) -> None:
        file = self.files.get(node)
        if file is None:
            return
        file.writers -= 1
        if file.writers > 0:
            return
        await self._recorder.record_last(file)
        self._recorder.let_go(file)

    def close(self) -> None:
        """The session ends: open files are given up, and its transient names with it."""
        say_what_is_lost(self)
        for file in self.files.values():
            if file.frozen is None:  # else a thread is reading it, and it goes when that has ended
                self._recorder.discard(file)
            if not file.node.born:
                self._drop_names(file.node)
        self.revoked = True
        self.files.clear()
        self._unrecorded.end(self.number)
        self.tree.drop_scratch(self.number)
        self._message.forget()
        super().close()

    def _drop_names(self, node: Node) -> None:
        """Of a file that was created and never closed: nobody will close it now."""
        for place in node.places:
            if not place.view:
                self._record(Unlink(place.parent, place.name, time.time_ns()))
