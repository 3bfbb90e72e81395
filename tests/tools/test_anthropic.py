"""The six memory commands: the contract's strings, the SDK's own implementation beside ours, known holes."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anthropic")

from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool

from engramfs.client import Client, Session
from engramfs.integrations.anthropic import AsyncMemoryTool, MemoryTool
from engramfs.model.file_edit import Append, Create
from engramfs.tools.call import Failure, call
from engramfs.tools.offered import Offered

Ask = Callable[..., str]
STORE = "memories/alice"


def asking(tool: Any) -> Ask:
    """Runs a command as a model sends it; the answer, or the text of the error."""

    def ask(command: str, **arguments: Any) -> str:
        try:
            return str(tool.call({"command": command, **arguments}))
        except ToolError as error:
            return f"refused: {error}"

    return ask


@pytest.fixture
def ask(session: Session) -> Ask:
    """The tool over an empty memory."""
    tool = MemoryTool(session)
    tool.clear_all_memory()
    return asking(tool)


@pytest.fixture
def theirs(tmp_path: Path) -> Ask:
    """The SDK's own, over a directory."""
    return asking(BetaLocalFilesystemMemoryTool(str(tmp_path / "theirs")))


NOTES = "# Notes\n\ncoffee\ntea\ncoffee\n"
SEQUENCES: dict[str, list[dict[str, Any]]] = {
    "a life": [
        {"command": "view", "path": "/memories"},
        {"command": "create", "path": "/memories/notes.md", "file_text": NOTES},
        {"command": "create", "path": "/memories/notes.md", "file_text": "again"},
        {"command": "create", "path": "/memories/a/b/c/deep.md", "file_text": "x" * 1536},
        {"command": "create", "path": "/memories/.hidden", "file_text": "x"},
        {"command": "create", "path": "/memories/empty", "file_text": ""},
        {"command": "view", "path": "/memories"},
        {"command": "view", "path": "/memories/a"},
        {"command": "view", "path": "/memories/notes.md"},
        {"command": "view", "path": "/memories/notes.md", "view_range": [2, 3]},
        {"command": "view", "path": "/memories/notes.md", "view_range": [4, -1]},
        {"command": "view", "path": "/memories/notes.md", "view_range": [0, 99]},
        {"command": "view", "path": "/memories/empty"},
        {"command": "str_replace", "path": "/memories/notes.md", "old_str": "tea", "new_str": "green\ntea"},
        {"command": "str_replace", "path": "/memories/notes.md", "old_str": "coffee", "new_str": "milk"},
        {"command": "str_replace", "path": "/memories/notes.md", "old_str": "beer", "new_str": "milk"},
        {"command": "insert", "path": "/memories/notes.md", "insert_line": 0, "insert_text": "top"},
        {"command": "insert", "path": "/memories/notes.md", "insert_line": 3, "insert_text": "two\nlines\n"},
        {"command": "insert", "path": "/memories/empty", "insert_line": 0, "insert_text": "first"},
        {"command": "view", "path": "/memories/empty"},
        {"command": "view", "path": "/memories/notes.md"},
        {"command": "rename", "old_path": "/memories/notes.md", "new_path": "/memories/x/y/notes.md"},
        {"command": "rename", "old_path": "/memories/x", "new_path": "/memories/z"},
        {"command": "rename", "old_path": "/memories/empty", "new_path": "/memories/z/y/notes.md"},
        {"command": "view", "path": "/memories"},
        {"command": "delete", "path": "/memories/z/y/notes.md"},
        {"command": "delete", "path": "/memories/a"},
        {"command": "view", "path": "/memories"},
    ],
    "what is not there": [
        {"command": "view", "path": "/memories/gone"},
        {"command": "str_replace", "path": "/memories/gone", "old_str": "a", "new_str": "b"},
        {"command": "insert", "path": "/memories/gone", "insert_line": 0, "insert_text": "a"},
        {"command": "delete", "path": "/memories/gone"},
        {"command": "rename", "old_path": "/memories/gone", "new_path": "/memories/new"},
        {"command": "create", "path": "/memories/file", "file_text": "x"},
        {"command": "view", "path": "/memories/file/below"},
        {"command": "delete", "path": "/memories/file/below"},
        {"command": "delete", "path": "/memories/file"},
    ],
    "what is not allowed": [
        {"command": "delete", "path": "/memories"},
        {"command": "delete", "path": "/memories/"},
        {"command": "rename", "old_path": "/memories", "new_path": "/memories/new"},
        {"command": "view", "path": "/etc/passwd"},
        {"command": "view", "path": "memories/x"},
        {"command": "view", "path": "/memories/../etc/passwd"},
        {"command": "create", "path": "/memories/../../x", "file_text": "x"},
        {"command": "create", "path": "/memories/a/../b.md", "file_text": "x"},
        {"command": "view", "path": "/memories/b.md"},
        {"command": "insert", "path": "/memories/b.md", "insert_line": 9, "insert_text": "x"},
        {"command": "insert", "path": "/memories/b.md", "insert_line": -1, "insert_text": "x"},
        {"command": "str_replace", "path": "/memories", "old_str": "a", "new_str": "b"},
    ],
}


def documented(answer: str) -> str:
    """The SDK's answer in the words of the documentation, which ours has: errors of some commands begin with
    `Error:`, and the range of lines is named."""
    answer = re.sub(
        r"within the range \[0, (\d+)\]\.", r"within the range of lines of the file: [0, \1]", answer
    )
    return answer.removeprefix("refused: ").removeprefix("Error: ")


@pytest.mark.parametrize("name", SEQUENCES)
def test_the_same_commands_get_the_same_answers_as_from_the_sdks_own(
    ask: Ask, theirs: Ask, name: str
) -> None:
    for arguments in SEQUENCES[name]:
        ours, wanted = documented(ask(**arguments)), documented(theirs(**arguments))
        if arguments["command"] == "view":  # a directory has a size of its own on a disk
            ours, wanted = (
                re.sub(r"(?m)^\S+\t(.*/|/memories[^.\n]*)$", r"\1", one) for one in (ours, wanted)
            )
            ours, wanted = ours.replace("/memories/org/", "").strip(), wanted.strip()
        if arguments["command"] == "insert" and "exist" in ours:
            wanted = wanted.removesuffix(". Please provide a valid path.")
        assert ours == wanted, arguments


def test_the_strings_are_those_of_the_contract(ask: Ask) -> None:
    create = ask("create", path="/memories/a.md", file_text="one\ntwo\none\n")
    assert create == "File created successfully at: /memories/a.md"
    assert ask("create", path="/memories/a.md", file_text="") == (
        "refused: Error: File /memories/a.md already exists"
    )
    assert ask("view", path="/memories/a.md") == (
        "Here's the content of /memories/a.md with line numbers:\n"
        "     1\tone\n     2\ttwo\n     3\tone\n     4\t"
    )
    assert ask("view", path="/memories") == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n"
        "0B\t/memories\n12B\t/memories/a.md\n0B\t/memories/org/"
    )
    assert ask("str_replace", path="/memories/a.md", old_str="two", new_str="2") == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     1\tone\n     2\t2\n     3\tone\n     4\t"
    )
    assert ask("str_replace", path="/memories/a.md", old_str="one", new_str="1") == (
        "refused: No replacement was performed. Multiple occurrences of old_str `one` in lines: 1, 3. "
        "Please ensure it is unique"
    )
    assert ask("str_replace", path="/memories/a.md", old_str="six", new_str="6") == (
        "refused: No replacement was performed, old_str `six` did not appear verbatim in /memories/a.md."
    )
    assert ask("insert", path="/memories/a.md", insert_line=9, insert_text="x") == (
        "refused: Error: Invalid `insert_line` parameter: 9. "
        "It should be within the range of lines of the file: [0, 3]"
    )
    assert ask("insert", path="/memories/a.md", insert_line=3, insert_text="x") == (
        "The file /memories/a.md has been edited."
    )
    assert ask("insert", path="/memories/b.md", insert_line=0, insert_text="x") == (
        "refused: Error: The path /memories/b.md does not exist"
    )
    assert ask("delete", path="/memories/b.md") == "refused: Error: The path /memories/b.md does not exist"
    assert ask("rename", old_path="/memories/b.md", new_path="/memories/c.md") == (
        "refused: Error: The path /memories/b.md does not exist"
    )
    assert ask("rename", old_path="/memories/a.md/below", new_path="/memories/c.md") == (
        "refused: Error: The path /memories/a.md/below does not exist"
    )
    assert ask("rename", old_path="/memories/b.md", new_path="/memories/a.md") == (
        "refused: Error: The destination /memories/a.md already exists"
    )
    assert ask("rename", old_path="/memories/a.md", new_path="/memories/d/c.md") == (
        "Successfully renamed /memories/a.md to /memories/d/c.md"
    )
    assert ask("delete", path="/memories/d") == "Successfully deleted /memories/d"
    assert ask("delete", path="/memories") == "refused: Cannot delete the /memories directory itself"
    assert ask("rename", old_path="/memories/", new_path="/memories/x") == (
        "refused: Cannot rename the /memories directory itself"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"command": "view"}, "this command needs path"),
        ({"command": "create", "path": "/memories/a.md"}, "this command needs file_text"),
        ({"command": "str_replace", "path": "/memories/a.md"}, "this command needs old_str"),
        ({"command": "insert", "path": "/memories/a.md"}, "this command needs insert_line"),
        ({"command": "rename", "old_path": "/memories/a.md"}, "this command needs new_path"),
        ({"command": "view", "path": 7}, "wrong arguments: Expected `str | null`, got `int` - at `$.path`"),
        ({"command": "paint"}, "wrong arguments: Invalid enum value 'paint' - at `$.command`"),
        ({}, "wrong arguments: Object missing required field `command`"),
    ],
)
def test_what_is_missing_is_said_in_the_same_words_everywhere(
    session: Session, arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(ToolError) as caught:
        MemoryTool(session).call(arguments)
    with pytest.raises(ToolError) as caught_later:
        asyncio.run(AsyncMemoryTool(session).call(arguments))
    offered = Offered(session)
    tool = offered.tool("memory")
    assert tool is not None
    assert (str(caught.value), str(caught_later.value), call(tool, arguments)) == (
        says,
        says,
        Failure("usage", says),
    )
    offered.close()


def test_each_command_that_changes_something_is_one_version(ask: Ask, client: Client) -> None:
    before = len(client.log(STORE))
    ask("create", path="/memories/a/b.md", file_text="one\n")
    ask("str_replace", path="/memories/a/b.md", old_str="one", new_str="two")
    ask("insert", path="/memories/a/b.md", insert_line=0, insert_text="zero")
    ask("rename", old_path="/memories/a", new_path="/memories/c")
    ask("delete", path="/memories/c")
    ask("view", path="/memories")
    ask("delete", path="/memories/c")
    versions = client.log(STORE)
    assert len(versions) - before == 5
    assert {version["via"] for version in versions[:5]} == {"tool"}


def test_a_name_that_only_begins_like_the_root_is_outside(ask: Ask) -> None:
    assert ask("create", path="/memories_backup/x", file_text="x") == (
        "refused: Path must start with /memories, got: /memories_backup/x"
    )


@pytest.mark.parametrize(
    "path",
    [
        "/memories/%2e%2e%2fetc/passwd",
        "/memories/%2E%2E/etc/passwd",
        "/memories/%252e%252e%252fetc",
        "/memories/..%2fetc/passwd",
        "/memories/..\\..\\etc",
        "/memories/a/../../etc",
        "/memories/a\0b",
    ],
)
@pytest.mark.parametrize("command", ["view", "create", "delete"])
def test_no_encoding_of_a_path_leads_out(ask: Ask, path: str, command: str) -> None:
    arguments = {"file_text": "x"} if command == "create" else {}
    assert ask(command, path=path, **arguments) == f"refused: Path {path} would escape /memories directory"


def test_links_lead_within_the_memory_and_never_out(ask: Ask, client: Client) -> None:
    with client.state.writing("the tests") as repository:
        from ..unit.history.conftest import Book

        with repository.engine.reading() as reader:
            from engramfs.history import catalog

            book = Book(repository, catalog.named(reader, STORE))
        book.clock = 2 * 10**18
        book.symlink("out", "/etc/passwd")
        book.symlink("up", "../../x")
        book.symlink("in", "a.md")
        book.symlink("loop", "loop")
    ask("create", path="/memories/a.md", file_text="kept")
    for name in ("out", "up", "loop"):
        for command, more in (("view", {}), ("str_replace", {"old_str": "a", "new_str": "b"})):
            answer = ask(command, path=f"/memories/{name}", **more)
            assert answer == f"refused: Path /memories/{name} would escape /memories directory"
        assert "would escape" in ask("create", path=f"/memories/{name}/x", file_text="x")
    assert "kept" in ask("view", path="/memories/in")
    assert "out" not in ask("view", path="/memories")


def test_no_answer_tells_where_the_state_is_nor_what_the_system_said(ask: Ask, client: Client) -> None:
    state = client.state.locations.state
    ask("create", path="/memories/file", file_text="x")
    answers = [
        ask("create", path="/memories/file/below", file_text="x"),
        ask("create", path="/memories/" + "x" * 300, file_text="x"),
        ask("rename", old_path="/memories/file", new_path="/memories/file/below"),
        ask("create", path="/memories/.versions/1", file_text="x"),
        ask("view", path="/memories/file/below"),
        ask("create", path="/memories/big", file_text="x" * (3 << 20)),
        ask("create", path="/memories/org/x", file_text="x"),
    ]
    for answer in answers:
        assert answer.startswith("refused: ")
        assert state not in answer
        assert "Errno" not in answer
        assert "Traceback" not in answer


def test_one_actors_memory_is_all_there_is(ask: Ask, client: Client) -> None:
    bob = client.open_session("digest", "bob")
    bob.edit("memories/bob", [Create("secret.md", "x")])
    assert "secret" not in ask("view", path="/memories")
    for path in (
        "/memories/bob/secret.md",
        "/memories/../bob/secret.md",
        "/memories/user/../../bob/secret.md",
    ):
        assert ask("view", path=path).startswith("refused: ")


def test_what_stays_is_named(ask: Ask) -> None:
    for path, shown in (("/memories/", "/memories"), ("/memories/org", "/memories/org")):
        assert ask("delete", path=path) == f"refused: Cannot delete the {shown} directory itself"
        renamed = ask("rename", old_path=path, new_path="/memories/x")
        assert renamed == f"refused: Cannot rename the {shown} directory itself"


def test_the_paths_of_a_mount_mean_the_same(ask: Ask) -> None:
    ask("create", path="/memories/user/a.md", file_text="x")
    assert ask("view", path="/memories/a.md").endswith("     1\tx")
    assert ask("view", path="/memories/user").splitlines()[1:] == [
        "0B\t/memories/user",
        "1B\t/memories/user/a.md",
    ]
    assert ask("delete", path="/memories/user") == "refused: Cannot delete the /memories directory itself"


def test_the_asynchronous_tool_answers_the_same(session: Session) -> None:
    tool = AsyncMemoryTool(session)

    async def use() -> list[Any]:
        await tool.clear_all_memory()
        return [
            await tool.call({"command": "create", "path": "/memories/a", "file_text": "x"}),
            await tool.call({"command": "view", "path": "/memories/a"}),
            await tool.call(
                {"command": "insert", "path": "/memories/a", "insert_line": 1, "insert_text": "y"}
            ),
            await tool.call(
                {"command": "str_replace", "path": "/memories/a", "old_str": "x", "new_str": "z"}
            ),
            await tool.call({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"}),
            await tool.call({"command": "delete", "path": "/memories/b"}),
        ]

    answers = asyncio.run(use())
    assert answers[0] == "File created successfully at: /memories/a"
    assert answers[-1] == "Successfully deleted /memories/b"
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}


def test_what_others_write_meanwhile_is_looked_at_again(
    ask: Ask, session: Session, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("create", path="/memories/a.md", file_text="one\n")
    real, others = session.edit, list(range(10))

    def late(store: str, edits: Any, *arguments: Any, **more: Any) -> Any:
        if others:
            real(store, [Append("a.md", f"{others.pop()}\n")])
        return real(store, edits, *arguments, **more)

    monkeypatch.setattr(session, "edit", late)
    assert ask("insert", path="/memories/a.md", insert_line=0, insert_text="zero").endswith("edited.")
    assert client.read(STORE, "a.md").content.decode().split() == ["zero", "one", *"9876543210"]
