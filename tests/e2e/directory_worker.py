"""A real FUSE worker that serves an ordinary directory: what the keeper's and the mounts' tests keep alive.

    python directory_worker.py DIRECTORY

It takes the descriptor `fuse` from its keeper, answers READY=1 once it serves, sends keep-alives when they
are asked for, and ends in order on SIGTERM. Each line that it receives on the control socket is answered
with its pid; `stop` stops it, and after `deaf` it reads no more requests, alive as it is otherwise.
"""

import errno
import os
import signal
import sys

import pyfuse3
import trio

from engramfs.daemon.handover import keep_alive, notify, received_descriptors, watchdog_interval


class DirectoryOperations(pyfuse3.Operations):
    """Inode numbers are indexes into the list of paths seen so far; handles are descriptors."""

    supports_dot_lookup = False

    def __init__(self, directory: str) -> None:
        super().__init__()
        self._paths = [b"", os.fsencode(directory)]

    def _entry(self, path: bytes) -> pyfuse3.EntryAttributes:
        try:
            found = os.lstat(path)
        except OSError as error:
            raise pyfuse3.FUSEError(error.errno or errno.EIO) from None
        if path not in self._paths:
            self._paths.append(path)
        entry = pyfuse3.EntryAttributes()
        entry.st_ino = pyfuse3.InodeT(self._paths.index(path))
        entry.st_mode = pyfuse3.ModeT(found.st_mode)
        entry.st_size, entry.st_nlink = found.st_size, found.st_nlink
        entry.attr_timeout = entry.entry_timeout = 3600
        return entry

    async def lookup(
        self, parent_inode: pyfuse3.InodeT, name: pyfuse3.FileNameT, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        return self._entry(os.path.join(self._paths[parent_inode], name))

    async def getattr(self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext) -> pyfuse3.EntryAttributes:
        return self._entry(self._paths[inode])

    async def statfs(self, ctx: pyfuse3.RequestContext) -> pyfuse3.StatvfsData:
        return pyfuse3.StatvfsData()

    async def opendir(self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext) -> pyfuse3.FileHandleT:
        return pyfuse3.FileHandleT(inode)

    async def readdir(self, fh: pyfuse3.FileHandleT, start_id: int, token: pyfuse3.ReaddirToken) -> None:
        names = sorted(os.listdir(self._paths[fh]))
        for index, name in enumerate(names[start_id:], start_id + 1):
            entry = self._entry(os.path.join(self._paths[fh], name))
            if not pyfuse3.readdir_reply(token, name, entry, index):
                return

    async def open(
        self, inode: pyfuse3.InodeT, flags: pyfuse3.FlagT, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.FileInfo:
        return pyfuse3.FileInfo(fh=pyfuse3.FileHandleT(os.open(self._paths[inode], flags & ~os.O_CREAT)))

    async def create(
        self,
        parent_inode: pyfuse3.InodeT,
        name: pyfuse3.FileNameT,
        mode: pyfuse3.ModeT,
        flags: pyfuse3.FlagT,
        ctx: pyfuse3.RequestContext,
    ) -> tuple[pyfuse3.FileInfo, pyfuse3.EntryAttributes]:
        path = os.path.join(self._paths[parent_inode], name)
        descriptor = os.open(path, flags | os.O_CREAT, mode)
        return pyfuse3.FileInfo(fh=pyfuse3.FileHandleT(descriptor)), self._entry(path)

    async def read(self, fh: pyfuse3.FileHandleT, off: int, size: int) -> bytes:
        return os.pread(fh, size, off)

    async def write(self, fh: pyfuse3.FileHandleT, off: int, buf: bytes) -> int:
        return os.pwrite(fh, buf, off)

    async def flush(self, fh: pyfuse3.FileHandleT) -> None:
        return

    async def release(self, fh: pyfuse3.FileHandleT) -> None:
        os.close(fh)


async def serve(control: int | None) -> None:
    hearing = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(end_on_sigterm, nursery.cancel_scope)
        nursery.start_soon(say_alive)
        if control is not None:
            listener = trio.socket.fromfd(control, trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
            nursery.start_soon(answer, listener, {b"stop": nursery.cancel_scope, b"deaf": hearing})
        notify("READY=1", f"STATUS=serving as {os.getpid()}")
        with hearing:
            await pyfuse3.main()
        await trio.sleep_forever()


async def end_on_sigterm(scope: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


async def say_alive() -> None:
    while (interval := watchdog_interval()) is not None:
        keep_alive()
        await trio.sleep(interval)


async def answer(listener: trio.socket.SocketType, ends: dict[bytes, trio.CancelScope]) -> None:
    while True:
        connection, _ = await listener.accept()
        with connection:
            said = await connection.recv(100)
            await connection.send(str(os.getpid()).encode())
            if said in ends:
                ends[said].cancel()


def main() -> None:
    descriptors = received_descriptors()
    pyfuse3.init(DirectoryOperations(sys.argv[1]), f"/dev/fd/{descriptors['fuse']}", set())
    trio.run(serve, descriptors.get("control"))


main()
