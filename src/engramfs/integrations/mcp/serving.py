"""One server over standard input and output, until the client closes them or a signal ends it."""

import os
import signal
import threading
from contextlib import closing

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from engramfs.client import Session
from engramfs.integrations.mcp import unreadable
from engramfs.integrations.mcp.server import MemoryServer
from engramfs.tools.offered import Offered

_PATIENCE = 2.0  # seconds to close a session when a signal ends the server
_LINGER = 1.0  # seconds for calls to end whose client has gone away


def serve(session: Session) -> None:
    """Serve `session`; one of our own is closed at the end."""
    with closing(session), closing(Offered(session)) as offered:
        anyio.run(_serve, session, offered)


async def _serve(session: Session, offered: Offered) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_on_signal, session)
        async with (
            stdio_server() as (lines, write_stream),
            unreadable.answered(lines, write_stream) as read_stream,
        ):
            await MemoryServer(offered).serve(read_stream, write_stream)
        _end_within(_LINGER)
        tasks.cancel_scope.cancel()


def _end_within(seconds: float) -> None:
    """End the process by then, whatever its threads still compute: nobody hears the answer.

    What they write is a transaction, or the daemon's to do, and so whole or not at all; a daemon ends the
    session.
    """
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()


async def _end_on_signal(session: Session) -> None:
    """Close the session and end at once: the thread that waits for input cannot be told to stop."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            with anyio.move_on_after(_PATIENCE):  # the daemon ends a session that is left
                await anyio.to_thread.run_sync(session.close, abandon_on_cancel=True)
            os._exit(128 + number)
