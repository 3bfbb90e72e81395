"""`engramfs diff STORE[@A] [STORE@B] [PATH]`: what differs between two versions."""

from typing import TYPE_CHECKING, Any

import click

from engramfs.cli import offline
from engramfs.cli.arguments import complete_stores, refer, reference_argument
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.log import with_path
from engramfs.errors import NotFound, UsageError
from engramfs.model.names import printable

if TYPE_CHECKING:
    from engramfs.history.diff import Difference
    from engramfs.history.repository import Repository
    from engramfs.model.entry import Entry
    from engramfs.model.reference import Reference
    from engramfs.storage.protocol import Reader


@click.command("diff", cls=Command, short_help="What differs between two versions.")
@reference_argument
@click.argument("second", required=False, metavar="[STORE@B]", shell_complete=complete_stores)
@click.argument("path", required=False)
@pass_invocation
def command(invocation: Invocation, reference: str, second: str | None, path: str | None) -> None:
    """Show what differs: STORE against the version before, STORE@A against the head or STORE@B."""
    with offline.reading(invocation) as repository:
        old, new = _sides(repository, reference, second, path)
        with repository.engine.reading() as reader:
            _diff(invocation, reader, old, new)


def _sides(
    repository: "Repository", first: str, second: str | None, path: str | None
) -> tuple["Reference", "Reference | None"]:
    """The two references, the first with the path; the second argument may be that path."""
    old = refer(repository, first)
    new = None
    if second is not None and (second == old.store or second.startswith((f"{old.store}@", f"{old.store}:"))):
        new = refer(repository, second)
    elif second is not None and path is not None:
        raise UsageError(f"{second} is no version of {old.store}; write {old.store}@N")
    else:
        path = second
    old = with_path(old, path)
    if new is not None and new.path and new.path != old.path:
        raise UsageError("diff compares one path in two versions; name it once, at the end")
    return old, new


def _diff(invocation: Invocation, reader: "Reader", old: "Reference", new: "Reference | None") -> None:
    from engramfs.history import catalog
    from engramfs.history.diff import differences
    from engramfs.history.tree import resolve, tree_at

    store = catalog.named(reader, old.store)
    newest = catalog.head(reader, store.id).number
    before, after = _numbers(old, new, newest)
    path = old.path or b""
    trees = tree_at(reader, store, before), tree_at(reader, store, after)
    if path and not any(resolve(tree, path) for tree in trees):
        raise NotFound(
            f"there is no {printable(path)} in {store.name}@{before} or @{after}; "
            f"engramfs show {store.name}: lists what there is"
        )
    found = differences(*trees, path)
    if invocation.json:
        invocation.output.document([_document(difference) for difference in found])
        return
    for difference in found:
        _print(invocation, reader, difference)


def _numbers(old: "Reference", new: "Reference | None", newest: int) -> tuple[int, int]:
    """The versions to compare; one that is not named is the head, or the one before when nothing is."""
    if new is not None:
        before, after = (newest if number is None else number for number in (old.version, new.version))
        return before, after
    return (max(newest - 1, 0) if old.version is None else old.version), newest


def _document(difference: "Difference") -> dict[str, Any]:
    from engramfs.cli.show import describe

    path, old, new = difference.path, difference.old, difference.new
    op = "created" if old is None else "deleted" if new is None else "modified"
    return {
        "op": op,
        "path": printable(path),
        "old": describe(path, old) if old else None,
        "new": describe(path, new) if new else None,
    }


def _print(invocation: Invocation, reader: "Reader", difference: "Difference") -> None:
    from engramfs.history.diff import unified

    output, path = invocation.output, printable(difference.path) or "."
    old, new = difference.old, difference.new
    output.line((f"{_verb(old, new)} {path}", "bold"))
    if old and new and old.mode != new.mode:
        output.line(f"mode {old.mode:04o} → {new.mode:04o}")
    for line in unified(_content(reader, old), _content(reader, new), difference.path):
        output.line((line, _colour(line)) if _colour(line) else line)


def _verb(old: "Entry | None", new: "Entry | None") -> str:
    entry = new or old
    assert entry is not None
    return (
        f"{'created' if old is None else 'deleted' if new is None else 'modified'} {entry.kind.name.lower()}"
    )


def _content(reader: "Reader", entry: "Entry | None") -> bytes | None:
    """What a diff shows of an entry: a file's content, a symlink's target, nothing of a directory."""
    from engramfs.model.entry import Kind
    from engramfs.storage import blobs

    if entry is None or entry.kind is Kind.DIRECTORY:
        return None
    if entry.kind is Kind.SYMLINK:
        return entry.target
    return blobs.read(reader, entry.digest, entry.size)


def _colour(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
