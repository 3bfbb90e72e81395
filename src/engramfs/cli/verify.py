"""`engramfs verify [STORE]`: whether everything that was recorded is still so."""

from typing import TYPE_CHECKING

import click
import msgspec

from engramfs.cli import offline
from engramfs.cli.arguments import complete_stores
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.output import Output
from engramfs.errors import Corrupt
from engramfs.model.names import check_store_name
from engramfs.model.quantities import format_size

if TYPE_CHECKING:
    from engramfs.history.verify import Report


@click.command("verify", cls=Command, short_help="Check that everything is as recorded.")
@click.argument(
    "name", required=False, type=check_store_name, metavar="[STORE]", shell_complete=complete_stores
)
@click.pass_context
@pass_invocation
def command(invocation: Invocation, context: click.Context, name: str | None) -> None:
    """Check chains, trees, contents and the journal of STORE, or of every store; exits 1 on damage."""
    from engramfs.history.verify import verify

    with offline.reading(invocation) as repository, invocation.output.activity("verifying") as show:
        names = [name] if name else None
        report = verify(repository, names, lambda store, rows: show(f"{store} {rows:,} rows"))
    if invocation.json:
        invocation.output.document({"sound": report.sound, **msgspec.to_builtins(report)})
    else:
        _print(invocation.output, report)
    if not report.sound:
        context.exit(Corrupt.exit_code)


def _print(output: Output, report: "Report") -> None:
    for finding in report.findings:
        colour = "red" if finding.severity == "error" else "yellow"
        output.line((finding.severity, colour), (finding.store, "cyan"), finding.problem)
    verdict = ("sound", "green") if report.sound else ("damaged", "red")
    counts = f"{report.stores:,} stores, {report.versions:,} versions, {report.blobs:,} contents"
    output.line(verdict, counts, format_size(report.bytes))
