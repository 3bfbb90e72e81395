"""A memory record: one thing to remember, as the file `records/<category>/<id>.md` has it.

Front matter carries what programs ask for, the text below it is the content; a person may edit both.
"""

from typing import Any

import msgspec

from engramfs.model import front_matter

DIRECTORY = "records"  # in the store of the actor
GENERAL = "general"  # the category of what has none


class Record(msgspec.Struct, frozen=True):
    """Times are RFC 3339. `line` is the one (1-based) on which the content begins in the file."""

    id: str
    content: str
    category: str = GENERAL
    tags: tuple[str, ...] = ()
    agent: str | None = None
    session: str | None = None
    metadata: dict[str, Any] = {}
    created: str = ""
    updated: str = ""
    line: int = 1

    @property
    def path(self) -> str:
        return f"{DIRECTORY}/{self.category}/{self.id}.md"


def parse(text: str, path: str = "") -> Record:
    """The record in a file. Never raises: what a field should not be is taken as if it were not there.

    The name of its file is the id, whatever the front matter says: tools find a record by it. The directory
    is the category.
    """
    fields, content, line = front_matter.split(text)
    category, _, name = path.removeprefix(f"{DIRECTORY}/").rpartition("/")
    metadata = fields.get("metadata")
    tags = fields.get("tags")
    return Record(
        id=name.removesuffix(".md") or _text(fields, "id") or "",
        content=content.removesuffix("\n"),
        category=category or _text(fields, "category") or GENERAL,
        tags=tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
        agent=_text(fields, "agentId"),
        session=_text(fields, "sessionId"),
        metadata=metadata if isinstance(metadata, dict) else {},
        created=_text(fields, "created") or "",
        updated=_text(fields, "updated") or "",
        line=line,
    )


def render(record: Record) -> str:
    """The text of a record's file."""
    fields = {
        "id": record.id,
        "category": record.category,
        "tags": list(record.tags),
        "agentId": record.agent,
        "sessionId": record.session,
        "metadata": record.metadata,
        "created": record.created,
        "updated": record.updated,
    }
    return front_matter.join(fields, record.content + "\n")


def _text(fields: dict[str, Any], key: str) -> str | None:
    value = fields.get(key)
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
