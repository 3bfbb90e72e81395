"""What an agent without a shell pays: a write over the Model Context Protocol, and the server's memory."""

import asyncio
import os
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from tests.bench.daemon import Daemon, memory
from tests.bench.figures import Figure, Target
from tests.harness.mcp_client import Agent, connected

_WRITES, _SEARCHES = 200, 40
_CONTENT = ("x" * 63 + "\n") * 64  # 4 KiB


def tools(directory: str) -> Iterator[Figure]:
    """Against a daemon, as a sandbox's tools have it; and without one, under the store lock."""
    with Daemon(f"{directory}/tools") as daemon:
        taken, used = asyncio.run(_measured(daemon.environment))
    yield Figure(
        name="write_context of a 4 KiB file over stdio",
        unit="ms",
        ours=median(taken) * 1e3,
        target=Target(15),
        note=f"a version each, through the daemon; of {_WRITES}, the shortest {min(taken) * 1e3:.1f}, "
        f"the longest {max(taken) * 1e3:.1f}",
    )
    yield Figure(
        name="memory of the MCP server, without meaning",
        unit="MiB",
        ours=used["VmRSS"] / (1 << 20),
        target=Target(120),
        note=f"{used['RssAnon'] >> 20} MiB of it its own, after a search by keywords",
    )
    taken, _ = asyncio.run(_measured(daemon.environment))
    yield Figure(
        name="the same write without a daemon", unit="ms", ours=median(taken) * 1e3, target=Target(15)
    )
    yield Figure(
        name="memory of the MCP server, with meaning",
        unit="MiB",
        ours=asyncio.run(_with_meaning(daemon.environment, f"{directory}/tools-meaning.toml")) / (1 << 20),
        target=Target(300),
        note=f"after {_SEARCHES} searches by words and meaning",
    )


async def _with_meaning(environment: dict[str, str], configuration: str) -> int:
    """Bytes that the server has in memory, the model included."""
    with open(configuration, "w", encoding="utf-8"):
        pass  # the usual one searches by meaning
    environment = environment | {"ENGRAMFS_CONFIG": configuration}
    async with connected(environment, "--actor", "alice") as agent:
        added = await agent.call("memory_add", content="The harbour office opens at nine.")
        await agent.call("memory_task_wait", taskId=added["taskId"])
        for number in range(_SEARCHES):
            answer = await agent.call("memory_search", search=f"opening hours of the harbour, {number}")
            assert "semantic" in answer["records"][0]["matched"]
        return memory(_server())["VmRSS"]


async def _measured(environment: dict[str, str]) -> tuple[list[float], dict[str, int]]:
    """Seconds of each write, and the memory of the server after them."""
    async with connected(environment, "--agent", "bench", "--actor", "alice") as agent:
        await agent.call("memory_add", content="The harbour office opens at nine.")
        await agent.call("memory_search", search="harbour")
        taken = [await _write(agent, number) for number in range(_WRITES)]
        return taken, memory(_server())


async def _write(agent: Agent, number: int) -> float:
    path = f"{time.time_ns()}-{number}.md"
    file: dict[str, Any] = {"path": path, "mode": "create", "content": f"{number}\n{_CONTENT}"[:4096]}
    begun = time.perf_counter()
    await agent.call("write_context", context="state", files=[file])
    return time.perf_counter() - begun


def _server() -> int:
    """The pid of the server."""
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children", encoding="ascii") as listed:
            for child in map(int, listed.read().split()):
                with open(f"/proc/{child}/cmdline", "rb") as command:
                    if b"\0mcp\0" in command.read():
                        return child
    raise RuntimeError("the server is not there")
