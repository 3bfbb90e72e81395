"""`engramfs import STORE DIR`: a whole tree as one version; `--git DIR`: the commits of a repository."""

import os
from typing import TYPE_CHECKING, Any

import click

from engramfs.cli import offline
from engramfs.cli.arguments import must_be_directory, now, store_argument
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.missing_store import must_exist
from engramfs.cli.versions import print_recorded
from engramfs.errors import UsageError

if TYPE_CHECKING:
    from engramfs.cli.output import Progress
    from engramfs.history.repository import Repository


@click.command("import", cls=Command, short_help="Make a store hold what a directory holds.")
@store_argument
@click.argument("directory", required=False, type=click.Path(), metavar="[DIR]")
@click.option("-m", "--message", default="", metavar="TEXT", help="What this version is about.")
@click.option("--git", "repository", type=click.Path(), metavar="DIR", help="Make each commit a version.")
@click.option("--ref", default="HEAD", metavar="REF", help="With --git, which branch; default what HEAD is.")
@click.option("--create", is_flag=True, help="Create STORE if there is none of that name.")
@click.option("--over", is_flag=True, help="With --git, undo what the store changed since, too.")
@pass_invocation
def command(
    invocation: Invocation,
    name: str,
    directory: str | None,
    message: str,
    repository: str | None,
    ref: str,
    create: bool,
    over: bool,
) -> None:
    """Make STORE hold what DIR holds, as one version.

    STORE has to be there, unless --create is given. With --git, every commit of the branch, along its first
    parents, becomes a version; run again, what is new. So does what people committed on top of an export of
    STORE; when STORE went on since, export again and merge engramfs/main first: the merge is one version.
    """
    if (directory is None) == (repository is None):
        raise UsageError("what from? give DIR for its files, or --git DIR for the commits of a repository")
    if repository is not None:
        if message:
            raise UsageError("commits have messages of their own; leave out -m with --git")
        from engramfs.cli.git_import import import_history

        import_history(invocation, name, must_be_directory(repository), ref, create=create, over=over)
    elif directory is not None:
        if over or ref != "HEAD":
            raise UsageError("--over and --ref are about a git repository; give --git DIR with them")
        directory = must_be_directory(directory)
        must_exist(invocation, name, create=create)
        _import_tree(invocation, name, directory, message)


def _import_tree(invocation: Invocation, name: str, directory: str, message: str) -> None:
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
