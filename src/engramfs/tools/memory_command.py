"""A command of the tool `memory` as it comes from a model, and what each needs."""

from typing import Any, Literal

import msgspec

from engramfs.errors import UsageError
from engramfs.tools.call import converted

_NEEDED = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}


class MemoryCommand(msgspec.Struct, frozen=True):
    """`needed` says what each command needs; what else is given of it is optional."""

    command: Literal["view", "create", "str_replace", "insert", "delete", "rename"]
    path: str | None = None
    view_range: tuple[int, ...] | None = None
    file_text: str | None = None
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | None = None
    insert_text: str | None = None
    old_path: str | None = None
    new_path: str | None = None

    def needed(self) -> tuple[Any, ...]:
        """What the command needs, in this order. Raises `UsageError` for the first that is missing."""
        for name in _NEEDED[self.command]:
            if getattr(self, name) is None:
                raise UsageError(f"this command needs {name}")
        return tuple(getattr(self, name) for name in _NEEDED[self.command])


def check(given: object) -> None:
    """Raises `UsageError` for arguments that are no command, or not all that it needs."""
    if not isinstance(given, dict):
        raise UsageError("wrong arguments: a command is an object with the key command")
    converted(given, MemoryCommand).needed()
