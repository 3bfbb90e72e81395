"""What a check found."""

from typing import Literal

import msgspec

Level = Literal["ok", "note", "problem"]


class Finding(msgspec.Struct, frozen=True):
    """A line each: what is so, what that means, and what to do about it. Of what is `ok`, the first alone."""

    level: Level
    found: str
    meaning: str = ""
    do: str = ""


def ok(found: str) -> Finding:
    """As it should be."""
    return Finding("ok", found)


def note(found: str, meaning: str, do: str) -> Finding:
    """It works, less well or for now."""
    return Finding("note", found, meaning, do)


def problem(found: str, meaning: str, do: str) -> Finding:
    """Something that is promised cannot be kept."""
    return Finding("problem", found, meaning, do)
