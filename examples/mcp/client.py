"""Start `engramfs mcp` and use it as an agent's runtime does: list, read, write, remember, find.

    python examples/mcp/client.py --agent coder --actor alice

Needs `pip install 'engramfs[mcp]'`.
"""

import asyncio
import os
import sys

from mcp import Client, StdioServerParameters


async def main(arguments: list[str]) -> None:
    command = ["-m", "engramfs", "mcp", *arguments]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    async with Client(server) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        print("offered:", ", ".join(tools))

        note = {"path": "notes.md", "mode": "overwrite", "content": "# Notes\n"}
        written = await client.call_tool("write_context", {"context": "user", "files": [note]})
        print("written:", written.structured_content)

        change = {"path": "notes.md", "mode": "append", "content": "…", "expected_sha256": "0" * 64}
        refused = await client.call_tool("write_context", {"context": "user", "files": [change]})
        print("refused:", refused.structured_content)

        added = await client.call_tool("memory_add", {"content": "Prefers tea.", "category": "preferences"})
        print("remembered:", added.structured_content)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
