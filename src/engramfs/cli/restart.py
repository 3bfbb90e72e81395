"""`engramfs restart`: another worker takes the mounts over; an upgrade without an interruption."""

import contextlib
import time

import click

from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.errors import EngramError, Unanswered, Unavailable

PATIENCE = 30.0  # seconds until the new worker answers


@click.command("restart", cls=Command, short_help="Replace the worker; mounts stay.")
@pass_invocation
def command(invocation: Invocation) -> None:
    """Seal what is open and start another worker, perhaps a newer one, on the same mounts.

    Open files go on, and calls in flight are answered by the new worker.
    """
    from engramfs.cli import starting

    before = invocation.client.call("ping")["pid"]
    deadline = time.monotonic() + PATIENCE
    while not _is_begun(invocation):
        with starting.alone(invocation):
            starting.start_daemon(invocation)  # a keeper: there is none any more, or soon will be none
        if time.monotonic() > deadline:
            raise EngramError(
                f"no keeper answers after {PATIENCE:g} s; see {invocation.locations.daemon_log}"
            )
        time.sleep(0.02)
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


def _is_begun(invocation: Invocation) -> bool:
    """Ask for it; False when no keeper is there that would start another worker."""
    try:
        with contextlib.suppress(Unanswered):  # it was quick
            invocation.client.call("restart")
    except Unavailable:
        return False
    return True


def _pid(invocation: Invocation, deadline: float) -> int | None:
    """The pid of the worker that answers; None when its predecessor ended before it could."""
    try:
        found: int = invocation.client.call("ping", timeout=max(0.1, deadline - time.monotonic()))["pid"]
    except EngramError:
        return None
    return found
