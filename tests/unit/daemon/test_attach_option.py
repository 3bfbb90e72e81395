"""What may be asked for beside the agent's attachments, and what never."""

import pytest

from engramfs.daemon.attach_option import combined, parse
from engramfs.daemon.attachments import Attachment
from engramfs.errors import Refused, UsageError
from engramfs.model.access import Access

READ, WRITE = Access.READ_ONLY, Access.READ_WRITE
OWN = [
    Attachment("memories/ann", "/memories/user", WRITE, live=True, create=True, owner="actor ann"),
    Attachment("memory/a/state", "/mnt/memory/state", WRITE, live=True, create=True),
]


def asked(text: str) -> Attachment:
    return parse(text, lambda name: name == "memories/ann@acme:2")


def test_a_store_is_live_and_a_version_is_pinned() -> None:
    assert asked("x/y=/srv/y:read_write") == Attachment("x/y", "/srv/y", WRITE, live=True)
    assert asked("x/y@3=/srv/y/:read_only") == Attachment("x/y", "/srv/y", READ, live=False, version=3)


def test_names_and_paths_may_hold_what_separates_them() -> None:
    assert asked("memories/ann@acme:2=/a:read_only").store == "memories/ann@acme:2"
    assert asked("a=b=/c=d:e:read_only") == Attachment("a=b", "/c=d:e", READ, live=True)


@pytest.mark.parametrize(
    "text", ["", "=", "x", "x=/y", "x:read_only", "=/y:read_only", "x=y:read_only", "x@1:f=/y:read_only"]
)
def test_what_cannot_be_understood_is_said(text: str) -> None:
    with pytest.raises(UsageError):
        asked(text)


def test_one_at_the_same_path_takes_the_place_of_the_agents() -> None:
    found = combined(OWN, [asked("other=/mnt/memory/state:read_only")])
    assert [(each.path, each.store) for each in found] == [
        ("/memories/user", "memories/ann"),
        ("/mnt/memory/state", "other"),
    ]


def test_the_sessions_own_memory_keeps_its_owner_wherever_it_is_shown() -> None:
    found = combined(OWN, [asked("memories/ann=/memories/user:read_only")])
    assert found[0] == Attachment(
        "memories/ann", "/memories/user", READ, live=True, create=True, owner="actor ann"
    )


@pytest.mark.parametrize("store", ["memories/ben", "memories/acme/ann", "memories/agent"])
def test_the_memory_of_somebody_else_is_refused(store: str) -> None:
    with pytest.raises(Refused, match="not this session's memory"):
        combined(OWN, [asked(f"{store}=/x:read_only")])


def test_two_at_one_path_are_refused() -> None:
    with pytest.raises(UsageError, match="at the same path"):
        combined(OWN, [asked("x=/x:read_only"), asked("y=/x:read_only")])
