"""A store and its limits."""

from typing import Literal

import msgspec

DEFAULT_MAX_FILE_SIZE = 64 << 20
DEFAULT_QUOTA = 10 << 30

Conflicts = Literal["keep", "refuse"]


class Limits(msgspec.Struct, frozen=True, array_like=True):
    max_file_size: int = DEFAULT_MAX_FILE_SIZE  # bytes of one file
    quota: int = DEFAULT_QUOTA  # bytes of all live files, each node counted once


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


class Head(msgspec.Struct, frozen=True, array_like=True):
    """The newest version of a store, and what must survive together with it."""

    number: int = 0  # 0: nothing yet
    digest: bytes = b""
    next_node: int = 2  # node ids below this were given out; 1 is the root
    journal_position: int = 0  # journal records of this store up to here are in the log
    used: int = 0  # bytes of live files
    files: int = 0  # live nodes, the root included
