"""Versions and changes as lines for people, the way `log`, `show`, `import` and `restore` print them."""

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from engramfs.cli.output import Cell, Output
from engramfs.model.names import printable
from engramfs.model.quantities import format_size
from engramfs.model.version import Change, ChangeKind

if TYPE_CHECKING:
    from engramfs.model.version import Version

_COLOURS = {
    ChangeKind.CREATED: "green",
    ChangeKind.MODIFIED: "yellow",
    ChangeKind.DELETED: "red",
    ChangeKind.RENAMED: "cyan",
}
_SHOWN = 3  # changes in a line of the log


def local_time(nanoseconds: int) -> str:
    """`2026-01-31 12:00:00`, in this machine's time zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(nanoseconds // 10**9))


def print_line(output: Output, version: "Version", changes: Iterable[Change], width: int) -> None:
    """One version as one line; numbers are `width` digits wide."""
    shown = [change for _, change in zip(range(_SHOWN), changes, strict=False)]
    output.line(
        (f"@{version.number}".rjust(width + 1), "yellow"),
        local_time(version.time),
        (version.author.label(), "cyan"),
        *summary(version, shown),
    )


def summary(version: "Version", shown: Sequence[Change]) -> list[Cell]:
    """What a version is about: its flags, its message, its first changes."""
    cells: list[Cell] = []
    if flags := flags_of(version):
        cells.append((f"[{flags}]", "red"))
    if version.message:
        cells.append((version.message.partition("\n")[0], "bold"))
    cells.extend((f"{change.op.label} {path_of(change)}", _COLOURS[change.op]) for change in shown)
    if version.change_count > len(shown):
        cells.append(f"and {version.change_count - len(shown):,} more")
    return cells


def print_version(output: Output, store: str, version: "Version", changes: Iterable[Change]) -> None:
    """A version as a heading and a line for each change."""
    output.line((f"{store}@{version.number}", "yellow"), (version.digest.hex(), "bright_black"))
    output.line("author ", (version.author.label(), "cyan"), f"by {version.via}")
    output.line("time   ", local_time(version.time))
    if version.message:
        output.line("message", version.message)
    if flags := flags_of(version):
        output.line("flags  ", (flags, "red"))
    output.line("")
    for change in changes:
        size = "" if change.op is ChangeKind.DELETED else format_size(change.size)
        output.line((f"{change.op.label:<8}", _COLOURS[change.op]), path_of(change), (size, "bright_black"))


def path_of(change: Change) -> str:
    """The path of a change; of a rename, both."""
    path = printable(change.path)
    return f"{printable(change.from_path)} → {path}" if change.from_path is not None else path


def flags_of(version: "Version") -> str:
    overwritten = (f"overwrites @{number}" for number in version.overwrites)
    return ", ".join([*version.flags, *overwritten])


def print_recorded(output: Output, store: str, version: dict[str, Any] | None, done: str) -> None:
    """What a command recorded, from the version's JSON; None: nothing changed, so no version."""
    if version is None:
        output.line(("nothing changed", "yellow"), f"{store} is as it was")
        return
    count = len(version["changes"])
    output.line(
        (done, "green"), f"{store}@{version['number']}", f"{count:,} change{'' if count == 1 else 's'}"
    )
