"""A file as search sees it: its text, and what a record says of itself.

A record is a file `records/<category>/<id>.md` with YAML front matter. People edit records by hand, so
nothing in the front matter is relied on: what cannot be read is left out, and the category of last resort
is the directory. The former contents that `metadata.history` keeps are not searched.
"""

import contextlib
from typing import Any

import msgspec

from engramfs.errors import UsageError
from engramfs.model.names import printable
from engramfs.model.times import parse_time
from engramfs.search.front_matter import split

LARGEST = 1 << 20  # bytes of a file that is indexed
_LOOKED_AT = 8192  # bytes in which a NUL makes a file a binary one
_BAD_SHARE = 0.01  # of characters; a text with more that are not UTF-8 is none
_HISTORY = "history"


class Document(msgspec.Struct, frozen=True):
    """`body` begins on line `first_line` of the file. `labels` are words that describe it beside its text."""

    body: str
    first_line: int = 1
    labels: tuple[str, ...] = ()
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
    names = printable(path).split("/")
    if len(names) >= 3 and names[0] == "records" and names[-1].endswith(".md"):
        return _record(names, text)
    return Document(text, labels=tuple(names))


def is_record(path: bytes) -> bool:
    return path.startswith(b"records/") and path.count(b"/") >= 2 and path.endswith(b".md")


def _record(names: list[str], text: str) -> Document:
    fields, body, first_line = split(text)
    category = _text(fields.get("category")) or names[1]
    identifier = names[-1].removesuffix(".md")
    tags = fields.get("tags")
    labels = [category, identifier, *(_texts(tags) if isinstance(tags, list) else _texts([tags]))]
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        labels += _texts([value for key, value in metadata.items() if key != _HISTORY])
    return Document(
        body,
        first_line,
        tuple(labels),
        category=category,
        agent=_text(fields.get("agentId")),
        session=_text(fields.get("sessionId")),
        created=_time(fields.get("created")),
        updated=_time(fields.get("updated")),
    )


def _texts(values: list[Any]) -> list[str]:
    return [text for value in values if (text := _text(value))]


def _text(value: object) -> str | None:
    """A scalar of YAML as text: an unquoted tag `2025` is a number there."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value).strip() or None


def _time(value: object) -> int | None:
    with contextlib.suppress(UsageError):
        return parse_time(str(value)) if value is not None else None
    return None
