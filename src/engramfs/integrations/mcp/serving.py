"""One server over standard input and output, until the client closes them."""

from contextlib import closing

import anyio
from mcp.server.stdio import stdio_server

from engramfs.client import Session
from engramfs.integrations.mcp.server import MemoryServer
from engramfs.tools.offered import Offered


def serve(session: Session) -> None:
    """Serve `session`; one of our own is closed at the end."""
    with closing(session), closing(Offered(session)) as offered:
        anyio.run(_serve, offered)


async def _serve(offered: Offered) -> None:
    async with stdio_server() as (read_stream, write_stream):
        await MemoryServer(offered).serve(read_stream, write_stream)
