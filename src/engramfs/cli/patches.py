"""Differences as `diff`, `show` and `log` print them: a patch, a summary of lines, JSON."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from engramfs.cli.columns import cells, padded
from engramfs.cli.output import Output
from engramfs.cli.versions import REDACTED
from engramfs.errors import Redacted
from engramfs.model.names import printable
from engramfs.model.visible import visible

if TYPE_CHECKING:
    from engramfs.history.diff import Difference
    from engramfs.model.entry import Entry

Contents = Callable[["Difference"], tuple[bytes | None, bytes | None]]  # before and after
_WIDTH = 40  # of the bars in a summary
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


binary_option = click.option("--binary", is_flag=True, help="Binary files whole, as git apply takes them.")


def print_patch(
    output: Output, found: "Iterable[Difference]", contents: Contents, *, binary: bool = False
) -> None:
    """Every difference, with the lines that came and went, for people and for `git apply` alike.

    Of binary files it says only that they differ, which `git apply` refuses, unless `binary`.
    """
    for difference in found:
        if not difference.is_implied:
            output.line((headline(difference), "bold"))
        old, new = difference.old, difference.new
        if old and new and old.mode != new.mode:
            output.line(f"mode {old.mode:04o} → {new.mode:04o}")
        for line in _patch(difference, contents, binary):
            output.content(line, _colour(line))


def headline(difference: "Difference") -> str:
    """`modified file notes.md`, `renamed directory old → new`."""
    entry = difference.new or difference.old
    assert entry is not None
    path = REDACTED if difference.hides_path else printable(difference.path) or "."
    if difference.from_path is not None and not difference.hides_path:
        source = REDACTED if difference.hides_from_path else printable(difference.from_path)
        path = f"{source} → {path}"
    return f"{operation(difference)} {entry.kind.name.lower()} {path}"


def operation(difference: "Difference") -> str:
    """created, modified, deleted or renamed."""
    if difference.from_path is not None:
        return "renamed"
    return "created" if difference.old is None else "deleted" if difference.new is None else "modified"


def _patch(difference: "Difference", contents: Contents, binary: bool) -> Iterator[str]:
    from engramfs.history.git_patch import git_patch

    try:
        old, new = _read(difference, contents)
    except Redacted:
        yield _redacted(difference)
        return
    yield from git_patch(difference, old, new, binary=binary)


def _redacted(difference: "Difference") -> str:
    """Which side of a difference has no content any more."""
    old, new = difference.old, difference.new
    if old is not None and old.is_redacted and new is not None and not new.is_redacted:
        return "the content from before was redacted"
    if old is not None and not old.is_redacted:
        return "the new content was redacted"
    return "the content was redacted"


def _read(difference: "Difference", contents: Contents) -> tuple[bytes | None, bytes | None]:
    """The contents; of a file that moved with its directory they are the same, so nothing is read."""
    from engramfs.model.entry import Kind

    entry = difference.new
    if difference.is_implied and entry is not None and entry.kind is Kind.FILE and not entry.is_redacted:
        return b"", b""
    return contents(difference)


def _colour(line: str) -> str:
    return "bold" if line.startswith(("+++", "---")) else _COLOURS.get(line[:1], "")


def print_stat(output: Output, found: "Iterable[Difference]", contents: Contents) -> None:
    """A line for each difference with how much changed, of a directory nothing, and the sum."""
    rows = [(visible(headline(one)), counts(one, contents)) for one in found]
    width = max((cells(name) for name, _ in rows), default=0)
    most = max((row["added"] + row["removed"] for _, row in rows), default=0)
    for name, row in rows:
        if row["binary"] or row.get("redacted"):
            output.line(f"{padded(name, width)} | {'binary' if row['binary'] else 'redacted'}")
            continue
        added, removed = (_bar(row[key], most) for key in ("added", "removed"))
        total = f"{padded(name, width)} | {row['added'] + row['removed']:>{len(str(most))}}"
        output.line(total, ("+" * added, "green"), ("-" * removed, "red"), separator=" ")
    added, removed = (sum(row[key] for _, row in rows) for key in ("added", "removed"))
    output.line(
        f"{len(rows):,} changed, {added:,} {'line' if added == 1 else 'lines'} added, {removed:,} removed"
    )


def _bar(lines: int, most: int) -> int:
    """How long the bar of so many lines is; a line is at least one mark."""
    return lines if most <= _WIDTH else max(min(lines, 1), lines * _WIDTH // most)


def counts(difference: "Difference", contents: Contents) -> dict[str, Any]:
    """The lines that came and went: `added`, `removed`, `binary`; and `redacted` where nobody can tell."""
    from engramfs.history.patch import count

    try:
        counted = count(*_read(difference, contents))
    except Redacted:
        return {"added": 0, "removed": 0, "binary": False, "redacted": True}
    return {"added": counted.added, "removed": counted.removed, "binary": counted.binary}


def documents(
    found: "Iterable[Difference]",
    contents: Contents,
    *,
    stat: bool = False,
    patch: bool = False,
    binary: bool = False,
) -> list[dict[str, Any]]:
    """Differences as JSON, each as `document` has it."""
    return [document(one, contents, stat=stat, patch=patch, binary=binary) for one in found]


def document(
    difference: "Difference",
    contents: Contents,
    *,
    stat: bool = False,
    patch: bool = False,
    binary: bool = False,
) -> dict[str, Any]:
    """A difference as JSON: op, path, from_path, old, new; the counts with `stat`, the text with `patch`.

    Paths that were redacted are empty. `implied`: it moved with the directory above, and nothing else.
    """
    path = b"" if difference.hides_path else difference.path
    from_path = difference.from_path
    if from_path is not None and difference.hides_from_path:
        from_path = b""
    described: dict[str, Any] = {
        "op": operation(difference),
        "path": printable(path),
        "from_path": None if from_path is None else printable(from_path),
        "old": _entry(from_path if from_path is not None else path, difference.old),
        "new": _entry(path, difference.new),
        "implied": difference.is_implied,
    }
    if stat:
        described |= counts(difference, contents)
    if patch:
        described["patch"] = "".join(f"{line}\n" for line in _patch(difference, contents, binary))
    return described


def _entry(path: bytes, entry: "Entry | None") -> dict[str, Any] | None:
    from engramfs.cli.entries import describe

    return describe(path, entry) if entry is not None else None
