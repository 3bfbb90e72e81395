"""The context tools: what may be written is listed, read and written, by short names, and nothing else."""

import hashlib
from typing import Any

import pytest

from engramfs.client import Client, Session
from engramfs.model.file_edit import Create, Overwrite
from engramfs.tools.call import Failure, call
from engramfs.tools.offered import Offered

from .conftest import Open


class Tools:
    """The tools of a session, called as an agent does."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.offered = Offered(session)

    def names(self) -> list[str]:
        return [tool.name for tool in self.offered.tools()]

    def __call__(self, name: str, **arguments: Any) -> Any:
        (tool,) = [tool for tool in self.offered.tools() if tool.name == name]
        return call(tool, arguments)


@pytest.fixture
def tools(session: Session) -> Tools:
    return Tools(session)


def write(tools: Tools, *files: dict[str, Any], context: str = "state", **more: Any) -> Any:
    return tools("write_context", context=context, files=list(files), **more)


def test_what_is_writable_is_listed_with_what_a_write_needs(tools: Tools) -> None:
    write(tools, {"path": "d/a.md", "mode": "create", "content": "one"}, message="first")
    listed = tools("list_context_files")
    assert [(each["slug"], each["name"]) for each in listed["contexts"]] == [
        ("user", "memories/alice"),
        ("state", "memory/digest/state"),
    ]
    sha256 = hashlib.sha256(b"one").hexdigest()
    assert listed["contexts"][1]["files"] == [{"path": "d/a.md", "size": 3, "sha256": sha256}]
    assert listed["contexts"][1]["version"] == 1
    assert tools("list_context_files", context="state")["contexts"] == listed["contexts"][1:]


def test_a_call_is_one_version_and_answers_what_a_later_write_needs(tools: Tools, client: Client) -> None:
    written = write(
        tools,
        {"path": "a.md", "mode": "create", "content": "one\n"},
        {"path": "a.md", "mode": "append", "content": "two\n"},
        {"path": "b.md", "mode": "create", "content": "old text"},
        {"path": "b.md", "mode": "edit", "old_text": "old", "new_text": "new"},
        message="all of it",
    )
    assert (written["version"], written["changed"]) == (1, True)
    assert client.log("memory/digest/state")[0]["message"] == "all of it"
    assert [each["path"] for each in written["files"]] == ["a.md", "b.md"], "each once"
    read = tools("read_context_file", context="state", path="a.md")
    assert read == {
        "context": "state",
        "path": "a.md",
        "content": "one\ntwo\n",
        "sha256": written["files"][0]["sha256"],
        "version": 1,
    }
    again = write(
        tools, {"path": "a.md", "mode": "overwrite", "content": "x", "expected_sha256": read["sha256"]}
    )
    assert again["version"] == 2
    assert write(tools, {"path": "a.md", "mode": "delete"})["files"] == [{"path": "a.md", "sha256": None}]


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ({"mode": "create", "path": "a.md", "content": "x"}, "exists", "a.md exists"),
        ({"mode": "append", "path": "b.md", "content": "x"}, "not_found", "b.md does not exist"),
        ({"mode": "delete", "path": "b.md"}, "not_found", "b.md does not exist; there is nothing to delete"),
        ({"mode": "edit", "path": "a.md", "old_text": "a", "new_text": "b"}, "not_unique", "2 times"),
        (
            {"mode": "overwrite", "path": "a.md", "content": "x" * 262145},
            "too_large",
            "262,145 bytes, over the limit of 262,144",
        ),
        ({"mode": "delete", "path": "a.md", "expected_sha256": "0" * 64}, "stale", "a.md has sha256"),
        ({"mode": "create", "path": "/etc/passwd", "content": "x"}, "usage", "not allowed"),
        ({"mode": "create", "path": "../x", "content": "x"}, "usage", "not allowed"),
        ({"mode": "create", "path": "x"}, "usage", "missing required field `content`"),
        ({"mode": "delete", "path": "a.md", "content": "x"}, "usage", "unknown field `content`"),
        ({"mode": "paint", "path": "a.md"}, "usage", "paint"),
    ],
)
def test_a_refusal_has_a_code_and_nothing_of_its_call_is_done(
    tools: Tools, client: Client, change: dict[str, Any], code: str, says: str
) -> None:
    write(tools, {"path": "a.md", "mode": "create", "content": "aa"})
    failure = write(tools, {"path": "first.md", "mode": "create", "content": "x"}, change)
    assert isinstance(failure, Failure)
    assert failure.code == code
    assert says in failure.message
    assert [file.path for file in client.files("memory/digest/state")] == ["a.md"]


def test_stale_names_the_path_and_its_present_digest(tools: Tools) -> None:
    write(tools, {"path": "a.md", "mode": "create", "content": "aa"})
    failure = write(tools, {"path": "a.md", "mode": "append", "content": "b", "expected_sha256": "0" * 64})
    assert failure.details == {"path": "a.md", "sha256": hashlib.sha256(b"aa").hexdigest()}


def test_a_message_is_no_text(tools: Tools) -> None:
    files = [{"path": "a.md", "mode": "create", "content": "x"}]
    failure = tools("write_context", context="state", files=files, message="é" * 2049)
    assert isinstance(failure, Failure)
    assert (failure.code, "at most 4,096 bytes" in failure.message) == ("too_large", True)
    assert tools("write_context", context="state", files=files, message="é" * 2048)["changed"]


def test_more_than_twenty_files_are_two_calls(tools: Tools) -> None:
    files = [{"path": f"{number}.md", "mode": "create", "content": ""} for number in range(21)]
    assert write(tools, *files).code == "too_large"
    assert write(tools, *files[:20])["version"] == 1


def test_what_is_read_only_is_read_as_it_is_now_and_never_written(
    tools: Tools, client: Client, open_session: Open
) -> None:
    owner = open_session(attach=["contexts/handbook=/mnt/context/contexts/handbook:read_write"])
    owner.edit("contexts/handbook", [Create("guide.md", "one")])
    late = Tools(open_session())
    owner.edit("contexts/handbook", [Overwrite("guide.md", "two")])
    pinned = late.offered.reach.named("handbook")
    assert (pinned.live, pinned.version) == (False, 1)
    assert late.offered.reach.read(pinned, "guide.md").content == b"one", "which is what its mount shows"
    read = late("read_context_file", context="handbook", path="guide.md")
    assert (read["content"], read["version"]) == ("two", 2)
    (listed,) = late("list_context_files", context="handbook")["contexts"]
    assert (listed["version"], listed["files"][0]["sha256"]) == (2, read["sha256"])
    owners = Tools(owner)("read_context_file", context="handbook", path="guide.md")
    assert owners == read
    failure = write(late, {"path": "guide.md", "mode": "delete"}, context="handbook")
    assert (failure.code, failure.message) == ("read_only", "handbook is read-only here; nothing was written")
    assert write(late, {"path": "x", "mode": "delete"}, context="preferences").code == "read_only"


def test_what_the_session_does_not_have_is_not_found(tools: Tools, open_session: Open) -> None:
    open_session("bob").edit("memories/bob", [Create("secret.md", "x")])
    for context in ("memories/bob", "bob", "../bob", ""):
        assert write(tools, {"path": "x", "mode": "delete"}, context=context).code == "not_found"
        failure = tools("read_context_file", context=context, path="secret.md")
        assert failure.code == "not_found"
        assert "bob" not in failure.message.replace(f"context {context}", "")


def test_without_anything_writable_no_context_tool_is_offered(open_session: Open) -> None:
    read_only = [
        "memories/alice=/memories/user:read_only",
        "memory/digest/state=/mnt/memory/state:read_only",
    ]
    open_session()  # which makes the stores
    assert Tools(open_session(attach=read_only)).names() == []
    names = Tools(open_session()).names()
    assert names[:3] == ["list_context_files", "read_context_file", "write_context"]
    assert {"memory", "memory_add", "memory_search"} <= set(names)


def test_what_is_not_text_is_not_read_as_text(tools: Tools, session: Session) -> None:
    session.edit("memory/digest/state", [Create("image", "\udcff\udcfe")])
    failure = tools("read_context_file", context="state", path="image")
    assert (failure.code, failure.message) == ("unsupported", "image is not text; read it in a mount")


def test_an_internal_error_is_no_traceback(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools.session, "edit", None)
    failure = write(tools, {"path": "a.md", "mode": "create", "content": "x"})
    assert failure == Failure("failed", "write_context failed; the log of this process has the traceback")
