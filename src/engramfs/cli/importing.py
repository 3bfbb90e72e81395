"""`engramfs import STORE DIR`: a whole tree as one version."""

import os
from typing import TYPE_CHECKING, Any

import click

from engramfs.cli import offline
from engramfs.cli.arguments import must_be_directory, now, store_argument
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.versions import print_recorded

if TYPE_CHECKING:
    from engramfs.cli.output import Progress
    from engramfs.history.repository import Repository


@click.command("import", cls=Command, short_help="Make a store hold what a directory holds.")
@store_argument
@click.argument("directory", type=click.Path(), metavar="DIR")
@click.option("-m", "--message", default="", metavar="TEXT", help="What this version is about.")
@pass_invocation
def command(invocation: Invocation, name: str, directory: str, message: str) -> None:
    """Make STORE hold what DIR holds, as one version."""
    directory = must_be_directory(directory)
    with invocation.output.progress(f"importing {name}") as progress:

        def by_daemon() -> Any:
            def report(params: dict[str, Any]) -> None:
                progress(params["done"], params["total"], params["done_bytes"], params["total_bytes"])

            return invocation.client.call(
                "import", store=name, directory=directory, message=message, progress=report, timeout=600
            )

        def alone(repository: "Repository") -> Any:
            return _import(repository, name, directory, message, progress)

        document = offline.write(invocation, "engramfs import", by_daemon, alone)
    if invocation.json:
        invocation.output.document(document)
    else:
        print_recorded(invocation.output, name, document, "imported")


def _import(
    repository: "Repository", name: str, directory: str, message: str, progress: "Progress"
) -> dict[str, Any] | None:
    from engramfs.history import catalog, commit, importing, log

    with repository.engine.reading() as reader:
        store = catalog.writable(reader, name)
    planned = importing.plan(
        repository, store, os.fsencode(directory), offline.person(), now(), message, progress
    )
    version = repository.transact(lambda writer: commit.apply(writer, planned))
    return log.describe(version, planned.changes) if version else None
