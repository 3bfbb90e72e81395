"""`engramfs mcp` as a process, and the SDK's own client at its standard input and output."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from mcp import Client, StdioServerParameters

Result = TypeVar("Result")

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


class Refused(Exception):
    """A tool's error: `code`, and all that its structured content says."""

    def __init__(self, text: str, document: dict[str, Any]) -> None:
        super().__init__(text)
        self.text = text
        self.code = document.get("code")
        self.document = document


class Agent:
    """Uses the server as an agent's runtime does."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name: str, **arguments: Any) -> Any:
        """What a tool answers: its document, or its text. Raises `Refused` for an error of the tool."""
        result = await self.client.call_tool(name, arguments)
        text = "".join(getattr(part, "text", "") for part in result.content)
        if result.is_error:
            raise Refused(text, result.structured_content or {})
        return result.structured_content if result.structured_content is not None else text

    async def resources(self) -> dict[str, str]:
        """The address of each resource by its name."""
        found: dict[str, str] = {}
        cursor = None
        while True:
            page = await self.client.list_resources(cursor=cursor)
            found |= {str(each.uri): each.name for each in page.resources}
            cursor = page.next_cursor
            if cursor is None:
                return found


@asynccontextmanager
async def connected(environment: dict[str, str], *arguments: str, **how: Any) -> AsyncIterator[Agent]:
    """An agent of a server that was started for it; the server is gone at the end."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "engramfs", "mcp", *arguments], env=environment
    )
    async with Client(server, **how) as client:
        yield Agent(client)


def run(agent: Callable[[Agent], Awaitable[Result]], environment: dict[str, str], *arguments: str) -> Result:
    """What `agent` makes of a server of its own, within a minute."""

    async def use() -> Result:
        async with asyncio.timeout(60), connected(environment, *arguments) as ready:
            return await agent(ready)

    return asyncio.run(use())
