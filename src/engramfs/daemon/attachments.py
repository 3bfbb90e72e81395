"""What a session shows, and where: a pure function of the agent's configuration and who is asking.

/mnt/context/contexts/<slug>   every context, or those configured; read_only, pinned
/mnt/memory/<name>             the agent's own: preferences read_only, state read_write; live
/memories/user                 the scoped memory; read_write, live
/memories/org                  org-memory, when it exists or is configured; read_only, live
/instructions.md, /skills      from agents/<agent>, when it has them; read_only, pinned
"""

from collections.abc import Collection

import msgspec

from engramfs.daemon.config import AgentConfig
from engramfs.daemon.scoping import scoped_memory
from engramfs.errors import NotFound
from engramfs.model.access import Access
from engramfs.model.names import check_store_name

CONTEXTS = "contexts/"
ORG_STORE = "org-memory"
USER_MEMORY = "/memories/user"
PROGRAM = ("instructions.md", "skills")  # what `engramfs deploy` puts into the store of an agent


class Attachment(msgspec.Struct, frozen=True):
    """A store at a path of a session."""

    store: str
    path: str  # absolute within the session's root
    access: Access
    live: bool  # False: pinned to the head of the moment when the session begins
    create: bool = False  # make the store when it is missing
    owner: str | None = None  # of a scoped memory: see `engramfs.daemon.scoping`
    inside: str = ""  # the part of the store that is shown; empty: all of it
    version: int | None = None  # pinned to this one instead of the head


def attachments(
    config: AgentConfig,
    agent: str,
    actor: str | None,
    tenant: str | None,
    stores: Collection[str],
    program: Collection[str] = (),
) -> list[Attachment]:
    """All attachments of a session, by path, given the names of the stores that exist.

    `program` are the names of `PROGRAM` that the store of the agent has.

    Raises `UsageError` and `InvalidName` as scoping does, and `NotFound` for a configured context that
    is missing; so nothing is mounted unless everything can be.
    """
    found = _contexts(config, stores)
    for name, access in config.memory:
        store = check_store_name(f"memory/{agent}/{name}")
        found.append(Attachment(store, f"/mnt/memory/{name}", access, live=True, create=True))
    memory = scoped_memory(config, agent, actor, tenant)
    if memory is not None:
        found.append(
            Attachment(
                memory.store, USER_MEMORY, Access.READ_WRITE, live=True, create=True, owner=memory.owner
            )
        )
    if config.org or (config.org is None and ORG_STORE in stores):
        found.append(Attachment(ORG_STORE, "/memories/org", Access.READ_ONLY, live=True, create=True))
    for name in program:
        store = agent_store(agent)
        found.append(Attachment(store, f"/{name}", Access.READ_ONLY, live=False, inside=name))
    return sorted(found, key=lambda attachment: attachment.path)


def agent_store(agent: str) -> str:
    """The store with the instructions, skills and seeds of an agent."""
    return f"agents/{agent}"


def _contexts(config: AgentConfig, stores: Collection[str]) -> list[Attachment]:
    if config.contexts is None:
        names = [name for name in stores if name.startswith(CONTEXTS)]
    else:
        names = [CONTEXTS + slug for slug in config.contexts]
    for name in names:
        if name not in stores:
            raise NotFound(
                f"agent {config.name} is configured with the context {name}, and there is no such store; "
                f"engramfs store create {name}"
            )
    return [Attachment(name, f"/mnt/context/{name}", Access.READ_ONLY, live=False) for name in names]
