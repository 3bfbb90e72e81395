"""What waits for a person's decision."""

from typing import Literal

import msgspec

from engramfs.model.author import Author

PendingState = Literal["open", "approved", "rejected"]


class Pending(msgspec.Struct, frozen=True, array_like=True):
    """A version of a fork, offered to the store that it was forked from."""

    number: int  # 1, 2, 3 … within the store; never given twice
    fork: int  # id of the store that holds it
    version: int  # its number there
    base: int  # number of the head that it was made from
    state: PendingState = "open"
    reason: str = ""  # of the decision
    decided_by: Author | None = None
    decided: int = 0  # nanoseconds since 1970
    result: int = 0  # approved: the version that it became, or the head that had it all already
    until: int = 0  # rejected: the last version of the fork that is still built on it; 0 while the next is
    unchanged: bool = False  # approved: it made no version; `result` is the head that had it all already
