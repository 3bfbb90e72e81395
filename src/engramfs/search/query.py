"""What is asked of search, and what it answers. Importing this loads nothing."""

from typing import Literal

import msgspec

from engramfs.errors import TooLarge
from engramfs.model.entry import Entry

LONGEST_QUERY = 10_000  # characters; what is longer is a text and no question

Kind = Literal["keyword", "semantic", "hybrid"]
Match = Literal["keyword", "semantic"]


class Place(msgspec.Struct, frozen=True):
    """A store, or a part of one, as somebody may see it.

    With `version`, only what the store showed then, and still shows.
    """

    store: str
    inside: str = ""
    version: int | None = None


class Draft(msgspec.Struct, frozen=True):
    """A file as one session sees it, and no head has it.

    It is that of `version`, to which the session is pinned or which is older; 0: it waits for approval.
    """

    path: bytes
    entry: Entry
    content: bytes
    version: int = 0


class Drafts(msgspec.Struct, frozen=True):
    """Those of a store. `hidden` are paths of the head that the session does not see as they are there."""

    store: str
    files: tuple[Draft, ...] = ()
    hidden: frozenset[bytes] = frozenset()


class Query(msgspec.Struct, frozen=True):
    """`reach` bounds what may be found at all; None is every store. What else is given must hold too.

    `since` and `until` (inclusive) are nanoseconds since 1970, of when a record says it was updated, or
    else of the file's mtime. `kind` None is hybrid where there is meaning, and keyword otherwise. Raises
    `TooLarge` for a `text` of more than `LONGEST_QUERY` characters.
    """

    text: str
    reach: tuple[Place, ...] | None = None
    under: str = ""  # only paths at or below it
    limit: int = 10
    offset: int = 0
    kind: Kind | None = None
    category: str | None = None
    agent: str | None = None
    session: str | None = None
    since: int | None = None
    until: int | None = None
    drafts: tuple[Drafts, ...] = ()  # are found too; of each store once
    patience: float = 5.0  # seconds to bring the index up to date; what is left is not found yet

    def __post_init__(self) -> None:
        if len(self.text) > LONGEST_QUERY:
            raise TooLarge(
                f"a query has at most {LONGEST_QUERY:,} characters, and this one {len(self.text):,}; "
                "ask for what tells most"
            )


class Found(msgspec.Struct, frozen=True):
    """A file, by the passage that matches best. Paths are relative to the store."""

    store: str
    path: str
    line: int  # 1-based: of the snippet
    first_line: int  # of the passage
    last_line: int
    snippet: str
    score: float  # of the fused ranking
    matched: tuple[Match, ...]
    version: int  # that changed the file last; 0 for what waits for approval
    digest: str  # of its content, SHA-256 in hexadecimal
    created: int  # nanoseconds since 1970
    updated: int
    category: str | None = None
    agent: str | None = None
    session: str | None = None
