"""One server over standard input and output, until the client closes them or a signal ends it."""

import os
import signal
from contextlib import closing

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from engramfs.client import Session
from engramfs.integrations.mcp.server import MemoryServer
from engramfs.tools.offered import Offered

_PATIENCE = 2.0  # seconds to close a session when a signal ends the server


def serve(session: Session) -> None:
    """Serve `session`; one of our own is closed at the end."""
    with closing(session), closing(Offered(session)) as offered:
        anyio.run(_serve, session, offered)


async def _serve(session: Session, offered: Offered) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_on_signal, session)
        async with stdio_server() as (read_stream, write_stream):
            await MemoryServer(offered).serve(read_stream, write_stream)
        tasks.cancel_scope.cancel()


async def _end_on_signal(session: Session) -> None:
    """Close the session and end at once: the thread that waits for input cannot be told to stop."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            with anyio.move_on_after(_PATIENCE):  # the daemon ends a session that is left
                await anyio.to_thread.run_sync(session.close, abandon_on_cancel=True)
            os._exit(128 + number)
