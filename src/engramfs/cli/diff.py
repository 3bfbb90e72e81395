"""`engramfs diff STORE[@A] [STORE@B | DIR] [PATH]`: what differs between versions, or from a directory."""

import os
from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec

from engramfs.cli.arguments import complete_stores, must_be_directory, refer, reference_argument, with_path
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.pager import no_pager, paged
from engramfs.cli.patches import Contents, binary_option, documents, print_patch, print_stat
from engramfs.errors import NotFound, UsageError
from engramfs.model.names import printable, raw

if TYPE_CHECKING:
    from engramfs.history.diff import Difference
    from engramfs.model.reference import Reference
    from engramfs.model.store import Store
    from engramfs.storage.protocol import Reader


class _Sides(msgspec.Struct, frozen=True):
    """The two things to compare, the first with the path; at most one of the others is given."""

    old: "Reference"
    new: "Reference | None" = None
    directory: str | None = None


@click.command("diff", cls=Command, short_help="What differs between two versions.")
@reference_argument
@click.argument("second", required=False, metavar="[STORE@B | DIR]", shell_complete=complete_stores)
@click.argument("path", required=False)
@click.option("--dir", "directory", metavar="DIR", help="Against the directory DIR, whatever it looks like.")
@click.option("--stat", is_flag=True, help="Only how many lines came and went in each file.")
@binary_option
@no_pager
@pass_invocation
def command(
    invocation: Invocation,
    reference: str,
    second: str | None,
    path: str | None,
    directory: str | None,
    stat: bool,
    binary: bool,
    no_pager: bool,
) -> None:
    """Show what differs: STORE against the version before, STORE@A against the head or STORE@B.

    With DIR, the head or STORE@A against a directory on disk: what an import of it would change. An argument
    that is . or .. or begins with / or ./ or ../ is taken for one, and no path in a store looks like that.
    """
    with invocation.opened() as client, paged(invocation, unless=no_pager), client.reading() as reader:
        found, contents = _differences(reader, _sides(reader, reference, second, path, directory))
        if invocation.json:
            invocation.output.document(documents(found, contents, stat=stat))
        elif stat:
            print_stat(invocation.output, found, contents)
        else:
            print_patch(invocation.output, found, contents, binary=binary)


def _sides(
    reader: "Reader", first: str, second: str | None, path: str | None, directory: str | None
) -> _Sides:
    """What the arguments mean; the second may be the other version, a directory, or the path."""
    old, new = refer(reader, first), None
    if second is not None and directory is None and _is_directory(second):
        directory, second = second, None
    if second is not None and (second == old.store or second.startswith((f"{old.store}@", f"{old.store}:"))):
        new, second = refer(reader, second), None
    if second is not None and path is not None:
        otherwise = _or_directory(second) or f"write {old.store}@N"
        raise UsageError(f"{second} is no version of {old.store}; {otherwise}")
    old = with_path(old, second if path is None else path)
    if new is not None and directory is not None:
        raise UsageError("diff compares with a version or with a directory; leave one out")
    if new is not None and new.path and new.path != old.path:
        raise UsageError("diff compares one path in two versions; name it once, at the end")
    return _Sides(old, new, must_be_directory(directory) if directory is not None else None)


def _is_directory(argument: str) -> bool:
    return argument in (".", "..") or argument.startswith(("/", "./", "../"))


def _or_directory(argument: str) -> str:
    """What to do when the argument was meant as a directory that is there; empty when there is none."""
    return f"for the directory, write ./{argument}" if os.path.isdir(argument) else ""


def _differences(reader: "Reader", sides: _Sides) -> "tuple[list[Difference], Contents]":
    from engramfs.history import catalog

    store = catalog.named(reader, sides.old.store)
    if sides.directory is not None:
        return _from_directory(reader, store, sides.old, raw(sides.directory))
    return _between(reader, store, sides.old, sides.new)


def _between(
    reader: "Reader", store: "Store", old: "Reference", new: "Reference | None"
) -> "tuple[list[Difference], Contents]":
    from engramfs.history import catalog
    from engramfs.history.between import between
    from engramfs.history.diff import with_renames
    from engramfs.history.kept import path_tree_at
    from engramfs.history.patch import content_of
    from engramfs.history.tree import resolve

    before, after = _numbers(old, new, catalog.head(reader, store.id).number)
    path = old.path or b""
    trees = [path_tree_at(reader, store, number, path) for number in (before, after)]
    if path and not any(resolve(tree, path) for tree in trees):
        raise _no_path(store, path, f"@{before} or @{after}", _or_directory(printable(path)))

    def contents(one: "Difference") -> tuple[bytes | None, bytes | None]:
        return content_of(reader, one.old), content_of(reader, one.new)

    return with_renames(between(reader, store, before, after, path)), contents


def _from_directory(
    reader: "Reader", store: "Store", old: "Reference", directory: bytes
) -> "tuple[list[Difference], Contents]":
    from engramfs.history.against_directory import against_directory, content_on_disk
    from engramfs.history.kept import path_tree_at
    from engramfs.history.patch import content_of
    from engramfs.history.tree import resolve

    path = old.path or b""
    tree = path_tree_at(reader, store, old.version, path)
    found = list(against_directory(tree, directory, path))
    if path and not found and resolve(tree, path) is None:
        raise _no_path(store, path, f" or {printable(directory)}")
    on_disk = partial(content_on_disk, directory)

    def contents(one: "Difference") -> tuple[bytes | None, bytes | None]:
        return content_of(reader, one.old), on_disk(one.path, one.new)

    return found, contents


def _no_path(store: "Store", path: bytes, where: str, otherwise: str = "") -> NotFound:
    otherwise = otherwise or f"engramfs show {store.name}: lists what there is"
    return NotFound(f"there is no {printable(path)} in {store.name}{where}; {otherwise}")


def _numbers(old: "Reference", new: "Reference | None", newest: int) -> tuple[int, int]:
    """The versions to compare; one that is not named is the head, or the one before when nothing is."""
    if new is not None:
        before, after = (newest if number is None else number for number in (old.version, new.version))
        return before, after
    return (max(newest - 1, 0) if old.version is None else old.version), newest
