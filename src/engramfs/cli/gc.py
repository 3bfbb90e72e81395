"""`engramfs gc`: what no rule keeps and nothing needs is removed, and its space given back."""

import os
from typing import TYPE_CHECKING

import click
import msgspec

from engramfs.cli import offline
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.model.quantities import format_size

if TYPE_CHECKING:
    from engramfs.history.collection import Collected


@click.command("gc", cls=Command, short_help="Remove what is not needed, and give its space back.")
@pass_invocation
def command(invocation: Invocation) -> None:
    """Apply the retention of each store, remove contents that nothing needs, and store what was superseded as
    differences. What was removed leaves the disk.

    It runs beside a daemon, which goes on serving.
    """
    from engramfs.daemon import collecting

    state = invocation.locations.state
    with invocation.output.steps() as progress:
        if invocation.client.is_running():
            os.nice(10)  # those whom the daemon serves come first
            collected = collecting.collect_beside_daemon(state, invocation.client, progress)
        else:
            collected = collecting.collect_alone(
                state, progress, lambda repository: offline.seal_journal(invocation, repository)
            )
    if invocation.json:
        document = msgspec.to_builtins(collected)
        del document["began"]
        invocation.output.document(document)
    else:
        _print(invocation, collected)


def _print(invocation: Invocation, collected: "Collected") -> None:
    line = invocation.output.line
    line(("removed", "green"), f"{collected.versions:,} versions, {collected.contents:,} contents")
    line(("packed", "green"), f"{collected.deltas:,} differences")
    used = f"{format_size(collected.used_before)} → {format_size(collected.used_after)} in use"
    line(
        ("log", "green"),
        used,
        f"{format_size(collected.disk_before)} → {format_size(collected.disk_after)} on disk",
    )
    for note in collected.notes:
        invocation.output.note(f"engramfs: {note}")
