"""What a session shows follows from its agent, its actor and the stores that exist."""

import pytest

from engramfs.daemon.attachments import Attachment, attachments
from engramfs.daemon.config import AgentConfig
from engramfs.errors import NotFound, UsageError
from engramfs.model.access import Access

READ, WRITE = Access.READ_ONLY, Access.READ_WRITE


def test_the_default_agent_has_contexts_memory_the_actors_memory_and_org() -> None:
    stores = ["contexts/handbook", "contexts/team/rules", "memories/alice", "org-memory", "other"]
    assert attachments(AgentConfig("default"), "default", "alice", None, stores) == [
        Attachment("org-memory", "/memories/org", READ, live=True, create=True),
        Attachment("memories/alice", "/memories/user", WRITE, True, True, "actor alice"),
        Attachment("contexts/handbook", "/mnt/context/contexts/handbook", READ, live=False),
        Attachment("contexts/team/rules", "/mnt/context/contexts/team/rules", READ, live=False),
        Attachment("memory/default/preferences", "/mnt/memory/preferences", READ, live=True, create=True),
        Attachment("memory/default/state", "/mnt/memory/state", WRITE, live=True, create=True),
    ]


def test_without_an_org_store_nothing_is_at_memories_org_unless_it_is_configured() -> None:
    def paths(org: bool | None) -> list[str]:
        return [a.path for a in attachments(AgentConfig("a", org=org), "a", None, None, [])]

    assert "/memories/org" not in paths(None)
    assert "/memories/org" in paths(True)


def test_org_memory_can_be_switched_off() -> None:
    found = attachments(AgentConfig("a", org=False), "a", None, None, ["org-memory"])
    assert "/memories/org" not in [a.path for a in found]


def test_only_configured_contexts_are_attached() -> None:
    config = AgentConfig("a", contexts=("handbook",))
    found = attachments(config, "a", None, None, ["contexts/handbook", "contexts/secret"])
    assert [a.store for a in found if a.store.startswith("contexts/")] == ["contexts/handbook"]


def test_a_configured_context_that_is_missing_is_named() -> None:
    with pytest.raises(NotFound, match="engramfs store create contexts/handbook"):
        attachments(AgentConfig("a", contexts=("handbook",)), "a", None, None, [])


def test_scope_none_has_no_user_memory() -> None:
    found = attachments(AgentConfig("a", "none"), "a", "alice", None, ["memories/alice"])
    assert "/memories/user" not in [a.path for a in found]


def test_an_unclear_owner_attaches_nothing() -> None:
    with pytest.raises(UsageError):
        attachments(AgentConfig("a", "actor"), "a", None, None, ["contexts/handbook"])
