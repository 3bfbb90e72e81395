"""What a session sees is searched: nothing else, and all of it."""

import pytest

from engramfs.client import Client, Session
from engramfs.errors import NotFound
from engramfs.model.file_edit import Create, Delete, Overwrite
from engramfs.search import Query

from .conftest import Open

HANDBOOK = "contexts/handbook"
WRITABLE = [f"{HANDBOOK}=/mnt/context/{HANDBOOK}:read_write"]


@pytest.fixture
def editor(open_session: Open) -> Session:
    """Writes the handbook, to which other sessions are pinned."""
    session = open_session("editor", attach=WRITABLE)
    session.edit(
        HANDBOOK,
        [
            Create("kept.md", "oolong, kept"),
            Create("d/changed.md", "oolong, old"),
            Create("gone.md", "oolong, gone"),
        ],
    )
    return session


def found(where: Client | Session, text: str, *stores: str) -> dict[str, str]:
    answer = where.search(Query(text, kind="keyword"), stores)
    return {f"{one.store}@{one.version}:{one.path}": one.snippet for one in answer.found}


def test_a_pinned_store_is_searched_as_it_was(editor: Session, open_session: Open, client: Client) -> None:
    pinned = open_session()
    editor.edit(
        HANDBOOK,
        [Overwrite("d/changed.md", "sencha, new"), Delete("gone.md"), Create("added.md", "oolong, sencha")],
    )
    assert found(pinned, "oolong") == {
        f"{HANDBOOK}@1:kept.md": "oolong, kept",
        f"{HANDBOOK}@1:d/changed.md": "oolong, old",
        f"{HANDBOOK}@1:gone.md": "oolong, gone",
    }
    assert found(pinned, "sencha") == {}
    assert found(pinned, "oolong", HANDBOOK) == found(pinned, "oolong")
    assert found(pinned, "oolong", "memory/digest/state") == {}
    assert found(client, "sencha", HANDBOOK) == {
        f"{HANDBOOK}@2:added.md": "oolong, sencha",
        f"{HANDBOOK}@2:d/changed.md": "sencha, new",
    }
    assert found(editor, "sencha") == found(client, "sencha")


def test_by_meaning_a_pinned_store_is_searched_as_it_was_too(editor: Session, open_session: Open) -> None:
    editor.edit(HANDBOOK, [Create("pet.md", "The cat is ill and sleeps all day.")])
    pinned = open_session()
    editor.edit(HANDBOOK, [Overwrite("pet.md", "The billing service listens on port 8443.")])
    (first, *_) = pinned.search(Query("家里的猫生病了", kind="semantic")).found
    assert (first.path, first.version, first.matched) == ("pet.md", 2, ("semantic",))


def test_what_of_a_pin_is_not_searched_is_said(
    editor: Session, open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engramfs.client.drafts._MOST_FILES", 1)
    pinned = open_session()
    editor.edit(HANDBOOK, [Delete("d/changed.md"), Delete("gone.md")])
    answer = pinned.search(Query("oolong", kind="keyword"))
    assert {one.path for one in answer.found} == {"kept.md", "d/changed.md"}
    assert answer.notices[-1] == (
        f"not searched: 1 of the files in {HANDBOOK}@1 that changed since; "
        "a session that is opened now sees the head"
    )


def test_a_store_that_a_session_does_not_reach_is_not_said_to_be_there_or_not(
    session: Session, open_session: Open
) -> None:
    open_session("bob").edit("memories/bob", [Create("a.md", "oolong")])
    said = []
    for name in ("memories/bob", "memories/nobody"):
        with pytest.raises(NotFound, match="does not reach") as caught:
            session.search(Query("oolong"), [name, "memories/alice"])
        said.append(caught.value.message.replace(name, "STORE"))
    assert said[0] == said[1]
    assert found(session, "oolong") == {}
