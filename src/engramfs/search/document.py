"""A file as search sees it: its text, and what a record says of itself.

Of a record (`engramfs.model.record`) only the content is text; category, id, tags and metadata are labels.
The former contents that `metadata.history` keeps are not searched.
"""

import contextlib

import msgspec

from engramfs.errors import UsageError
from engramfs.model import record
from engramfs.model.names import printable
from engramfs.model.times import parse_time

LARGEST = 1 << 20  # bytes of a file that is indexed
_LOOKED_AT = 8192  # bytes in which a NUL makes a file a binary one
_BAD_SHARE = 0.01  # of characters; a text with more that are not UTF-8 is none
_HISTORY = "history"


class Document(msgspec.Struct, frozen=True):
    """`body` begins on line `first_line` of the file. `labels` are words that describe it beside its text."""

    body: str
    first_line: int = 1
    labels: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    category: str | None = None
    agent: str | None = None
    session: str | None = None
    created: int | None = None  # nanoseconds since 1970
    updated: int | None = None


def read_document(path: bytes, content: bytes) -> Document | None:
    """What is searched of a file. None for one that is too large or no text."""
    if len(content) > LARGEST or b"\0" in content[:_LOOKED_AT]:
        return None
    text = content.decode("utf-8", "replace").removeprefix("\ufeff")
    if text.count("\ufffd") > _BAD_SHARE * len(text):
        return None
    place = printable(path)
    names = place.split("/")
    if names[0] == record.DIRECTORY and len(names) >= 3 and place.endswith(".md"):
        return _of_record(record.parse(text, place))
    return Document(text, labels=tuple(names))


def _of_record(found: record.Record) -> Document:
    described = [value for key, value in found.metadata.items() if key != _HISTORY]
    return Document(
        found.content,
        found.line,
        labels=(found.category, found.id, *found.tags, *filter(None, map(_text, described))),
        tags=found.tags,
        category=found.category,
        agent=found.agent,
        session=found.session,
        created=_time(found.created),
        updated=_time(found.updated),
    )


def _text(value: object) -> str:
    """A scalar of YAML as text; nothing for others."""
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _time(text: str) -> int | None:
    with contextlib.suppress(UsageError):
        return parse_time(text) if text else None
    return None
