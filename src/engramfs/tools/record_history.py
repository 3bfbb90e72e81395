"""What a record said before, in its metadata: `history`, a list of `{value, updatedAt}`, the oldest first.

A file has room for so much, and its front matter for less. The oldest of it go when there is none: the
versions of the file keep them.
"""

from typing import Any

import msgspec

from engramfs.errors import TooLarge
from engramfs.history.edit import check_size
from engramfs.model.file_edit import EditLimits
from engramfs.model.front_matter import DEEPEST, LONGEST, depth
from engramfs.model.record import Record, render

HISTORY = "history"
_FENCES = 16  # characters, to spare


def with_former(metadata: dict[str, Any], before: Record, content: str, now: str) -> dict[str, Any]:
    """`metadata` with what the record said `before`, if `content` is something else."""
    history = before.metadata.get(HISTORY)
    history = list(history) if isinstance(history, list) else []
    if content != before.content:
        history.append({"value": before.content, "updatedAt": now})
    return metadata | ({HISTORY: history} if history else {})


def fitting(record: Record) -> tuple[Record, int]:
    """The record with as much of its history as it has room for, and how many of the oldest that left out.

    Raises `TooLarge` for one that has no room without any history either.
    """
    if depth(record.metadata) >= DEEPEST:
        raise TooLarge(f"metadata is nested at most {DEEPEST - 1} deep; put the rest into the content")
    history: list[Any] = record.metadata.get(HISTORY, [])
    dropped = 0
    excess = _excess(record)
    while excess > 0 and dropped < len(history):
        while excess > 0 and dropped < len(history):
            excess -= len(str(history[dropped]))
            dropped += 1
        left = {HISTORY: history[dropped:]} if dropped < len(history) else {}
        others = {key: value for key, value in record.metadata.items() if key != HISTORY}
        record = msgspec.structs.replace(record, metadata=others | left)
        excess = _excess(record)
    check_size(record.path, render(record))
    if excess > 0:
        raise TooLarge(
            f"tags and metadata of a record have at most {LONGEST:,} characters, and these {excess:,} more; "
            "put them into its content"
        )
    return record, dropped


def _excess(record: Record) -> int:
    """How many characters are too many: of the file, or of what is above the content."""
    text = render(record)
    above = len(text) - len(record.content)
    most = EditLimits().max_file_size
    return max(len(text.encode(errors="replace")) - most, above + _FENCES - LONGEST)
