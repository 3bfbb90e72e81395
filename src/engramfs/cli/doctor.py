"""`engramfs doctor`: what is wrong here, or could be, and what to do about it."""

from typing import TYPE_CHECKING

import click
import msgspec

from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.output import Output

if TYPE_CHECKING:
    from engramfs.daemon.doctor import Finding

_COLOURS = {"ok": "green", "note": "yellow", "problem": "red"}


@click.command("doctor", cls=Command, short_help="Look for what is wrong here, and say what to do.")
@click.pass_context
@pass_invocation
def command(invocation: Invocation, context: click.Context) -> None:
    """Look at kernel, FUSE, limits, mounts, the daemon, the disk and the state; exits 1 on a problem."""
    from engramfs.daemon.doctor import examine, installation_at

    with invocation.output.activity("looking") as show:
        found = []
        for name, finding in examine(installation_at(invocation.locations)):
            show(name)
            found.append((name, finding))
    count = sum(finding.level == "problem" for _, finding in found)
    if invocation.json:
        findings = [{"check": name, **msgspec.to_builtins(finding)} for name, finding in found]
        invocation.output.document({"healthy": count == 0, "findings": findings})
    else:
        for name, finding in found:
            _print(invocation.output, name, finding)
        problems = f"{count} problem{'' if count == 1 else 's'}"
        invocation.output.line(("healthy", "green") if count == 0 else (problems, "red"))
    if count:
        context.exit(1)


def _print(output: Output, name: str, finding: "Finding") -> None:
    output.line((f"{finding.level:<7}", _COLOURS[finding.level]), (f"{name:<13}", "cyan"), finding.found)
    for text in (finding.meaning, finding.do and f"→ {finding.do}"):
        if text:
            output.line(" " * 7, " " * 13, text)
