"""What a keeper hears of its worker: the datagrams that reach its `NOTIFY_SOCKET`. See `handover`.

Standard library only: the keeper stays small.
"""

import os
import socket
import struct
from typing import NamedTuple

_CREDENTIALS = struct.Struct("=iII")  # pid, uid, gid
_DESCRIPTOR = struct.Struct("=i")
_MOST_DESCRIPTORS = 4


class Message(NamedTuple):
    """One datagram: its lines, and the descriptors that came along, which the receiver closes."""

    lines: dict[str, str]
    descriptors: tuple[int, ...] = ()


class Notifications:
    """A datagram socket in the abstract namespace, which leaves nothing on disk.

    Anyone may send to it, so the kernel's word about the sender decides what is heard.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.setblocking(False)
        self._socket.bind("")
        self.address = "@" + self._socket.getsockname()[1:].decode()

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self, sender: int) -> Message | None:
        """The next message, an empty one when it is not of process `sender`; None when nothing came.

        Never blocks.
        """
        room = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(_MOST_DESCRIPTORS * _DESCRIPTOR.size)
        try:
            data, control, _, _ = self._socket.recvmsg(8192, room, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return None
        pid, descriptors = _from_control(control)
        if pid != sender:
            for descriptor in descriptors:
                os.close(descriptor)
            return Message({})
        lines = data.decode(errors="replace").splitlines()
        return Message(dict(line.split("=", 1) for line in lines if "=" in line), tuple(descriptors))

    def close(self) -> None:
        self._socket.close()


def _from_control(control: list[tuple[int, int, bytes]]) -> tuple[int | None, list[int]]:
    """Who sent a message, and the descriptors that came with it."""
    pid = None
    descriptors: list[int] = []
    for level, kind, value in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            pid = _CREDENTIALS.unpack(value)[0]
        elif level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors += [number for (number,) in _DESCRIPTOR.iter_unpack(value)]
    return pid, descriptors
