"""`engramfs show STORE[@N][:PATH]`: a version, or a file or directory as it was."""

import stat
from typing import TYPE_CHECKING, Any

import click

from engramfs.cli import offline
from engramfs.cli.arguments import refer, reference_argument
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.errors import NotFound
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
@pass_invocation
def command(invocation: Invocation, reference: str) -> None:
    """Show a version and its changes; with a path, the file or directory as it was then.

    STORE is the newest version, STORE@N an older one, STORE@N:PATH a file in it, STORE: its top directory.
    """
    from engramfs.history import catalog

    with offline.reading(invocation) as repository:
        wanted = refer(repository, reference)
        with repository.engine.reading() as reader:
            store = catalog.named(reader, wanted.store)
            if wanted.path is None:
                _show_version(invocation, reader, store, wanted.version)
            else:
                _show_path(invocation, reader, store, wanted)


def _show_version(invocation: Invocation, reader: "Reader", store: "Store", number: int | None) -> None:
    from engramfs.cli.versions import print_version
    from engramfs.history import catalog, log

    if number is None:
        number = catalog.head(reader, store.id).number
        if number == 0:
            raise NotFound(f"store {store.name} has no version yet; engramfs import makes one")
    version = log.version(reader, store, number)
    changes = log.changes(reader, store.id, number)
    if invocation.json:
        invocation.output.document({"store": store.name, **log.describe(version, changes)})
    else:
        print_version(invocation.output, store.name, version, changes)


def _show_path(invocation: Invocation, reader: "Reader", store: "Store", wanted: "Reference") -> None:
    from engramfs.history.tree import resolve, tree_at
    from engramfs.model.entry import Kind

    path = wanted.path or b""
    tree = tree_at(reader, store, wanted.version)
    entry = resolve(tree, path)
    if entry is None:
        where = f"{store.name}@{wanted.version}" if wanted.version is not None else store.name
        raise NotFound(
            f"there is no {printable(path)} in {where}; engramfs show {where}: lists what there is"
        )
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


def describe(path: bytes, entry: "Entry") -> dict[str, Any]:
    """An entry as JSON: `path`, `kind`, `mode` (octal text), `size`, `mtime`, `sha256`, `target`."""
    from engramfs.model.times import format_time

    return {
        "path": printable(path),
        "kind": entry.kind.name.lower(),
        "mode": f"{entry.mode:04o}",
        "size": entry.size,
        "mtime": format_time(entry.mtime),
        "sha256": entry.digest.hex() or None,
        "target": printable(entry.target) if entry.target else None,
    }


def _content(content: bytes) -> dict[str, str]:
    """`content` as text when it is, else `content_base64`."""
    try:
        return {"content": content.decode()}
    except UnicodeDecodeError:
        import base64

        return {"content_base64": base64.b64encode(content).decode()}
