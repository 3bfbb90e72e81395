"""Requests of the kernel to calls of views, and their answers back.

A file handle is the inode number, two bits below it, writable and appending, and two above it, how often
bytes of the file had been lost when it was opened: there is no table of handles that could be lost. A
directory's has none of these bits; a listing is made when reading begins and its cookies outlive
insertions and removals.

Concurrency. Most handlers are one step. Those that may wait are shielded, since `readable.serve` cancels
the tasks of pyfuse3 when it re-enters the loop. The worker never touches its own mount.
"""

import bisect
import errno
import os
import stat
from collections.abc import Callable, Sequence

import pyfuse3
import trio

from engramfs.errors import EntryExists, NoEntry, Stale, StorageError
from engramfs.fuse import failures
from engramfs.fuse.guard import guarded
from engramfs.model.entry import NODE_MASK
from engramfs.model.names import MAX_PART
from engramfs.vfs.attributes import BLOCK, Attributes, Listed, SetAttributes
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.open_file import is_writing
from engramfs.vfs.view import View, check_same

_WRITES, _APPENDS, _BITS = 1, 2, 2  # the bits of a file handle below the inode number, and how many
_LOSSES = 62  # the first bit above it
_NO_LOSSES = (1 << _LOSSES) - 1
_DOT, _DOT_DOT = 1, 2  # cookies; those of names are larger


class Operations(pyfuse3.Operations):
    """The handlers that pyfuse3 calls."""

    supports_dot_lookup = False
    enable_writeback_cache = False
    enable_acl = False

    def __init__(
        self, filesystem: Filesystem, on_init: Callable[[], None], calling: Callable[[int], None]
    ) -> None:
        """`on_init` is called when libfuse handles INIT, `calling` with the caller of each call on a name."""
        super().__init__()
        self._on_init = on_init
        self._calling = calling
        self._filesystem = filesystem
        self._find = filesystem.find
        self._listings: dict[int, list[Listed]] = {}

    def init(self) -> None:
        """libfuse handles INIT: the kernel's, or our own when the connection is taken over."""
        self._on_init()

    # Names

    @guarded
    async def lookup(
        self, parent_inode: int, name: bytes, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        view, parent = self._find(parent_inode)
        try:
            return self._known(view.lookup(parent, name))
        except NoEntry:
            return _absent(view.missing_timeout)

    @guarded
    async def forget(self, inode_list: Sequence[tuple[int, int]]) -> None:
        for inode, count in inode_list:
            self._filesystem.forget(inode, count)

    @guarded
    async def create(
        self, parent_inode: int, name: bytes, mode: int, flags: int, ctx: pyfuse3.RequestContext
    ) -> tuple[pyfuse3.FileInfo, pyfuse3.EntryAttributes]:
        self._calling(ctx.pid)
        view, parent = self._find(parent_inode)
        try:
            attributes = view.create(parent, name, mode, write=is_writing(flags))
        except EntryExists:
            if flags & os.O_EXCL:
                raise
            return await self._open_existing(view, parent, name, flags)
        view.opened(attributes.inode & NODE_MASK)
        handle = _handle(attributes.inode, flags)
        return pyfuse3.FileInfo(fh=handle, keep_cache=True), self._known(attributes)

    async def _open_existing(
        self, view: View, parent: int, name: bytes, flags: int
    ) -> tuple[pyfuse3.FileInfo, pyfuse3.EntryAttributes]:
        """Another view made the name since the kernel looked. Raises `Stale`, to look again, if no file."""
        inode = view.lookup(parent, name).inode
        if not stat.S_ISREG(view.attributes(inode & NODE_MASK).mode):
            raise Stale
        opened = await self._open(view, inode, flags)
        return opened, self._known(view.attributes(inode & NODE_MASK))

    @guarded
    async def mknod(
        self, parent_inode: int, name: bytes, mode: int, rdev: int, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        self._calling(ctx.pid)
        view, parent = self._find(parent_inode)
        if stat.S_ISREG(mode) or not stat.S_IFMT(mode):
            return self._known(view.make_file(parent, name, mode))
        return self._known(view.make_special(parent, name))

    @guarded
    async def mkdir(
        self, parent_inode: int, name: bytes, mode: int, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        self._calling(ctx.pid)
        view, parent = self._find(parent_inode)
        return self._known(view.make_directory(parent, name, mode))

    @guarded
    async def symlink(
        self, parent_inode: int, name: bytes, target: bytes, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        self._calling(ctx.pid)
        view, parent = self._find(parent_inode)
        return self._known(view.make_symlink(parent, name, target))

    @guarded
    async def link(
        self, inode: int, new_parent_inode: int, new_name: bytes, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        self._calling(ctx.pid)
        view, node = self._find(inode)
        other, parent = self._find(new_parent_inode)
        check_same(view, other)
        return self._known(view.link(node, parent, new_name))

    @guarded
    async def unlink(self, parent_inode: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        self._calling(ctx.pid)
        view, parent = self._find(parent_inode)
        view.unlink(parent, name)

    @guarded
    async def rmdir(self, parent_inode: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        self._calling(ctx.pid)
        view, parent = self._find(parent_inode)
        view.remove_directory(parent, name)

    @guarded
    async def rename(
        self,
        parent_inode_old: int,
        name_old: bytes,
        parent_inode_new: int,
        name_new: bytes,
        flags: int,
        ctx: pyfuse3.RequestContext,
    ) -> None:
        self._calling(ctx.pid)
        view, parent = self._find(parent_inode_old)
        other, new_parent = self._find(parent_inode_new)
        check_same(view, other)
        view.rename(parent, name_old, new_parent, name_new, flags)

    @guarded
    async def readlink(self, inode: int, ctx: pyfuse3.RequestContext) -> bytes:
        view, node = self._find(inode)
        return view.read_link(node)

    # Attributes

    @guarded
    async def getattr(self, inode: int, ctx: pyfuse3.RequestContext) -> pyfuse3.EntryAttributes:
        view, node = self._find(inode)
        return _entry(view.attributes(node))

    @guarded
    async def setattr(
        self,
        inode: int,
        attr: pyfuse3.EntryAttributes,
        fields: pyfuse3.SetattrFields,
        fh: int | None,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        view, node = self._find(inode)
        wanted = SetAttributes(
            mode=attr.st_mode if fields.update_mode else None,
            uid=attr.st_uid if fields.update_uid else None,
            gid=attr.st_gid if fields.update_gid else None,
            size=attr.st_size if fields.update_size else None,
            atime=attr.st_atime_ns if fields.update_atime else None,
            mtime=attr.st_mtime_ns if fields.update_mtime else None,
        )
        if fh is not None and fields.update_size:
            self._find_kept(fh)
        with trio.CancelScope(shield=True):
            attributes = await view.set_attributes(node, wanted)
        return _entry(attributes)

    @guarded
    async def access(self, inode: int, mode: int, ctx: pyfuse3.RequestContext) -> bool:
        view, node = self._find(inode)
        view.check_access(node, mode)
        return True

    @guarded
    async def getxattr(self, inode: int, name: bytes, ctx: pyfuse3.RequestContext) -> bytes:
        if not name.startswith(b"user."):  # asked before every first write, for security.capability
            raise pyfuse3.FUSEError(errno.ENODATA)
        view, node = self._find(inode)
        return view.get_xattr(node, name)

    @guarded
    async def listxattr(self, inode: int, ctx: pyfuse3.RequestContext) -> list[bytes]:
        view, node = self._find(inode)
        return view.list_xattrs(node)

    @guarded
    async def setxattr(self, inode: int, name: bytes, value: bytes, ctx: pyfuse3.RequestContext) -> None:
        view, node = self._find(inode)
        view.set_xattr(node, name, value)

    @guarded
    async def removexattr(self, inode: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        self._calling(ctx.pid)
        view, node = self._find(inode)
        view.remove_xattr(node, name)

    @guarded
    async def statfs(self, ctx: pyfuse3.RequestContext) -> pyfuse3.StatvfsData:
        space = self._filesystem.space()  # pyfuse3 does not say which inode was asked about
        answer = pyfuse3.StatvfsData()
        answer.f_bsize = answer.f_frsize = BLOCK
        answer.f_blocks = space.total // BLOCK
        answer.f_bfree = answer.f_bavail = space.free // BLOCK
        answer.f_files = space.files + space.free_files
        answer.f_ffree = answer.f_favail = space.free_files
        answer.f_namemax = MAX_PART
        return answer

    # Content

    @guarded
    async def open(self, inode: int, flags: int, ctx: pyfuse3.RequestContext) -> pyfuse3.FileInfo:
        return await self._open(self._find(inode)[0], inode, flags)

    async def _open(self, view: View, inode: int, flags: int) -> pyfuse3.FileInfo:
        node, write, truncate = inode & NODE_MASK, is_writing(flags), bool(flags & os.O_TRUNC)
        if truncate and not write:  # then no close will record it
            with trio.CancelScope(shield=True):
                await view.set_attributes(node, SetAttributes(size=0))
            truncate = False
        elif truncate:
            with trio.CancelScope(shield=True):
                await view.thawed(node)
        opened = view.open(node, write=write, truncate=truncate)
        view.opened(node)
        return pyfuse3.FileInfo(
            fh=_handle(inode, flags, opened.losses),
            direct_io=opened.direct,
            keep_cache=opened.keep_cache,
        )

    def _find_handle(self, fh: int) -> tuple[View, int]:
        return self._find((fh & _NO_LOSSES) >> _BITS)

    def _find_kept(self, fh: int) -> tuple[View, int]:
        """Raises `StorageError` when what was written through the handle may be lost."""
        view, node = self._find_handle(fh)
        if view.is_lost(node, fh >> _LOSSES):
            raise StorageError(
                "what was written to an open file is lost; it has to be closed and written again"
            )
        return view, node

    @guarded
    async def read(self, fh: int, off: int, size: int) -> bytes:
        view, node = self._find_handle(fh)
        return view.read(node, off, size)

    @guarded
    async def write(self, fh: int, off: int, buf: bytes) -> int:
        view, node = self._find_kept(fh)
        with trio.CancelScope(shield=True):
            written = await view.write(node, off, buf, at_end=bool(fh & _APPENDS))
        return written

    @guarded
    async def flush(self, fh: int) -> None:
        if fh & _WRITES:
            view, node = self._find_kept(fh)
            with trio.CancelScope(shield=True):
                await view.flush(node)

    @guarded
    async def fsync(self, fh: int, datasync: bool) -> None:
        view, node = self._find_kept(fh)
        with trio.CancelScope(shield=True):
            await view.sync(node)

    @guarded
    async def release(self, fh: int) -> None:
        view, node = self._find_handle(fh)
        view.closed(node)
        if fh & _WRITES and not view.is_lost(node, fh >> _LOSSES):
            with trio.CancelScope(shield=True):
                await view.release(node)

    # Directories

    @guarded
    async def opendir(self, inode: int, ctx: pyfuse3.RequestContext) -> int:
        self._find(inode)
        return inode << _BITS

    @guarded
    async def readdir(self, fh: int, start_id: int, token: pyfuse3.ReaddirToken) -> None:
        inode = fh >> _BITS
        view, node = self._find(inode)
        listing = self._listings.get(inode) if start_id else None
        if listing is None:
            listing = self._listings[inode] = view.listing(node)
        if not _reply_dots(view, node, start_id, token):
            return
        for item in listing[bisect.bisect_right(listing, start_id, key=_cookie_of) :]:
            attributes = view.listed(node, item)
            if attributes is None:  # gone meanwhile: leaving it out is right, ENOENT would end the listing
                continue
            if not pyfuse3.readdir_reply(
                token, pyfuse3.FileNameT(item.name), _entry(attributes), item.cookie
            ):
                return
            self._filesystem.looked_up(attributes.inode)

    @guarded
    async def releasedir(self, fh: int) -> None:
        self._listings.pop(fh >> _BITS, None)

    @guarded
    async def fsyncdir(self, fh: int, datasync: bool) -> None:
        await self.fsync(fh, datasync)

    def failed(self, operation: str, error: StorageError, place: int, what: object = None) -> None:
        """Let `status` show it: `operation` failed for an inode or a handle, and perhaps a name in it."""
        inode = (place & _NO_LOSSES) >> _BITS if operation in failures.BY_HANDLE else place
        name = what if operation in failures.BY_NAME and isinstance(what, bytes) else b""
        failures.remember(self._filesystem, operation, inode, name, error)

    def _known(self, attributes: Attributes) -> pyfuse3.EntryAttributes:
        """An answer after which the kernel holds the inode once more."""
        self._filesystem.looked_up(attributes.inode)
        return _entry(attributes)


def _handle(inode: int, flags: int, losses: int = 0) -> pyfuse3.FileHandleT:
    """Of a file opened with `flags`. One that can be mapped never appends: its pages have a place."""
    writes = _WRITES if is_writing(flags) else 0
    appends = _APPENDS if flags & os.O_APPEND and flags & os.O_ACCMODE == os.O_WRONLY else 0
    return pyfuse3.FileHandleT(losses << _LOSSES | inode << _BITS | writes | appends)


def _entry(attributes: Attributes) -> pyfuse3.EntryAttributes:
    entry = pyfuse3.EntryAttributes()
    entry.st_ino = pyfuse3.InodeT(attributes.inode)
    entry.st_mode = pyfuse3.ModeT(attributes.mode)
    entry.st_nlink = attributes.links
    entry.st_size = attributes.size
    entry.st_blksize = BLOCK
    entry.st_blocks = attributes.blocks
    entry.st_uid = attributes.uid
    entry.st_gid = attributes.gid
    entry.st_atime_ns = attributes.atime
    entry.st_mtime_ns = attributes.mtime
    entry.st_ctime_ns = attributes.ctime
    entry.entry_timeout = attributes.timeout
    entry.attr_timeout = attributes.timeout
    return entry


def _absent(timeout: float) -> pyfuse3.EntryAttributes:
    """A negative entry: the kernel remembers that the name is missing. Making it invalidates that."""
    entry = pyfuse3.EntryAttributes()
    entry.st_ino = pyfuse3.InodeT(0)
    entry.entry_timeout = timeout
    return entry


def _reply_dots(view: View, node: int, start_id: int, token: pyfuse3.ReaddirToken) -> bool:
    """List `.` and `..`, which the kernel does not count as looked up; whether there was room."""
    for cookie, name, target in ((_DOT, b".", node), (_DOT_DOT, b"..", view.parent(node))):
        if start_id < cookie:
            attributes = view.attributes(target)
            if not pyfuse3.readdir_reply(token, pyfuse3.FileNameT(name), _entry(attributes), cookie):
                return False
    return True


def _cookie_of(item: Listed) -> int:
    return item.cookie
