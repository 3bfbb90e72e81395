"""`engramfs revert STORE N`: undo one version, by a new one."""

import click

from engramfs.cli.arguments import complete_stores, refer
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.versions import print_recorded
from engramfs.errors import UsageError


@click.command("revert", cls=Command, short_help="Undo one version.")
@click.argument("reference", metavar="STORE[@N]", shell_complete=complete_stores)
@click.argument("number", type=click.IntRange(min=1), required=False, metavar="[N]")
@pass_invocation
def command(invocation: Invocation, reference: str, number: int | None) -> None:
    """Undo version N of STORE, and keep what came after it: as a new version.

    What changed since is merged line by line, and what was renamed since is changed under its new name.
    Where that is not possible, the paths are named, nothing is done, and the exit code is 4.
    """
    with invocation.opened() as client:
        with client.reading() as reader:
            wanted = refer(reader, reference)
        if wanted.path is not None or (wanted.version is None) == (number is None):
            raise UsageError(f"which version of {wanted.store}? write engramfs revert {wanted.store} N")
        store, undone = wanted.store, wanted.version or number or 0
        document = client.revert(store, undone)
    if invocation.json:
        invocation.output.document(document)
    else:
        print_recorded(invocation.output, store, document, f"undid @{undone}")
