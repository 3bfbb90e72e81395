"""Tells the kernel what it has to forget, from a small process of its own.

A notification waits for the lock of a directory or of a page. Whoever holds that is in a call which waits for
the worker's answer, and the wait cannot be killed. In a thread of the worker it would keep a worker that was
killed from ending, and so the next one, which has the answer, from opening the state. This process holds
nothing but the connection. It ends when the worker has, as soon as the call that it waits for is answered.

Messages are those of include/uapi/linux/fuse.h: fuse_out_header, fuse_notify_inval_inode_out and
fuse_notify_inval_entry_out.
"""

import contextlib
import os
import signal
import socket
import struct
from collections.abc import Iterable, Iterator

INVALIDATE_INODE, INVALIDATE_ENTRY = 2, 3
_HEADER = struct.Struct("<IiQ")  # its first field is the length of the message
_INODE = struct.Struct("<Qqq")
_ENTRY = struct.Struct("<QII")
_LENGTH = struct.Struct("<I")
_BATCH = 32 << 10  # bytes


def inode_message(inode: int, *, content: bool) -> bytes:
    """Forget the attributes of an inode, and its pages when the `content` changed."""
    return _message(INVALIDATE_INODE, _INODE.pack(inode, 0 if content else -1, 0))


def entry_message(parent: int, name: bytes) -> bytes:
    """Forget what a name in a directory stands for."""
    return _message(INVALIDATE_ENTRY, _ENTRY.pack(parent, len(name), 0) + name + b"\0")


def _message(code: int, body: bytes) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), code, 0) + body


class TellerEnded(Exception):
    """The process is gone, so nothing can be told any more."""


class Teller:
    """The worker's end. Made before there are threads and open files; one caller of `tell` at a time."""

    def __init__(self, connection: int) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _become_small(theirs.fileno(), connection)
                _serve(theirs, connection)
            finally:
                os._exit(0)
        theirs.close()

    def tell(self, messages: Iterable[bytes]) -> set[int]:
        """Have all of it told, and wait for that; the errno of each kind of failure. Raises `TellerEnded`."""
        failed: set[int] = set()
        for batch in _batches(messages):
            try:
                self._socket.send(batch)
                answer = self._socket.recv(1024)
            except OSError:
                answer = b""
            if not answer:
                raise TellerEnded
            failed.update(number for (number,) in _LENGTH.iter_unpack(answer[_LENGTH.size :]))
        return failed

    def close(self) -> None:
        self._socket.close()


def _batches(messages: Iterable[bytes]) -> Iterator[bytes]:
    batch = bytearray()
    for message in messages:
        if batch and len(batch) + len(message) > _BATCH:
            yield bytes(batch)
            batch.clear()
        batch += message
    if batch:
        yield bytes(batch)


def _become_small(*kept: int) -> None:
    """Let go of everything that is the worker's, and let only the worker's end be the end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 2 and descriptor not in kept:
            with contextlib.suppress(OSError):  # the one that the list was read with
                os.close(descriptor)


def _serve(asked: socket.socket, connection: int) -> None:
    while batch := asked.recv(2 * _BATCH):
        failed: set[int] = set()
        start = 0
        while start < len(batch):
            (length,) = _LENGTH.unpack_from(batch, start)
            try:
                os.write(connection, batch[start : start + length])
            except OSError as error:
                failed.add(error.errno or 0)
            start += length
        with contextlib.suppress(OSError):  # nobody waits for it any more
            asked.send(b"".join(map(_LENGTH.pack, [len(failed), *failed])))
