"""What an imported version keeps of the commit that it was made of: the last paragraph of its message.

    what a person wrote

    Git-Commit: 4b825dc6…
    Git-Parent: 91e0f3aa…
    Git-Author: Ann Smith <ann@example.org>
    Git-Author-Date: 2026-01-31T12:00:00+02:00
    Git-Committer: Bob Jones <bob@example.org>
    Git-Committer-Date: 2026-02-01T09:30:00+01:00
    Imported-By: root

A version is made when it is imported, so its time is that moment; those of the commit are here. A commit that
was exported from a store ended with such a paragraph itself: its lines come first, and whatever they say, it
is what the commit said. People are shown the two apart from the message.
"""

import re
from collections.abc import Sequence

from engramfs.model.version import Version
from engramfs.model.visible import visible

COMMIT, IMPORTED_BY = "Git-Commit", "Imported-By"
OURS = "Engramfs-"
_LONGEST_SUBJECT = 200  # characters
_LINE = re.compile(r"(Git-[A-Za-z-]+|Imported-By|Engramfs-[A-Za-z-]+): (.*)")
_COMMIT_ID = re.compile(r"[0-9a-f]{40,64}")


def with_source(text: str, lines: Sequence[tuple[str, str]]) -> str:
    """The message of an imported version."""
    paragraph = "\n".join(f"{name}: {visible(value)}" for name, value in lines)
    return f"{text}\n\n{paragraph}" if text else paragraph


def text_of(version: Version) -> str:
    """What a person wrote of a version."""
    return _split(version)[0]


def subject(version: Version) -> str:
    """The first line of that, cut where it is long."""
    first = text_of(version).strip().partition("\n")[0]
    return first if len(first) <= _LONGEST_SUBJECT else first[: _LONGEST_SUBJECT - 1] + "…"


def source_of(version: Version) -> dict[str, str]:
    """Where an imported version came from, by the names of the lines; of others nothing."""
    said, ours = source_lines(version)
    return {**dict(line for line in said if line[0].startswith(OURS)), **dict(ours)}


def source_lines(version: Version) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The lines that its commit ended with, if a store wrote it, and those that the import added."""
    lines = _split(version)[1]
    start = max((number for number, line in enumerate(lines) if line[0] == COMMIT), default=0)
    return lines[:start], lines[start:]


def commit_of(version: Version) -> str | None:
    """The id of the commit that `version` was made of, if it was."""
    found = source_of(version).get(COMMIT, "")
    return found if _COMMIT_ID.fullmatch(found) else None


def _split(version: Version) -> tuple[str, list[tuple[str, str]]]:
    if version.via != "import":
        return version.message, []
    lines = version.message.split("\n")
    start = len(lines)
    while start and _LINE.fullmatch(lines[start - 1]):
        start -= 1
    matches = [match for line in lines[start:] if (match := _LINE.fullmatch(line))]
    found = [(match[1], match[2]) for match in matches]
    if COMMIT not in dict(found):
        return version.message, []
    above = lines[: start - 1] if start and not lines[start - 1] else lines[:start]
    return "\n".join(above), found
