"""`engramfs export STORE[@N] DIR`: a tree as plain files."""

import os

import click
import msgspec

from engramfs.cli import offline
from engramfs.cli.arguments import refer, reference_argument
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.errors import UsageError
from engramfs.model.names import printable
from engramfs.model.quantities import format_size


@click.command("export", cls=Command, short_help="Write a tree as plain files.")
@reference_argument
@click.argument("directory", type=click.Path(), metavar="DIR")
@pass_invocation
def command(invocation: Invocation, reference: str, directory: str) -> None:
    """Write the tree of STORE, or of its version N, into DIR, which is made or has to be empty."""
    from engramfs.history import catalog, exporting

    directory = os.path.abspath(directory)
    with offline.reading(invocation) as repository:
        wanted = refer(repository, reference)
        if wanted.path:
            raise UsageError(
                f"export writes whole trees; engramfs show {reference} prints {printable(wanted.path)}"
            )
        with repository.engine.reading() as reader:
            store = catalog.named(reader, wanted.store)
            newest = catalog.head(reader, store.id).number
        number = newest if wanted.version is None else wanted.version
        with invocation.output.progress(f"exporting {store.name}") as progress:
            exported = exporting.export(repository, store, number, os.fsencode(directory), progress)
    if invocation.json:
        facts = {"store": store.name, "version": number, "directory": directory}
        invocation.output.document({**facts, **msgspec.to_builtins(exported)})
        return
    size = format_size(exported.bytes)
    invocation.output.line(("exported", "green"), f"{store.name}@{number}", f"{exported.files:,} files", size)
    if exported.without_xattrs:
        invocation.output.note(
            f"{exported.without_xattrs} lost their attributes, which {directory} cannot keep"
        )
