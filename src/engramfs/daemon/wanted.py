"""What a session would show, by the configuration and the log of now. Nothing is made here."""

from collections.abc import Sequence
from functools import partial

from engramfs.daemon import attach_option
from engramfs.daemon.attachments import CONTEXTS, ORG_STORE, PROGRAM, Attachment, agent_store, attachments
from engramfs.daemon.config import AgentConfig
from engramfs.history import catalog, log
from engramfs.history.tree import HeadTree, tree_at
from engramfs.model.entry import ROOT_NODE, Kind
from engramfs.storage.protocol import Reader

_KINDS = {"instructions.md": Kind.FILE, "skills": Kind.DIRECTORY}


def wanted_attachments(
    reader: Reader, config: AgentConfig, actor: str | None, tenant: str | None, asked: Sequence[str] = ()
) -> list[Attachment]:
    """The attachments of a session of that agent, with what is `asked` for beside them.

    Raises what scoping, the configuration and `attach_option` raise, and `NotFound` for a store or version
    that is not there and will not be made.
    """
    names = {store.name for store in catalog.every(reader, CONTEXTS)}
    names |= {ORG_STORE} if _exists(reader, ORG_STORE) else set()
    parsed = [attach_option.parse(each, partial(_exists, reader)) for each in asked]
    own = attachments(config, config.name, actor, tenant, names, _program(reader, config.name))
    wanted = attach_option.combined(own, parsed)
    for each in wanted:
        _check_there(reader, each)
    return wanted


def _exists(reader: Reader, name: str) -> bool:
    return catalog.find(reader, name) is not None


def _program(reader: Reader, agent: str) -> list[str]:
    """What of `PROGRAM` the store of an agent has."""
    store = catalog.find(reader, agent_store(agent))
    if store is None:
        return []
    tree = HeadTree(reader, store)
    entries = {name: tree.lookup(ROOT_NODE, name.encode()) for name in PROGRAM}
    return [name for name, entry in entries.items() if entry is not None and entry.kind is _KINDS[name]]


def _check_there(reader: Reader, wanted: Attachment) -> None:
    if wanted.create:
        return
    store = catalog.named(reader, wanted.store)
    if wanted.version is not None:
        log.version(reader, store, wanted.version)
        tree_at(reader, store, wanted.version)  # of those below the oldest, only headers may be left
