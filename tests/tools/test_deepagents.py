"""The backend of deepagents: its public behaviour beside deepagents' own, one write or edit one version."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deepagents")

from deepagents.backends.composite import CompositeBackend
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.protocol import BackendProtocol

from engramfs.client import Client, Session
from engramfs.integrations.deepagents import EngramBackend
from engramfs.model.file_edit import Create

from .conftest import Open

STORE = "memory/digest/state"


@pytest.fixture
def backend(session: Session) -> EngramBackend:
    return EngramBackend(session, "/mnt/memory/state")


@pytest.fixture
def theirs(tmp_path: Path) -> BackendProtocol:
    (tmp_path / "theirs").mkdir()
    return FilesystemBackend(str(tmp_path / "theirs"), virtual_mode=True)


STEPS: list[tuple[str, list[Any]]] = [
    ("ls", ["/"]),
    ("write", ["/notes.md", "one\ntwo\none\n"]),
    ("write", ["/d/e/deep.txt", "deep\none"]),
    ("write", ["/d/.hidden.md", "ripgrep passes over what is hidden"]),
    ("write", ["/empty", ""]),
    ("ls", ["/"]),
    ("ls", ["/d"]),
    ("ls", ["/none"]),
    ("ls", ["/notes.md"]),
    ("read", ["/notes.md"]),
    ("read", ["/notes.md", 1, 1]),
    ("read", ["/notes.md", 9, 1]),
    ("read", ["/notes.md", -1, 0]),
    ("read", ["/d/e/deep.txt", 0, 1]),
    ("edit", ["/notes.md", "two", "2"]),
    ("edit", ["/notes.md", "one", "1"]),
    ("edit", ["/notes.md", "one", "1", True]),
    ("edit", ["/notes.md", "none", "1"]),
    ("edit", ["/notes.md", "", "1"]),
    ("edit", ["/none", "a", "b"]),
    ("read", ["/notes.md"]),
    ("write", ["/notes.md", "over it"]),
    ("read", ["/notes.md"]),
    ("grep", ["one"]),
    ("grep", ["one", "/d"]),
    ("grep", ["one", "/", "*.md"]),
    ("grep", ["none"]),
    ("grep", ["", "/notes.md"]),
    ("glob", ["*.md"]),
    ("glob", ["**/*.txt"]),
    ("glob", ["/*.md"]),
    ("glob", ["*.txt", "/d"]),
    ("glob", ["../*"]),
    ("glob", ["d/**"]),
    ("download_files", [["/notes.md", "/none", "/d"]]),
    ("upload_files", [[("/up/a.bin", b"\xff\xfe"), ("/up/b.md", b"b")]]),
    ("download_files", [["/up/a.bin", "/up/b.md"]]),
    ("read", ["/up/b.md"]),
    ("write", ["/crlf.md", "one\r\ntwo\r\nthree\r\n"]),
    ("read", ["/crlf.md"]),
    ("grep", ["two", "/crlf.md"]),
    ("edit", ["/crlf.md", "one\ntwo", "1\n2"]),
    ("edit", ["/crlf.md", "2\r\nthree", "2\n3"]),
    ("read", ["/crlf.md"]),
    ("download_files", [["/crlf.md/below", "/none/below"]]),
    ("upload_files", [[("/crlf.md/below", b"x"), ("/beside.md", b"x")]]),
    ("read", ["/beside.md"]),
    ("delete", ["/crlf.md/below"]),
    ("glob", ["**", "/crlf.md"]),
    ("delete", ["/beside.md"]),
    ("delete", ["/crlf.md"]),
    ("delete", ["/d"]),
    ("delete", ["/d"]),
    ("delete", ["/notes.md"]),
    ("ls", ["/"]),
]


def comparable(value: Any) -> Any:
    """Without times, and in an order of its own: what the protocol leaves open."""
    if isinstance(value, list):
        return sorted((comparable(each) for each in value), key=repr)
    if isinstance(value, dict):
        return {
            key: comparable(each) for key, each in value.items() if key not in ("modified_at", "created_at")
        }
    if hasattr(value, "__dataclass_fields__"):
        return comparable({key: getattr(value, key) for key in value.__dataclass_fields__})
    return value


def test_each_operation_answers_as_the_backend_of_a_directory_does(
    backend: EngramBackend, theirs: BackendProtocol
) -> None:
    for name, arguments in STEPS:
        ours, wanted = (comparable(getattr(one, name)(*arguments)) for one in (backend, theirs))
        if name == "read" and wanted["error"]:
            assert (ours["error"] is not None, ours["file_data"]) == (True, None)
            continue
        assert ours == wanted, (name, arguments)


def test_an_edit_keeps_the_line_endings_of_its_file(backend: EngramBackend) -> None:
    backend.upload_files([("/notes.md", b"one\r\ntwo\r\nlast")])
    assert backend.edit("/notes.md", "one\ntwo\n", "1\nnew\n2\n").occurrences == 1
    assert backend.download_files(["/notes.md"])[0].content == b"1\r\nnew\r\n2\r\nlast"


def test_a_write_an_edit_a_delete_and_a_batch_are_one_version_each(
    backend: EngramBackend, client: Client
) -> None:
    backend.write("/a.md", "one")
    backend.edit("/a.md", "one", "two")
    backend.edit("/a.md", "gone", "x")
    backend.upload_files([("/b.md", b"b"), ("/c/d.md", b"d")])
    backend.delete("/c")
    log = client.log(STORE)
    assert [[f"{one['op']} {one['path']}" for one in each["changes"]] for each in reversed(log)] == [
        ["created a.md"],
        ["modified a.md"],
        ["created b.md", "created c", "created c/d.md"],
        ["deleted c", "deleted c/d.md"],
    ]
    assert {each["via"] for each in log} == {"tool"}


def test_the_session_is_a_tree_of_its_mounts(session: Session, open_session: Open) -> None:
    open_session("bob").edit("memories/bob", [Create("secret.md", "zebra")])
    backend = EngramBackend(session)
    backend.write("/memories/user/a.md", "zebra")
    backend.write("/mnt/memory/state/b.md", "zebra")
    assert [each["path"] for each in backend.ls("/").entries or []] == ["/memories/", "/mnt/"]
    assert [each["path"] for each in backend.ls("/memories").entries or []] == [
        "/memories/org/",
        "/memories/user/",
    ]
    assert [each["path"] for each in backend.grep("zebra").matches or []] == [
        "/memories/user/a.md",
        "/mnt/memory/state/b.md",
    ]
    assert [each["path"] for each in backend.glob("*.md").matches or []] == [
        "/memories/user/AGENTS.md",
        "/memories/user/a.md",
        "/mnt/memory/state/b.md",
    ]
    assert backend.ls("/memories/bob").error == "Path '/memories/bob': path_not_found"


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/mnt/memory/preferences/x", "permission_denied"),
        ("/mnt/context/contexts/handbook/x", "permission_denied"),
        ("/scratch", "permission_denied"),
        ("/mnt/x", "permission_denied"),
        ("/memories/user", "is_directory"),
        ("/memories/user/../../x", "invalid_path"),
        ("memories/user/x", "invalid_path"),
        ("/memories/user/.versions/1", "invalid_path"),
    ],
)
def test_nothing_is_written_where_the_session_may_not(
    session: Session, client: Client, path: str, error: str
) -> None:
    backend = EngramBackend(session)
    before = {store.name: store.version for store in client.stores()}
    assert [each.error for each in backend.upload_files([(path, b"x")])] == [error]
    assert backend.write(path, "x").error is not None
    assert backend.delete(path).error is not None
    assert {store.name: store.version for store in client.stores()} == before


def test_what_another_writes_meanwhile_is_not_lost(
    backend: EngramBackend, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.write("/a.md", "one two")
    real = session.edit
    pending = [str(number) for number in range(10)]

    def late(store: str, edits: Any, *arguments: Any, **more: Any) -> Any:
        if pending:
            from engramfs.model.file_edit import Append

            real(store, [Append("a.md", " " + pending.pop())])
        return real(store, edits, *arguments, **more)

    monkeypatch.setattr(session, "edit", late)
    assert backend.edit("/a.md", "one", "1").occurrences == 1
    assert backend.download_files(["/a.md"])[0].content == b"1 two 9 8 7 6 5 4 3 2 1 0"


def test_the_asynchronous_methods_do_the_same(backend: EngramBackend) -> None:
    async def use() -> None:
        assert (await backend.awrite("/a.md", "one")).error is None
        assert (await backend.aedit("/a.md", "one", "two")).occurrences == 1
        read = await backend.aread("/a.md")
        assert read.file_data is not None
        assert read.file_data["content"] == "two"
        assert len((await backend.agrep("two")).matches or []) == 1
        assert len((await backend.aglob("*.md")).matches or []) == 1
        assert len((await backend.als("/")).entries or []) == 1
        assert (await backend.adelete("/a.md")).error is None

    asyncio.run(use())


def test_it_serves_as_one_route_of_a_composite(backend: EngramBackend, theirs: BackendProtocol) -> None:
    composite = CompositeBackend(default=theirs, routes={"/memories/": backend})
    composite.write("/memories/a.md", "kept")
    composite.write("/scratch.md", "not")
    read = composite.read("/memories/a.md")
    assert read.file_data is not None
    assert read.file_data["content"] == "kept"
    assert [each["path"] for each in backend.ls("/").entries or []] == ["/a.md"]
