"""`engramfs revert STORE N`: undo one version, by a new one."""

from typing import TYPE_CHECKING, Any

import click

from engramfs.cli import offline
from engramfs.cli.arguments import complete_stores, now, refer
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.versions import print_recorded
from engramfs.errors import UsageError

if TYPE_CHECKING:
    from engramfs.history.repository import Repository


@click.command("revert", cls=Command, short_help="Undo one version.")
@click.argument("reference", metavar="STORE[@N]", shell_complete=complete_stores)
@click.argument("number", type=click.IntRange(min=1), required=False, metavar="[N]")
@pass_invocation
def command(invocation: Invocation, reference: str, number: int | None) -> None:
    """Undo version N of STORE, and keep what came after it: as a new version.

    What changed since is merged line by line, and what was renamed since is changed under its new name.
    Where that is not possible, the paths are named, nothing is done, and the exit code is 4.
    """
    with offline.reading(invocation) as repository:
        wanted = refer(repository, reference)
    if wanted.path is not None or (wanted.version is None) == (number is None):
        raise UsageError(f"which version of {wanted.store}? write engramfs revert {wanted.store} N")
    store, undone = wanted.store, wanted.version or number or 0
    document = offline.write(
        invocation,
        "engramfs revert",
        lambda: invocation.client.call("revert", store=store, number=undone),
        lambda repository: _revert(repository, store, undone),
    )
    if invocation.json:
        invocation.output.document(document)
    else:
        print_recorded(invocation.output, store, document, f"undid @{undone}")


def _revert(repository: "Repository", name: str, number: int) -> dict[str, Any] | None:
    from engramfs.history import catalog, commit, log, revert
    from engramfs.storage.protocol import Writer

    def body(writer: Writer) -> dict[str, Any] | None:
        store = catalog.writable(writer, name)
        planned = revert.plan(writer, store, number, offline.person(), now())
        version = commit.apply(writer, planned)
        return log.describe(version, planned.changes) if version else None

    return repository.transact(body)
