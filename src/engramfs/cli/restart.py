"""`engramfs restart`: another worker takes the mounts over; an upgrade without an interruption."""

import time

import click

from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.errors import EngramError

PATIENCE = 30.0  # seconds until the new worker answers


@click.command("restart", cls=Command, short_help="Replace the worker; mounts stay.")
@pass_invocation
def command(invocation: Invocation) -> None:
    """Seal what is open and start another worker, perhaps a newer one, on the same mounts.

    Open files go on, and calls in flight are answered by the new worker.
    """
    from engramfs.cli import starting

    before = invocation.client.call("ping")["pid"]
    with starting.alone(invocation):
        starting.start_daemon(invocation)  # a keeper, if there is none any more
    invocation.client.call("restart")
    deadline = time.monotonic() + PATIENCE
    while (now := _pid(invocation, deadline)) in (before, None):
        if time.monotonic() > deadline:
            raise EngramError(
                f"no new worker answers after {PATIENCE:g} s; see {invocation.locations.daemon_log}"
            )
        time.sleep(0.02)
    if invocation.json:
        invocation.output.document({"before": before, "worker": now})
    else:
        invocation.output.line(("restarted", "green"), f"worker {now} took over from {before}")


def _pid(invocation: Invocation, deadline: float) -> int | None:
    """The pid of the worker that answers; None when its predecessor ended before it could."""
    try:
        found: int = invocation.client.call("ping", timeout=max(0.1, deadline - time.monotonic()))["pid"]
    except EngramError:
        return None
    return found
