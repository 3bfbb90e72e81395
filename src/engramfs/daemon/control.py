"""The server of the control socket: JSON-RPC 2.0 over a unix socket, for root and the owner only.

Concurrency. Each connection is a task of its own and serves one request at a time, in order. A handler
that fails answers with an error and ends nothing. A handler whose client has gone learns of it from
`notify`, which raises `trio.BrokenResourceError`; nothing that such a handler did is undone by us.
"""

import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping

import msgspec
import trio

from engramfs import telemetry
from engramfs.daemon import rpc
from engramfs.errors import Corrupt, EngramError, Refused, StorageError


class Peer(msgspec.Struct, frozen=True):
    """Who connected, as the kernel says (SO_PEERCRED)."""

    pid: int
    uid: int
    gid: int


Notify = Callable[[dict[str, object]], Awaitable[None]]
Handler = Callable[[dict[str, object], Peer, Notify], Awaitable[object]]


async def serve(
    listener_socket: socket.socket,
    methods: Mapping[str, Handler],
    task_status: trio.TaskStatus[object] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `methods` on a listening socket until cancelled. The socket is closed then, not unlinked."""
    log = telemetry.logger("control")
    listener_socket.setblocking(False)
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(listener_socket))

    async def accept(stream: trio.SocketStream) -> None:
        try:
            async with stream:
                await _Connection(stream, methods).serve()
        except trio.BrokenResourceError:
            log.info("client went away")
        except Exception:
            log.exception("connection failed")

    await trio.serve_listeners(accept, [listener], task_status=task_status)


class _Connection:
    def __init__(self, stream: trio.SocketStream, methods: Mapping[str, Handler]) -> None:
        self._stream = stream
        self._methods = methods
        self._peer = _peer_of(stream)
        self._received = bytearray()
        self._log = telemetry.logger("control", pid=self._peer.pid, uid=self._peer.uid)

    async def serve(self) -> None:
        """Answer until the client goes away. Raises `trio.BrokenResourceError` when it does so early."""
        if self._is_allowed():
            await self._serve_requests()
        else:
            await self._refuse()

    def _is_allowed(self) -> bool:
        return self._peer.uid in (0, os.geteuid())

    async def _refuse(self) -> None:
        self._log.warning("refused a connection")
        error = Refused(
            f"uid {self._peer.uid} may not control this daemon; run engramfs as its owner or as root"
        )
        await self._stream.send_all(rpc.failure(None, error))

    async def _serve_requests(self) -> None:
        while True:
            try:
                line = await self._next_line()
            except rpc.InvalidMessage as error:
                # The rest of an overlong line cannot be told from the next request.
                await self._stream.send_all(rpc.failure(None, error))
                return
            if line is None:
                return
            if line.strip():
                answer = await self._answer(line)
                if answer is not None:
                    await self._stream.send_all(answer)

    async def _next_line(self) -> bytes | None:
        """The next line, or None at the end; what follows the last line end was cut short and is dropped."""
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if searched > rpc.MAX_REQUEST:
                raise rpc.InvalidMessage(f"a request is over {rpc.MAX_REQUEST} bytes; send less at once")
            received = await self._stream.receive_some(65536)
            if not received:
                return None
            self._received += received
        if end > rpc.MAX_REQUEST:
            raise rpc.InvalidMessage(f"a request is over {rpc.MAX_REQUEST} bytes; send less at once")
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    async def _answer(self, line: bytes) -> bytes | None:
        try:
            request = rpc.decode_request(line)
        except rpc.InvalidMessage as error:
            return rpc.failure(error.identifier, error)
        try:
            value = await self._call(request)
            return rpc.result(request.identifier, value) if request.identifier is not None else None
        except trio.BrokenResourceError:
            raise
        except Exception as error:
            self._record(request, error)
            return rpc.failure(request.identifier, error) if request.identifier is not None else None

    async def _call(self, request: rpc.Request) -> object:
        handler = self._methods.get(request.method)
        if handler is None:
            raise rpc.InvalidMessage(f"there is no method {request.method}", rpc.METHOD_NOT_FOUND)

        async def notify(params: dict[str, object]) -> None:
            await self._stream.send_all(rpc.notification("progress", {"id": request.identifier, **params}))

        return await handler(request.params, self._peer, notify)

    def _record(self, request: rpc.Request, error: Exception) -> None:
        """What was asked for may be redacted one day, and a log file keeps what it has: no message."""
        reason = rpc.sole_error(error)
        if isinstance(reason, StorageError) and not isinstance(reason, Corrupt):
            self._log.error("request failed", method=request.method, code=reason.code, reason=reason.message)
        elif isinstance(reason, EngramError):
            self._log.info("request failed", method=request.method, code=reason.code)
        else:
            self._log.error("request failed", method=request.method, exc_info=error)


def _peer_of(stream: trio.SocketStream) -> Peer:
    credentials = struct.Struct("3i")
    raw = stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size)
    return Peer(*credentials.unpack(raw))
