"""Taking a FUSE connection over from a worker that died, or that makes room for a newer one.

The kernel sends INIT once for a connection, and libfuse will not serve without it. So the session begins
on a socket pair with an INIT message of our own in it. While libfuse handles that message it calls
`Operations.init`, and there the real descriptor takes the socket's place. Not a moment later: once the
session loop waits on the socket, epoll forgets it when the socket goes, and the loop sleeps for ever. The
answer to INIT then goes to the kernel under an id that it never gave, and is ignored.

Then the kernel is told to ask again for every request that the dead worker had taken and not answered
(FUSE_NOTIFY_RESEND, Linux 6.9). Messages are those of include/uapi/linux/fuse.h.
"""

import os
import socket
import struct

_INIT = 26
_NOTIFY_RESEND = 7
_NO_REQUEST = 1 << 62  # an id that the kernel never gives
_MAX_READAHEAD = 131072
_FLAGS = 0x73FFFFFB  # what a current kernel offers in its INIT
_HEADER = struct.Struct("<IIQQIIII")
_NOTIFICATION = struct.Struct("<IiQ")


def synthetic_init() -> bytes:
    """The INIT request that the kernel sends only once (struct fuse_in_header, fuse_init_in)."""
    body = struct.pack("<IIIII", 7, 39, _MAX_READAHEAD, _FLAGS, 0) + bytes(44)
    return _HEADER.pack(_HEADER.size + len(body), _INIT, _NO_REQUEST, 0, 0, 0, 0, 0) + body


class Takeover:
    """One descriptor number, first of a socket, then of the connection."""

    def __init__(self, connection: int) -> None:
        self._connection = connection
        ours, self._peer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.descriptor = ours.detach()
        self._peer.send(synthetic_init())

    def complete(self) -> None:
        """From within `Operations.init`: put the connection in place, and have unanswered requests sent."""
        os.dup2(self._connection, self.descriptor, inheritable=False)
        os.set_blocking(self.descriptor, False)
        self._peer.close()
        os.write(self.descriptor, _NOTIFICATION.pack(_NOTIFICATION.size, _NOTIFY_RESEND, 0))
