"""A tool's call is one version, and what mounts show is what it wrote."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from engramfs.errors import EngramError, NotFound, NotUnique, ReadOnly, Stale, TooLarge, UsageError

from .session import Session

Edit = Callable[..., Any]


@pytest.fixture
def edit(session: Session) -> Edit:
    """Calls the method `edit` for the session, on its `state` unless another store is named."""
    session.attach()

    def edit(*edits: dict[str, Any], store: str = f"memory/{session.agent}/state", **more: Any) -> Any:
        return session.daemon.client.call("edit", session=session.id, store=store, edits=list(edits), **more)

    return edit


def test_a_call_is_one_version_of_the_session_and_the_mount_shows_it_at_once(
    session: Session, edit: Edit
) -> None:
    inside, state = session.daemon.inside, f"{session.root}/mnt/memory/state"
    inside.call("write", f"{state}/notes.md", b"from the mount\n")
    assert inside.call("os.path.exists", f"{state}/d/new.md") is False  # the kernel remembers that
    written = edit(
        {"mode": "append", "path": "notes.md", "content": "from the tool\n"},
        {"mode": "create", "path": "d/new.md", "content": "new"},
        message="two files",
    )
    assert inside.call("read", f"{state}/notes.md") == b"from the mount\nfrom the tool\n"
    assert inside.call("read", f"{state}/d/new.md") == b"new"
    first, second = session.daemon.log(f"memory/{session.agent}/state")
    assert [first["via"], second["via"]] == ["fs", "tool"]
    assert (second["number"], second["message"]) == (written["version"], "two files")
    assert second["author"] == first["author"]
    assert [f"{one['op']} {one['path']}" for one in second["changes"]] == [
        "created d",
        "created d/new.md",
        "modified notes.md",
    ]
    digest = hashlib.sha256(b"from the mount\nfrom the tool\n").hexdigest()
    assert written["files"][0] == {"path": "notes.md", "sha256": digest}


def test_a_call_of_twenty_large_files_goes_through_whole(session: Session, edit: Edit) -> None:
    text = "记" * ((256 << 10) // 3)
    written = edit(*({"mode": "create", "path": f"{n}.md", "content": text} for n in range(20)))
    assert {each["sha256"] for each in written["files"]} == {hashlib.sha256(text.encode()).hexdigest()}


@pytest.mark.parametrize(
    ("call", "by"),
    [
        ({"mode": "append", "path": "a", "content": "x", "expected_sha256": "0" * 64}, Stale),
        ({"mode": "edit", "path": "a", "old_text": "a", "new_text": "x"}, NotUnique),
        ({"mode": "create", "path": "b", "content": "x" * (256 << 10) + "x"}, TooLarge),
        ({"mode": "create", "path": "../b", "content": "x"}, UsageError),
        ({"mode": "create", "path": "b", "content": "x", "colour": "red"}, UsageError),
        ({"mode": "paint", "path": "b"}, UsageError),
    ],
)
def test_what_is_refused_changes_nothing_and_its_error_keeps_its_class(
    session: Session, edit: Edit, call: dict[str, Any], by: type[EngramError]
) -> None:
    edit({"mode": "create", "path": "a", "content": "aa"})
    with pytest.raises(by) as caught:
        edit({"mode": "create", "path": "first", "content": "x"}, call)
    assert type(caught.value) is by
    if by is Stale:
        assert caught.value.details == {"path": "a", "sha256": hashlib.sha256(b"aa").hexdigest()}
    assert len(session.daemon.log(f"memory/{session.agent}/state")) == 1


def test_a_session_writes_where_it_may_and_nowhere_else(session: Session, edit: Edit) -> None:
    create = {"mode": "create", "path": "x", "content": "x"}
    with pytest.raises(ReadOnly):
        edit(create, store=f"memory/{session.agent}/preferences")
    with pytest.raises(NotFound):
        edit(create, store=f"memories/{session.other}")
    session.switch(session.other)
    with pytest.raises(NotFound):
        edit(create, store=f"memories/{session.actor}")
    assert edit(create, store=f"memories/{session.other}")["changed"]
    session.daemon.ok("session", "close", session.id)
    with pytest.raises(NotFound):
        edit(create)
