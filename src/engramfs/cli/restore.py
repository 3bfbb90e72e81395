"""`engramfs restore STORE@N [PATH]`: an old tree or file becomes the head again."""

from typing import TYPE_CHECKING, Any

import click

from engramfs.cli import offline
from engramfs.cli.arguments import now, refer, reference_argument
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.log import with_path
from engramfs.cli.versions import print_recorded
from engramfs.errors import UsageError
from engramfs.model.names import printable

if TYPE_CHECKING:
    from engramfs.history.repository import Repository
    from engramfs.model.reference import Reference


@click.command("restore", cls=Command, short_help="Make an old tree or file the head again.")
@reference_argument
@click.argument("path", required=False)
@pass_invocation
def command(invocation: Invocation, reference: str, path: str | None) -> None:
    """Make version N of STORE, or PATH as it was in it, the head again: as a new version."""
    with offline.reading(invocation) as repository:
        wanted = with_path(refer(repository, reference), path)
    if wanted.version is None:
        raise UsageError(f"which version of {wanted.store}? write {wanted.store}@N; engramfs log lists them")
    shown = printable(wanted.path or b"")
    document = offline.write(
        invocation,
        "engramfs restore",
        lambda: invocation.client.call("restore", store=wanted.store, number=wanted.version, path=shown),
        lambda repository: _restore(repository, wanted),
    )
    if invocation.json:
        invocation.output.document(document)
    else:
        print_recorded(invocation.output, wanted.store, document, f"restored from @{wanted.version}")


def _restore(repository: "Repository", wanted: "Reference") -> dict[str, Any] | None:
    from engramfs.history import catalog, commit, log, restore
    from engramfs.storage.protocol import Writer

    def body(writer: Writer) -> dict[str, Any] | None:
        store = catalog.writable(writer, wanted.store)
        number = wanted.version or 0
        planned = restore.plan(writer, store, number, wanted.path, offline.person(), now())
        version = commit.apply(writer, planned)
        return log.describe(version, planned.changes) if version else None

    return repository.transact(body)
