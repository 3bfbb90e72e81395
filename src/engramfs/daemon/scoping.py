"""Whose memory `/memories/user` is: from who is asking to the name of a store. Pure, and fails closed.

| scope    | tenancy | store                       |
| -------- | ------- | --------------------------- |
| actor    | single  | memories/<actor>            |
| actor    | multi   | memories/<tenant>/<actor>   |
| tenant   |         | memories/<tenant>           |
| agent    |         | memories/agent              |
| none     |         | none, and nothing can be made there |

An agent that names no scope has the actor's memory when an actor is given, and the agent's otherwise;
with a tenant as well it is the actor's within the tenant.
"""

import msgspec

from engramfs.daemon.config import AgentConfig, Scope, Tenancy
from engramfs.errors import UsageError
from engramfs.model.names import check_id, check_store_name


class ScopedMemory(msgspec.Struct, frozen=True):
    """`owner` tells apart an actor, a tenant and the agent whose names would make the same store."""

    store: str
    owner: str  # `actor alice`, `actor alice of acme`, `tenant acme`, `agent`


def memory_store(agent_config: AgentConfig, agent: str, actor: str | None, tenant: str | None) -> str | None:
    """The store that becomes `/memories/user`, or None. Raises `UsageError` and `InvalidName`."""
    memory = scoped_memory(agent_config, agent, actor, tenant)
    return memory.store if memory else None


def scoped_memory(
    agent_config: AgentConfig, agent: str, actor: str | None, tenant: str | None
) -> ScopedMemory | None:
    """As `memory_store`, with the owner."""
    check_id(agent, "agent")
    if actor is not None:
        check_id(actor, "actor")
    if tenant is not None:
        check_id(tenant, "tenant")
    scope, tenancy = _scope(agent_config, agent, actor, tenant)
    memory = _memory(scope, tenancy, agent, actor, tenant)
    if memory is not None:
        check_store_name(memory.store)
    return memory


def _scope(config: AgentConfig, agent: str, actor: str | None, tenant: str | None) -> tuple[Scope, Tenancy]:
    if config.scope is not None:
        return config.scope, config.tenancy
    if tenant is None and config.tenancy == "single":
        return ("agent" if actor is None else "actor"), "single"
    if actor is None:
        raise UsageError(f"agent {agent} was given a tenant and no actor; name the actor with --actor")
    return "actor", "multi"


def _memory(
    scope: Scope, tenancy: Tenancy, agent: str, actor: str | None, tenant: str | None
) -> ScopedMemory | None:
    if scope == "none":
        return None
    if scope == "agent":
        return ScopedMemory("memories/agent", "agent")
    if tenant is None and (scope == "tenant" or tenancy == "multi"):
        raise UsageError(f"agent {agent} serves several tenants; name the tenant with --tenant")
    if scope == "tenant":
        return ScopedMemory(f"memories/{tenant}", f"tenant {tenant}")
    if actor is None:
        raise UsageError(f"agent {agent} keeps memory for each actor; name the actor with --actor")
    if tenancy == "multi":
        return ScopedMemory(f"memories/{tenant}/{actor}", f"actor {actor} of {tenant}")
    if tenant is not None:
        raise UsageError(
            f'agent {agent} has tenancy "single", so actors of two tenants would share a store; '
            "leave --tenant out or set tenancy to multi"
        )
    return ScopedMemory(f"memories/{actor}", f"actor {actor}")
