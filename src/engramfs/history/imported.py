"""What an imported version keeps of the commit that it was made of: the last paragraph of its message.

    what a person wrote

    Git-Commit: 4b825dc6…
    Git-Author: Ann Smith <ann@example.org>
    Git-Date: 2026-01-31T12:00:00.000000000Z
    Imported-By: root

A version is made when it is imported, so its time is that moment; that of the commit is here. A commit that
was exported from a store has lines of its own there, `Engramfs-…`. People are shown the two apart.
"""

import re
from collections.abc import Sequence

from engramfs.model.version import Version
from engramfs.model.visible import visible

COMMIT = "Git-Commit"
_LINE = re.compile(r"(Git-Commit|Git-Author|Git-Date|Imported-By|Engramfs-[A-Za-z-]+): (.*)")
_COMMIT_ID = re.compile(r"[0-9a-f]{40,64}")


def with_source(text: str, lines: Sequence[tuple[str, str]]) -> str:
    """The message of an imported version."""
    paragraph = "\n".join(f"{name}: {visible(value)}" for name, value in lines)
    return f"{text}\n\n{paragraph}" if text else paragraph


def text_of(version: Version) -> str:
    """What a person wrote of a version."""
    return _split(version)[0]


def source_of(version: Version) -> dict[str, str]:
    """Where an imported version came from, by the names of the lines; of others nothing."""
    return dict(_split(version)[1])


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
