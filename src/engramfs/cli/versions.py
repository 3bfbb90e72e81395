"""Versions and changes as lines for people, the way `log`, `show`, `import` and `restore` print them."""

import time
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from engramfs.cli.output import Cell, Output
from engramfs.history.imported import source_of, subject, text_of
from engramfs.model.entry import Kind
from engramfs.model.names import printable
from engramfs.model.quantities import format_size
from engramfs.model.version import PARTIAL, Change, ChangeKind

if TYPE_CHECKING:
    from engramfs.history.hygiene import FoundAt
    from engramfs.history.tree import Tree
    from engramfs.model.author import Author
    from engramfs.model.redaction import Redaction
    from engramfs.model.version import Version

_COLOURS = {
    ChangeKind.CREATED: "green",
    ChangeKind.MODIFIED: "yellow",
    ChangeKind.DELETED: "red",
    ChangeKind.RENAMED: "cyan",
}
_VIA = {
    "fs": "written in a mount",
    "import": "a directory or repository, imported",
    "deploy": "the program of an agent, deployed",
    "restore": "an old version, made the head again",
    "revert": "an old version, undone",
    "seed": "the first content of a memory",
    "approval": "what waited, approved",
}
REDACTED = "(redacted)"  # in the place of a path
_SHOWN = 3  # changes in a line of the log
_MOVED = 20  # files of a directory that was renamed
_NAMED = 5  # paths in a note
_RUN = 3  # numbers in a row that are shown as a range


def local_time(nanoseconds: int) -> str:
    """`2026-01-31 12:00:00`, in this machine's time zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(nanoseconds // 10**9))


def print_line(
    output: Output, version: "Version", changes: Iterable[Change], width: int, *, partial: bool = False
) -> None:
    """One version as one line; numbers are `width` digits wide."""
    shown = [change for _, change in zip(range(_SHOWN), changes, strict=False)]
    output.line(
        (f"@{version.number}".rjust(width + 1), "yellow"),
        local_time(version.time),
        (version.author.label(), "cyan"),
        (PARTIAL if partial else "", "bright_black"),
        *summary(version, shown),
    )


def summary(version: "Version", shown: Sequence[Change]) -> list[Cell]:
    """What a version is about: its flags, its message, its first changes."""
    cells: list[Cell] = []
    if flags := flags_of(version):
        cells.append((f"[{flags}]", "red"))
    if said := subject(version):
        cells.append((said, "bold"))
    cells.extend((f"{change.op.label} {path_of(change)}", _COLOURS[change.op]) for change in shown)
    if version.change_count > len(shown):
        cells.append(f"and {version.change_count - len(shown):,} more")
    return cells


def print_version(
    output: Output,
    store: str,
    version: "Version",
    changes: Iterable[Change],
    *,
    oldest: int = 1,
    tree: "Tree | None" = None,
) -> None:
    """A version as a heading and a line for each change; those below `oldest` are kept in part.

    `tree` is its tree, for the files in directories that were renamed.
    """
    output.line((f"{store}@{version.number}", "yellow"), (version.digest.hex(), "bright_black"))
    output.line("author ", (version.author.label(), "cyan"), _ids_of(version.author))
    output.line("came by", version.via, (_VIA.get(version.via, ""), "bright_black"))
    output.line("time   ", local_time(version.time))
    _print_field(output, "message", text_of(version).strip("\n").split("\n"))
    if source := source_of(version):
        output.line("source ", ("as the repository says it", "bright_black"))
        _print_field(output, "       ", [f"{name}: {value}" for name, value in source.items()])
    if flags := flags_of(version):
        output.line("flags  ", (flags, "red"))
    if version.number < oldest:
        output.line(
            "kept   ",
            ("in part: retention removed the rest of its tree", "yellow"),
            f"the oldest whole version is {store}@{oldest}",
        )
    output.line("")
    listed = list(changes)
    named = {change.path for change in listed}
    for change in listed:
        has_size = change.kind is not Kind.DIRECTORY and change.op is not ChangeKind.DELETED
        size = format_size(change.size) if has_size else ""
        output.line((f"{change.op.label:<8}", _COLOURS[change.op]), path_of(change), (size, "bright_black"))
        if tree is not None and change.op is ChangeKind.RENAMED and not change.is_redacted:
            _print_moved(output, tree, change, named)


def _print_moved(output: Output, tree: "Tree", change: Change, named: set[bytes]) -> None:
    """The first files of a directory that was renamed, but for those that are `named` for something else."""
    from engramfs.history.tree import walk

    below = walk(tree, change.path) if change.kind is Kind.DIRECTORY else iter(())
    moved = (
        REDACTED if entry.is_redacted else printable(path)
        for path, entry in below
        if entry.kind is not Kind.DIRECTORY and path not in named
    )
    files = list(islice(moved, _MOVED + 1))
    for path in files[:_MOVED]:
        output.line(f"{'with':<8}", (path, "bright_black"))
    if len(files) > _MOVED:
        output.line(f"{'with':<8}", ("more; the patch lists them all", "bright_black"))


def _print_field(output: Output, name: str, lines: Sequence[str]) -> None:
    """Lines under one name; nothing when there is no text."""
    for number, line in enumerate(lines if any(lines) else ()):
        output.line(" " * len(name) if number else name, line)


def _ids_of(author: "Author") -> str:
    """`person`, or the ids of an agent's session: `(agent digest, actor ann, session 4f2a)`."""
    ids = {"agent": author.agent, "actor": author.actor, "tenant": author.tenant, "session": author.session}
    given = ", ".join(f"{what} {value}" for what, value in ids.items() if value)
    return f"({given})" if author.kind == "agent" else author.kind


def print_redactions(output: Output, redactions: "Iterable[Redaction]") -> None:
    """Who took something out of a version, when and why."""
    for redaction in redactions:
        count = f"{redaction.changes:,} change{'' if redaction.changes == 1 else 's'}"
        count = "its message" if redaction.header else count if redaction.changes else "what was there before"
        output.line(
            ("redacted", "red"),
            f"{local_time(redaction.time)} by {redaction.author.label()}, {count}:",
            redaction.reason,
        )


def print_secrets(output: Output, found: "Iterable[FoundAt]") -> None:
    """Where a version looks like it holds secrets, and of which kind; never the secret."""
    for each in found:
        output.line(("secret  ", "red"), _place_of(each), (each.kind, "bright_black"))


def _place_of(found: "FoundAt") -> str:
    """`notes/a.md:3` for a line of a content."""
    match found.where:
        case "content":
            return f"{found.path}:{found.line}"
        case "name":
            return f"the name {found.path}"
        case "target":
            return f"where {found.path} leads"
        case "attribute":
            return f"an attribute of {found.path or '.'}"
        case "message":
            return "the message"


def path_of(change: Change) -> str:
    """The path of a change; of a rename, both."""
    if change.is_redacted:
        return REDACTED
    path = printable(change.path) or "."
    return f"{printable(change.from_path) or REDACTED} → {path}" if change.from_path is not None else path


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


def note_redacted(output: Output, paths: Sequence[str], what: str) -> None:
    """Say, beside the result, which files have no content any more and what that means for them."""
    if not paths:
        return
    count = f"{len(paths):,} file{'' if len(paths) == 1 else 's'}"
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    output.note(f"{count} whose content was redacted, {what}: {', '.join(paths[:_NAMED])}{more}")


def ranges(numbers: Iterable[int]) -> list[str]:
    """Ascending numbers; three and more that follow each other are one, as `1-3`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = ([f"{run[0]}-{run[-1]}"] if len(run) >= _RUN else list(map(str, run)) for run in runs)
    return [one for each in shown for one in each]
