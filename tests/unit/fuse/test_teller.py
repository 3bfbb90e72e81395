"""Who tells the kernel what to forget: all of it, in order, in a process that ends with the worker."""

import errno
import os
import signal
import socket
import struct
from collections.abc import Iterator

import pytest

from engramfs.fuse.teller import (
    INVALIDATE_ENTRY,
    INVALIDATE_INODE,
    Teller,
    TellerEnded,
    entry_message,
    inode_message,
)


@pytest.fixture
def kernel() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection: ours is what the kernel would get."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield ours, theirs


def test_every_message_is_one_write_with_its_own_length(kernel: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = kernel
    teller = Teller(theirs.fileno())
    messages = [entry_message(7, b"name"), inode_message(8, content=True), inode_message(9, content=False)]
    assert teller.tell(messages) == set()
    told = [ours.recv(1000) for _ in messages]
    assert told == messages
    assert [struct.unpack_from("<Ii", message) for message in told] == [
        (len(told[0]), INVALIDATE_ENTRY),
        (len(told[1]), INVALIDATE_INODE),
        (len(told[2]), INVALIDATE_INODE),
    ]
    teller.close()
    assert os.waitpid(teller.pid, 0) == (teller.pid, 0)


def test_more_than_one_batch_is_told_in_order(kernel: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = kernel
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    teller = Teller(theirs.fileno())
    for start in range(0, 3000, 100):
        assert teller.tell(entry_message(number, b"x" * 250) for number in range(start, start + 100)) == set()
        assert [struct.unpack_from("<Q", ours.recv(1000), 16)[0] for _ in range(100)] == list(
            range(start, start + 100)
        )
    teller.close()
    os.waitpid(teller.pid, 0)


def test_what_the_kernel_answers_is_said_and_an_end_too(kernel: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = kernel
    teller = Teller(theirs.fileno())
    ours.close()
    assert teller.tell([inode_message(1, content=True)]) == {errno.EPIPE}
    os.kill(teller.pid, signal.SIGKILL)
    os.waitpid(teller.pid, 0)
    with pytest.raises(TellerEnded):
        teller.tell([inode_message(1, content=True)])
    teller.close()
