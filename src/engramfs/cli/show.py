"""`engramfs show STORE[@N][:PATH]`: a version, or a file or directory as it was."""

import stat
from typing import TYPE_CHECKING

import click

from engramfs.cli.arguments import refer, reference_argument
from engramfs.cli.command import Command
from engramfs.cli.entries import describe
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.pager import no_pager, paged
from engramfs.cli.patches import binary_option
from engramfs.errors import NotFound, Redacted
from engramfs.model.names import printable
from engramfs.model.quantities import format_size

if TYPE_CHECKING:
    from engramfs.history.tree import Tree
    from engramfs.model.entry import Entry
    from engramfs.model.reference import Reference
    from engramfs.model.store import Store
    from engramfs.storage.protocol import Reader


@click.command("show", cls=Command, short_help="A version, or a file as it was.")
@reference_argument
@click.option("--stat", is_flag=True, help="With how many lines came and went in each file.")
@click.option("-p", "--patch", is_flag=True, help="With the lines themselves.")
@binary_option
@no_pager
@pass_invocation
def command(
    invocation: Invocation, reference: str, stat: bool, patch: bool, binary: bool, no_pager: bool
) -> None:
    """Show a version and its changes; with a path, the file or directory as it was then.

    STORE is the newest version, STORE@N an older one, STORE@N:PATH a file in it, STORE: its top directory.
    """
    from engramfs.history import catalog

    with invocation.opened() as client, paged(invocation, unless=no_pager), client.reading() as reader:
        wanted = refer(reader, reference)
        store = catalog.named(reader, wanted.store)
        if wanted.path is None:
            _show_version(invocation, reader, store, wanted.version, stat=stat, patch=patch, binary=binary)
        else:
            _show_path(invocation, reader, store, wanted)


def _show_version(
    invocation: Invocation, reader: "Reader", store: "Store", number: int | None, **asked: bool
) -> None:
    from engramfs.cli.version_printing import VersionPrinter
    from engramfs.history import catalog, log
    from engramfs.history.selection import Selected

    head = catalog.head(reader, store.id)
    if number is None:
        number = head.number
        if number == 0:
            raise NotFound(f"store {store.name} has no version yet; engramfs import makes one")
    one = Selected(log.version(reader, store, number), b"")
    printer = VersionPrinter(invocation, store, head, **asked, secrets=True)
    if invocation.json:
        invocation.output.document({"store": store.name, **printer.describe(reader, one)})
    else:
        printer.print_version(reader, one)


def _show_path(invocation: Invocation, reader: "Reader", store: "Store", wanted: "Reference") -> None:
    from engramfs.history.kept import path_tree_at

    where = f"{store.name}@{wanted.version}" if wanted.version is not None else store.name
    tree = path_tree_at(reader, store, wanted.version, wanted.path or b"")
    hint = f"engramfs show {where}: lists what there is"
    show_entry(invocation, reader, tree, wanted.path or b"", where, hint)


def show_entry(
    invocation: Invocation, reader: "Reader", tree: "Tree", path: bytes, where: str, hint: str
) -> None:
    """Print what is at `path` in a tree. Raises `NotFound` and `Redacted`, saying `where`, and the hint."""
    from engramfs.history.tree import resolve
    from engramfs.model.entry import Kind

    entry = resolve(tree, path)
    if entry is None:
        raise NotFound(f"there is no {printable(path)} in {where}; {hint}")
    if entry.is_redacted:
        raise Redacted(f"what {printable(path)} held in {where} was redacted, and cannot be shown; {hint}")
    if entry.kind is Kind.DIRECTORY:
        _show_directory(invocation, tree, entry, path)
    else:
        _show_content(invocation, reader, entry, path)


def _show_directory(invocation: Invocation, tree: "Tree", entry: "Entry", path: bytes) -> None:
    children = list(tree.children(entry.node))
    if invocation.json:
        entries = [describe(name, child) for name, child in children]
        invocation.output.document({**describe(path, entry), "entries": entries})
        return
    from engramfs.cli.versions import local_time

    rows = [
        (
            stat.filemode(child.st_mode),
            format_size(child.size),
            local_time(child.mtime),
            (printable(name), "cyan") if stat.S_ISDIR(child.st_mode) else printable(name),
        )
        for name, child in children
    ]
    invocation.output.table(["MODE", "SIZE", "TIME", "NAME"], rows, right="SIZE")


def _show_content(invocation: Invocation, reader: "Reader", entry: "Entry", path: bytes) -> None:
    from engramfs.model.entry import Kind
    from engramfs.storage import blobs

    if invocation.json:
        content = entry.target or blobs.read(reader, entry.digest, entry.size)
        invocation.output.document({**describe(path, entry), **_content(content)})
    elif entry.kind is Kind.SYMLINK:
        invocation.output.line(printable(entry.target))
    else:
        for part in blobs.parts(reader, entry.digest, entry.size):
            invocation.output.raw(part)


def _content(content: bytes) -> dict[str, str]:
    """`content` as text when it is, else `content_base64`."""
    try:
        return {"content": content.decode()}
    except UnicodeDecodeError:
        import base64

        return {"content_base64": base64.b64encode(content).decode()}
