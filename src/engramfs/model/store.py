"""A store and its limits."""

from typing import Literal

import msgspec

DEFAULT_MAX_FILE_SIZE = 64 << 20
DEFAULT_QUOTA = 10 << 30

Conflicts = Literal["keep", "refuse"]
Secrets = Literal["flag", "refuse"]


class Limits(msgspec.Struct, frozen=True, array_like=True):
    max_file_size: int = DEFAULT_MAX_FILE_SIZE  # bytes of one file
    quota: int = DEFAULT_QUOTA  # bytes of all live files, each node counted once


class Retention(msgspec.Struct, frozen=True, array_like=True):
    """How much history `engramfs gc` keeps. A version stays while either of the two keeps it."""

    keep_days: int = 0  # 0 with keep_versions 0: everything
    keep_versions: int = 0


class Store(msgspec.Struct, frozen=True, array_like=True):
    """The row that describes a store; its history and tree are rows of their own."""

    id: int
    name: str
    kind: str  # context, memory, memories, org, agent, other
    description: str
    limits: Limits
    conflicts: Conflicts
    created: int  # nanoseconds since 1970
    archived: bool = False
    owner: str = ""  # whose memory it is: `actor alice`, `tenant acme`, `agent`; empty: nobody's yet
    base: int = 0  # of a fork, the id of the store that its changes wait to be applied to; else 0
    retention: Retention = Retention()
    secrets: Secrets = "flag"  # what becomes of a write that looks like one


class Head(msgspec.Struct, frozen=True, array_like=True):
    """The newest version of a store, and what must survive together with it."""

    number: int = 0  # 0: nothing yet
    digest: bytes = b""
    next_node: int = 2  # node ids below this were given out; 1 is the root
    journal_position: int = 0  # journal records of this store up to here are in the log
    used: int = 0  # bytes of live files
    files: int = 0  # live nodes, the root included
    oldest: int = (
        1  # versions from here to `number` are all there; of older ones, those that are still needed
    )
