"""A tool's call on an `ask` store: it waits and says so, and is written when a person approves."""

from collections.abc import Iterator
from typing import Any

import pytest

import engramfs
from engramfs.client import Session
from engramfs.errors import Refused, Stale
from engramfs.model.file_edit import Append, Create, Edit, Overwrite, Rename
from engramfs.tools.call import Failure, call
from engramfs.tools.offered import Offered

from ..harness.daemon import Daemon


@pytest.fixture
def asking(daemon: Daemon) -> Iterator[engramfs.Client]:
    """A daemon whose agents have to ask for what they write to `state`."""
    daemon.configure(
        """
        [agents.clerk]
        memory = { state = "ask" }

        [agents.night]
        memory = { state = "ask" }
        unattended = true
        """
    )
    daemon.up(agent="clerk", actor="alice")
    with engramfs.Client(daemon.state, daemon.run_directory) as client:
        yield client


def test_a_call_waits_says_its_number_and_becomes_a_version_when_it_is_approved(
    daemon: Daemon, asking: engramfs.Client
) -> None:
    place, store = daemon.places[-1], "memory/clerk/state"
    offered = Offered(asking.session(place.session))
    tools = {tool.name: tool for tool in offered.tools()}

    def write(*files: dict[str, Any]) -> Any:
        return call(tools["write_context"], {"context": "state", "files": list(files)})

    failure = write(
        {"mode": "create", "path": "d/a.md", "content": "one\n"},
        {"mode": "create", "path": "b.md", "content": "b"},
    )
    assert isinstance(failure, Failure)
    assert (failure.code, failure.details) == ("pending", {"pending": 1, "store": store})
    assert "nothing is written yet" in failure.message
    assert asking.store(store).version == 0

    assert place.read("d/a.md") == b"one\n"  # the session itself sees what it wrote, as in a mount
    read = call(tools["read_context_file"], {"context": "state", "path": "d/a.md"})
    assert isinstance(read, dict)
    assert read["content"] == "one\n"
    change = {"mode": "append", "path": "d/a.md", "content": "two\n", "expected_sha256": read["sha256"]}
    assert write(change).details["pending"] == 2
    assert write(change).code == "stale"
    place.write("d/a.md", b"three\n", "ab")
    assert place.read("d/a.md") == b"one\ntwo\nthree\n"

    assert [each["number"] for each in asking.pending(store)] == [1, 2, 3]
    assert asking.approve(store, 1, "well done")["state"] == "approved"
    daemon.ok("pending", "approve", store, "2")
    assert [file.path for file in asking.files(store)] == ["b.md", "d/a.md"]
    assert asking.read(store, "d/a.md").content == b"one\ntwo\n"
    assert place.read("d/a.md") == b"one\ntwo\nthree\n"
    assert {each["author"]["session"] for each in daemon.log(store)} == {place.session}
    assert asking.reject(store, 3, "not this")["reason"] == "not this"
    assert asking.pending(store) == []
    assert [each["state"] for each in asking.pending(store, decided=True)] == ["approved"] * 2 + ["rejected"]
    assert place.read("d/a.md") == b"one\ntwo\n"


def test_every_mode_waits_over_what_the_store_has(daemon: Daemon, asking: engramfs.Client) -> None:
    store = "memory/clerk/state"
    owner = asking.open_session("clerk", "owner", attach=[f"{store}=/mnt/memory/state:read_write"])
    owner.edit(store, [Create("a.md", "old text"), Create("d/b.md", "b"), Create("d/c.md", "c")])
    clerk = asking.session(daemon.places[-1].session)
    digest = asking.read(store, "a.md").sha256
    written = clerk.edit(
        store, [Edit("a.md", "old", "new", digest), Rename("d", "moved"), Overwrite("moved/c.md", "C")]
    )
    assert (written.pending, written.changed, written.version) == (1, False, 1)
    place = daemon.places[-1]
    assert place.read("a.md") == b"new text"
    assert place.read("moved/c.md") == b"C"
    assert asking.read(store, "a.md").content == b"old text"
    with pytest.raises(Stale):
        clerk.edit(store, [Append("a.md", "!", digest)])
    daemon.ok("pending", "approve", store, "1")
    assert {file.path for file in asking.files(store)} == {"a.md", "moved/b.md", "moved/c.md"}
    owner.close()


def test_where_nobody_can_be_asked_it_is_refused(daemon: Daemon, asking: engramfs.Client) -> None:
    night = asking.open_session("night", "alice")
    with pytest.raises(Refused, match="unattended"):
        night.edit("memory/night/state", [Create("a", "x")])
    assert night.info.unattended
    assert daemon.json("pending", "list", "memory/night/state") == []
    night.close()


def test_what_waits_is_found_by_the_session_that_wrote_it_and_by_no_other(
    daemon: Daemon, asking: engramfs.Client
) -> None:
    owner = asking.open_session("clerk", "carol")
    ask = [f"{owner.attachments[0].store}=/memories/user:ask"]
    mine, other = (asking.open_session("clerk", "carol", attach=ask) for _ in range(2))
    tools = {each: Offered(each) for each in (owner, mine, other)}

    def use(session: Session, name: str, **arguments: Any) -> Any:
        tool = tools[session].tool(name)
        assert tool is not None
        return call(tool, arguments)

    def found(session: Session, text: str, **how: Any) -> list[tuple[str, bool]]:
        answer = use(session, "memory_search", search=text, **how)
        return [(each["content"], each.get("pending", False)) for each in answer["records"]]

    try:
        use(owner, "memory_add", content="The billing service listens on port 8443.", category="infra")
        trip = use(owner, "memory_add", content="The office in Porto opens in March.")["id"]
        waits = use(mine, "memory_add", content="She drinks oolong in the morning.", category="taste")
        assert waits.code == "pending"
        assert found(mine, "oolong") == [("She drinks oolong in the morning.", True)]
        assert found(mine, "她早上喝什么", limit=1) == found(mine, "oolong"), "by meaning"
        assert found(mine, "oolong", category="infra") == []
        assert ("The billing service listens on port 8443.", False) in found(mine, "billing port")
        (hit,) = daemon.json("search", "oolong", "--kind", "keyword", "--session", mine.id)
        assert (hit["pending"], hit["version"], hit["category"]) == (True, None, "taste")
        shown = daemon.ok("search", "oolong", "--kind", "keyword", "--session", mine.id)
        assert f"{owner.attachments[0].store}:{hit['path']}  " in shown
        assert "  waits for approval" in shown
        for session in (other, owner):
            assert found(session, "oolong") == []
            assert daemon.json("search", "oolong", "--kind", "keyword", "--session", session.id) == []
        again = use(mine, "memory_add", content="She drinks oolong in the morning.")
        assert again["decision"] == "duplicate"

        assert use(mine, "memory_update", id=trip, content="The office in Lisbon opens.").code == "pending"
        assert found(mine, "office", limit=1) == [("The office in Lisbon opens.", True)]
        assert found(owner, "office", limit=1) == [("The office in Porto opens in March.", False)]
        assert use(mine, "memory_delete", id=trip).code == "pending"
        assert "office" not in str(found(mine, "office"))

        daemon.ok("pending", "approve", owner.attachments[0].store, "1")
        for session in (mine, other, owner):
            assert found(session, "oolong") == [("She drinks oolong in the morning.", False)]
    finally:
        for session in (owner, mine, other):
            tools[session].close()
            session.close()


def test_over_the_protocol_what_waits_is_an_error_with_its_code_and_number(
    daemon: Daemon, asking: engramfs.Client
) -> None:
    pytest.importorskip("mcp")
    from ..harness.mcp_client import Agent, Refused, run

    place, store = daemon.places[-1], "memory/clerk/state"

    async def use(agent: Agent) -> None:
        files = [{"mode": "create", "path": "a.md", "content": "one\n"}]
        with pytest.raises(Refused, match=r"pending: .* nothing is written yet") as caught:
            await agent.call("write_context", context="state", files=files)
        document = caught.value.document
        assert (document["code"], document["pending"], document["store"]) == ("pending", 1, store)
        read = await agent.call("read_context_file", context="state", path="a.md")
        assert read["content"] == "one\n", "the session itself sees it"

    run(use, daemon.environment, "--session", place.session)
    assert daemon.log(store) == []
    assert len(daemon.json("pending", "list", store)) == 1


def test_what_was_moved_with_its_directory_and_waits_is_found_there(
    daemon: Daemon, asking: engramfs.Client
) -> None:
    owner = asking.open_session("clerk", "dora")
    ask = [f"{owner.attachments[0].store}=/memories/user:ask"]
    mine = asking.open_session("clerk", "dora", attach=ask)
    tools = Offered(mine)
    try:
        owner.edit(
            owner.attachments[0].store, [Create("records/home/1.md", "---\nid: '1'\n---\nThe cat is ill.\n")]
        )
        mine.edit(owner.attachments[0].store, [Rename("records/home", "records/house")])
        tool = tools.tool("memory_search")
        assert tool is not None
        answer = call(tool, {"search": "cat"})
        assert isinstance(answer, dict)
        assert [(each["category"], each["pending"]) for each in answer["records"]] == [("house", True)]
    finally:
        tools.close()
        for session in (owner, mine):
            session.close()
