"""An agent with tools and an agent with a shell: the same bytes, the same versions."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

from ..harness.daemon import Daemon, eventually
from ..harness.mcp_client import HELLO, Agent, Refused, connected, run
from .session import Session


def environment(daemon: Daemon) -> dict[str, str]:
    return daemon.environment | {"PYTHONWARNINGS": "error"}


def serve(session: Session, use: Callable[[Agent], Awaitable[Any]]) -> Any:
    """Runs an agent of tools in the session that the test has open."""
    return run(use, environment(session.daemon), "--session", session.id)


def test_tools_and_a_mount_of_one_session_show_the_same_bytes_and_versions(session: Session) -> None:
    session.attach()
    inside, state = session.daemon.inside, f"{session.root}/mnt/memory/state"

    async def use(agent: Agent) -> None:
        inside.call("write", f"{state}/a.md", b"from the shell\n")
        read = await agent.call("read_context_file", context="state", path="a.md")
        assert read["content"] == "from the shell\n"
        change = {
            "path": "a.md",
            "mode": "append",
            "content": "from the tool\n",
            "expected_sha256": read["sha256"],
        }
        written = await agent.call("write_context", context="state", files=[change])
        assert inside.run("cat", f"{state}/a.md").out == "from the shell\nfrom the tool\n"
        with pytest.raises(Refused, match="stale"):
            await agent.call("write_context", context="state", files=[change])
        inside.call("write", f"{state}/a.md", b"over it\n")
        with pytest.raises(Refused, match="stale"):
            await agent.call(
                "write_context",
                context="state",
                files=[change | {"expected_sha256": written["files"][0]["sha256"]}],
            )
        await agent.call("memory", command="create", path="/memories/b.md", file_text="remembered")
        assert inside.call("read", f"{session.user}/b.md") == b"remembered"

    serve(session, use)
    log = session.daemon.log(f"memory/{session.agent}/state")
    assert [each["via"] for each in log] == ["fs", "tool", "fs"]
    assert {each["author"]["session"] for each in log} == {session.id}


def test_a_switch_is_followed_and_the_end_of_the_session_too(session: Session) -> None:
    async def use(agent: Agent) -> None:
        await agent.call("memory", command="create", path="/memories/mine.md", file_text="x")
        await asyncio.to_thread(session.switch, session.other)
        assert "mine.md" not in await agent.call("memory", command="view", path="/memories")
        with pytest.raises(Refused, match=r"not_found: there is no context"):
            await agent.call("read_context_file", context=f"memories/{session.actor}", path="mine.md")
        await asyncio.to_thread(session.daemon.ok, "session", "close", session.id)
        with pytest.raises(Refused, match="there is no session"):
            await agent.call("memory", command="view", path="/memories")

    serve(session, use)


def test_a_switch_is_told_and_nothing_of_the_old_actor_after_it(session: Session) -> None:
    mine, last = "engramfs:///memories/user/mine.md", "engramfs:///memories/user/last.md"
    arguments = environment(session.daemon), "--session", session.id
    old = environment(session.daemon), "--agent", session.agent, "--actor", session.actor

    def create(path: str) -> dict[str, Any]:
        return {"context": "user", "files": [{"path": path, "mode": "create", "content": "x"}]}

    async def use() -> None:
        async with (
            asyncio.timeout(60),
            connected(*arguments) as agent,
            connected(*old) as of_old,
            agent.client.listen(
                resources_list_changed=True, prompts_list_changed=True, resource_subscriptions=[mine, last]
            ) as events,
        ):
            await asyncio.to_thread(session.switch, session.other)
            told = {await anext(events)}
            while PromptsListChanged() not in told:
                told.add(await anext(events))
            assert told == {ResourcesListChanged(), PromptsListChanged()}
            await of_old.call("write_context", **create("mine.md"))
            await agent.call("write_context", **create("last.md"))
            assert await anext(events) == ResourceUpdated(last)

    asyncio.run(use())


def test_tools_that_a_session_gets_with_another_daemon_are_told(tmp_path: Path, daemon: Daemon) -> None:
    nothing = '[agents.reader]\nscoping.memory = "none"\nmemory = {}\n'
    daemon.configure(nothing)
    daemon.up(agent="reader")

    async def use() -> None:
        async with (
            asyncio.timeout(60),
            connected(environment(daemon), "--agent", "reader") as agent,
            agent.client.listen(tools_list_changed=True) as events,
        ):
            assert await agent.tools() == []
            await asyncio.to_thread(daemon.ok, "down")
            daemon.configure(nothing.replace("none", "agent"))
            await asyncio.to_thread(daemon.ok, "up", "--root", daemon.places[0].root, "--agent", "reader")
            (up,) = daemon.client.call("session.list")
            await agent.resources()
            assert await anext(events) == ToolsListChanged()
            assert "write_context" in await agent.tools()
            await asyncio.to_thread(close_others, up["id"])
            await asyncio.sleep(1)  # in which the server looks at its session twice
            assert [each["id"] for each in daemon.client.call("session.list")] == [up["id"]]

    def close_others(kept: str) -> None:
        for each in daemon.client.call("session.list"):
            if each["id"] != kept:
                daemon.ok("session", "close", each["id"])

    asyncio.run(use())


def test_a_server_of_its_own_session_lives_through_kills_and_restarts_and_closes_it(
    tmp_path: Path, daemon: Daemon
) -> None:
    daemon.up(actor="first")

    async def use() -> None:
        async with asyncio.timeout(60), connected(environment(daemon), "--actor", "alice") as agent:
            for number in range(4):
                files = [{"path": f"{number}.md", "mode": "create", "content": "x"}]
                assert (await agent.call("write_context", context="user", files=files))["changed"]
                if number == 0:
                    daemon.kill_worker()
                    await asyncio.to_thread(lambda: daemon.worker)
                elif number == 1:
                    await asyncio.to_thread(daemon.ok, "down")
                elif number == 2:
                    await asyncio.to_thread(daemon.up, actor="first")
            sessions = daemon.client.call("session.list")
            assert {each["actor"] for each in sessions} == {"first", "alice"}

    asyncio.run(use())
    assert [each["actor"] for each in daemon.client.call("session.list")] == ["first"]
    assert [each["via"] for each in daemon.log("memories/alice")] == ["seed", "tool", "tool", "tool", "tool"]


def test_a_session_ends_with_its_server_however_that_ends(daemon: Daemon) -> None:
    daemon.up(actor="first")

    def actors() -> set[str]:
        return {each["actor"] for each in daemon.client.call("session.list")}

    def started(actor: str) -> subprocess.Popen[bytes]:
        server = subprocess.Popen(
            [sys.executable, "-m", "engramfs", "mcp", "--actor", actor],
            env=environment(daemon),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(HELLO).encode() + b"\n")
        server.stdin.flush()
        assert b"serverInfo" in server.stdout.readline()
        return server

    with started("terminated") as terminated, started("killed") as killed, started("later") as later:
        terminated.terminate()
        assert terminated.wait(15) == 128 + signal.SIGTERM
        eventually(lambda: actors() == {"first", "killed", "later"})
        killed.kill()
        eventually(lambda: actors() == {"first", "later"})
        daemon.kill_worker()
        assert actors() == {"first", "later"}
        with started("attached") as attached:
            (session,) = [each for each in daemon.client.call("session.list") if each["actor"] == "attached"]
            daemon.inside.call("os.makedirs", "/mnt/attached")
            daemon.ok("attach", session["id"], "--root", "/mnt/attached")
            attached.kill()
        later.kill()
        eventually(lambda: "later" not in actors())
        assert "attached" in actors()  # a sandbox uses it


def test_an_agent_finds_what_it_wrote_and_its_mount_and_the_log_have_the_same(session: Session) -> None:
    session.attach()
    daemon = session.daemon

    async def use(agent: Agent) -> None:
        text = "Deploys happen on Tuesdays.\n"
        files = [{"mode": "create", "path": "notes.md", "content": text}]
        written = await agent.call("write_context", context="user", files=files, message="first")
        (listed,) = (await agent.call("list_context_files", context="user"))["contexts"]
        digests = {each["path"]: each["sha256"] for each in listed["files"]}
        assert digests["notes.md"] == written["files"][0]["sha256"]
        assert (await agent.call("read_context_file", context="user", path="notes.md"))["content"] == text
        assert daemon.inside.run("cat", f"{session.user}/notes.md").out == text

        added = await agent.call("memory_add", content="The cat is called Xiaohei.", category="home")
        waited = await agent.call("memory_task_wait", taskId=added["taskId"])
        assert waited["status"] == "done"
        for question in ("Xiaohei", "猫叫什么名字", "what is the name of the pet"):
            (found,) = (await agent.call("memory_search", search=question, limit=1))["records"]
            assert found["id"] == added["id"]
        record = daemon.inside.run("cat", f"{session.user}/records/home/{added['id']}.md").out
        assert record.endswith("---\nThe cat is called Xiaohei.\n")

    serve(session, use)
    log = daemon.log(f"memories/{session.actor}")
    paths = [[change["path"] for change in version["changes"]][-1:] for version in log]
    assert [version["via"] for version in log] == ["seed", "tool", "tool"]
    assert paths[1] == ["notes.md"]
    assert paths[2][0].startswith("records/home/")
    assert {version["author"]["session"] for version in log[1:]} == {session.id}


def test_two_actors_with_tools_never_find_what_the_other_wrote(session: Session) -> None:
    daemon, secret = session.daemon, "oolong in the morning"
    others = daemon.json("session", "open", "--actor", session.other)["id"]

    async def mine(agent: Agent) -> None:
        added = await agent.call("memory_add", content=f"She drinks {secret}.")
        await agent.call("memory_task_wait", taskId=added["taskId"])
        assert len((await agent.call("memory_search", search=secret))["records"]) == 1

    async def theirs(agent: Agent) -> None:
        added = await agent.call("memory_add", content="He drinks coffee in the morning.")
        await agent.call("memory_task_wait", taskId=added["taskId"])
        for question in (secret, "oolong", "早上喝什么", "what do they drink"):
            for found in (await agent.call("memory_search", search=question, limit=100))["records"]:
                assert found["id"] == added["id"]
        assert secret not in str(await agent.resources())
        assert secret not in str((await agent.client.get_prompt("engramfs")).messages)

    serve(session, mine)
    run(theirs, environment(daemon), "--session", others)
    daemon.ok("session", "close", others)
