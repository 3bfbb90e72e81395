"""`engramfs tree STORE[@N] [PATH]`: the names in a store, as a tree."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from engramfs.cli.arguments import refer, reference_argument, with_path
from engramfs.cli.command import Command
from engramfs.cli.entries import describe
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.pager import no_pager, paged
from engramfs.errors import NotFound
from engramfs.model.names import printable
from engramfs.model.quantities import format_size

if TYPE_CHECKING:
    from engramfs.history.tree import Tree
    from engramfs.model.entry import Entry


@click.command("tree", cls=Command, short_help="The names in a store, as a tree.")
@reference_argument
@click.argument("path", required=False)
@click.option("-d", "--depth", type=click.IntRange(min=1), metavar="N", help="At most N directories deep.")
@no_pager
@pass_invocation
def command(
    invocation: Invocation, reference: str, path: str | None, depth: int | None, no_pager: bool
) -> None:
    """Show what is in STORE, or below PATH in it, with sizes: at the head, or in version N."""
    from engramfs.history import catalog
    from engramfs.history.kept import path_tree_at
    from engramfs.history.tree import resolve

    with (
        invocation.opened() as client,
        paged(invocation, unless=no_pager),
        client.reading() as reader,
    ):
        wanted = with_path(refer(reader, reference), path)
        store = catalog.named(reader, wanted.store)
        start = wanted.path or b""
        tree = path_tree_at(reader, store, wanted.version, start)
        entry = resolve(tree, start)
        name = store.name if wanted.version is None else f"{store.name}@{wanted.version}"
        if entry is None:
            raise NotFound(
                f"there is no {printable(start)} in {name}; engramfs tree {name} shows what there is"
            )
        below = _below(tree, start, entry, depth)
        if invocation.json:
            invocation.output.document([describe(one.path, one.entry) for one in below])
        else:
            title = f"{name}:{printable(start)}" if start else name
            _print(invocation, title, entry, below)


class _Line:
    """An entry below the start, with the strokes that lead to it."""

    def __init__(self, path: bytes, entry: "Entry", strokes: str) -> None:
        self.path = path
        self.entry = entry
        self.strokes = strokes


def _below(
    tree: "Tree", path: bytes, entry: "Entry", depth: int | None, strokes: str = ""
) -> Iterator[_Line]:
    from engramfs.model.entry import Kind

    if entry.kind is not Kind.DIRECTORY or depth == 0:
        return
    children = list(tree.children(entry.node))
    for position, (name, child) in enumerate(children, start=1):
        where = path + b"/" + name if path else name
        is_last = position == len(children)
        yield _Line(where, child, strokes + ("└── " if is_last else "├── "))
        deeper = strokes + ("    " if is_last else "│   ")
        yield from _below(tree, where, child, None if depth is None else depth - 1, deeper)


def _print(invocation: Invocation, title: str, start: "Entry", below: Iterator[_Line]) -> None:
    from engramfs.model.entry import Kind

    output = invocation.output
    output.line((title, "yellow"), format_size(start.size) if start.kind is Kind.FILE else "")
    directories = files = size = 0
    for line in below:
        name, entry = printable(line.path.rpartition(b"/")[2]), line.entry
        if entry.kind is Kind.DIRECTORY:
            directories += 1
            output.line(line.strokes, (f"{name}/", "cyan"), separator="")
            continue
        files, size = files + 1, size + (entry.size if entry.kind is Kind.FILE else 0)
        what = f"-> {printable(entry.target)}" if entry.kind is Kind.SYMLINK else format_size(entry.size)
        output.line(f"{line.strokes}{name}", (what, "bright_black"))
    kinds = f"{directories:,} director{'y' if directories == 1 else 'ies'}"
    kinds += f", {files:,} file{'' if files == 1 else 's'}"
    output.line((f"{kinds}, {format_size(size)}", "bright_black"))
