"""`AGENTS.md`: the first file of a memory, written once and never over an existing one.

It comes from the store `agents/<agent>`, file `memories/agent/AGENTS.md`, where there is one, and else from
the template below.
"""

import hashlib

import msgspec

from engramfs.history import catalog
from engramfs.history.commit import Commit
from engramfs.history.graft import Wanted, graft
from engramfs.history.tree import HeadTree, resolve
from engramfs.model.author import SYSTEM
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.store import Store
from engramfs.storage.protocol import Reader

NAME = b"AGENTS.md"
SEED = b"memories/agent/AGENTS.md"  # in the store of the agent

TEMPLATE = b"""\
# Memory

<!-- engramfs guard: keep this block -->
What is written in this directory is kept for later sessions. What is only said in a conversation is not.

- Record a lasting preference, decision or correction here, in this file or in one that it links to,
  before you say that you will remember it.
- If the write fails, say so. Never claim to remember what is not written down.
- Read this file at the start of every session.
<!-- end of the engramfs guard -->

## Preferences

None recorded yet.
"""


def plan(reader: Reader, store: Store, agent: str, now: int) -> Commit | None:
    """What gives an empty memory its `AGENTS.md`; None when the memory has one.

    `reader` is the transaction that the commit is written in. Raises `QuotaExceeded`.
    """
    if resolve(HeadTree(reader, store), NAME) is not None:
        return None
    seed = _seed_of(reader, agent)
    digest = seed.digest if seed is not None else hashlib.sha256(TEMPLATE).digest()
    entry = Entry(
        node=0,
        kind=Kind.FILE,
        mode=0o644,
        size=seed.size if seed is not None else len(TEMPLATE),
        mtime=now,
        ctime=now,
        digest=digest,
    )
    grafted = graft(reader, store, NAME, ROOT_NODE, [Wanted(NAME, entry, NAME)], times=False)
    source = f"agents/{agent}" if seed is not None else "the template"
    planned = grafted.commit(store, SYSTEM, "seed", now, f"first use: AGENTS.md from {source}")
    return planned if seed is not None else msgspec.structs.replace(planned, contents={digest: TEMPLATE})


def _seed_of(reader: Reader, agent: str) -> Entry | None:
    store = catalog.find(reader, f"agents/{agent}")
    if store is None:
        return None
    entry = resolve(HeadTree(reader, store), SEED)
    return entry if entry is not None and entry.kind is Kind.FILE else None
