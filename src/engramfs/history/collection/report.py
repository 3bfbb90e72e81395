"""What a collection freed, and how far it is."""

from collections.abc import Callable

import msgspec

Progress = Callable[[str, int, int], None]  # what is done now; steps done, of all (0: not known)


class Collected(msgspec.Struct):
    """`used` are bytes of the log in use, `disk` what its file takes; both before and after."""

    began: float = 0.0  # monotonic
    versions: int = 0  # that retention removed
    contents: int = 0  # that nothing needed
    deltas: int = 0  # parts of contents that became deltas
    used_before: int = 0
    used_after: int = 0
    disk_before: int = 0
    disk_after: int = 0
    seconds: float = 0.0
    notes: list[str] = []
