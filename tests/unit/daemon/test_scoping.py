"""`/memories/user` is exactly one owner's memory, and nobody's when it is unclear whose."""

import pytest

from engramfs.daemon.config import AgentConfig, Scope, Tenancy
from engramfs.daemon.scoping import memory_store, scoped_memory
from engramfs.errors import InvalidName, UsageError


@pytest.mark.parametrize(
    ("scope", "tenancy", "actor", "tenant", "store"),
    [
        ("actor", "single", "alice", None, "memories/alice"),
        ("actor", "multi", "alice", "acme", "memories/acme/alice"),
        ("tenant", "multi", "alice", "acme", "memories/acme"),
        ("tenant", "multi", None, "acme", "memories/acme"),
        ("tenant", "single", None, "acme", "memories/acme"),
        ("agent", "single", None, None, "memories/agent"),
        ("agent", "single", "alice", None, "memories/agent"),
        ("none", "single", "alice", None, None),
        (None, "single", "alice", None, "memories/alice"),
        (None, "single", None, None, "memories/agent"),
        (None, "single", "alice", "acme", "memories/acme/alice"),
        ("actor", "single", "alice@example.com:8080", None, "memories/alice@example.com:8080"),
    ],
)
def test_the_scoping_table(
    scope: Scope | None, tenancy: Tenancy, actor: str | None, tenant: str | None, store: str | None
) -> None:
    assert memory_store(AgentConfig("a", scope, tenancy), "a", actor, tenant) == store


@pytest.mark.parametrize(
    ("scope", "tenancy", "actor", "tenant", "option"),
    [
        ("actor", "single", None, None, "--actor"),
        ("actor", "multi", "alice", None, "--tenant"),
        ("actor", "multi", None, "acme", "--actor"),
        ("tenant", "multi", "alice", None, "--tenant"),
        ("tenant", "single", "alice", None, "--tenant"),
        ("actor", "single", "alice", "acme", "--tenant"),
        (None, "single", None, "acme", "--actor"),
    ],
)
def test_an_unclear_owner_is_an_error_that_names_the_option(
    scope: Scope | None, tenancy: Tenancy, actor: str | None, tenant: str | None, option: str
) -> None:
    with pytest.raises(UsageError, match=option):
        memory_store(AgentConfig("a", scope, tenancy), "a", actor, tenant)


@pytest.mark.parametrize("bad", ["", ".", "..", "a/b", "a b", "a\n", "ü", "x" * 129, "a\0"])
def test_ids_outside_the_alphabet_are_refused_even_when_the_scope_does_not_need_them(bad: str) -> None:
    config = AgentConfig("a", "agent")
    with pytest.raises(InvalidName):
        memory_store(config, "a", bad, None)
    with pytest.raises(InvalidName):
        memory_store(config, "a", None, bad)
    with pytest.raises(InvalidName):
        memory_store(config, bad, None, None)


def test_owners_whose_names_would_make_the_same_store_are_told_apart() -> None:
    actor = scoped_memory(AgentConfig("a", "actor"), "a", "acme", None)
    tenant = scoped_memory(AgentConfig("a", "tenant", "multi"), "a", None, "acme")
    assert actor is not None
    assert tenant is not None
    assert actor.store == tenant.store
    assert actor.owner != tenant.owner
    agent = scoped_memory(AgentConfig("a", "agent"), "a", None, None)
    named_agent = scoped_memory(AgentConfig("a", "actor"), "a", "agent", None)
    assert agent is not None
    assert named_agent is not None
    assert agent.store == named_agent.store
    assert agent.owner != named_agent.owner
