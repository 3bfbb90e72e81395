"""`engramfs down`: everything off, sealed and stopped."""

import contextlib
import fcntl
import os
import time

import click

from engramfs.cli import attaching
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.errors import EngramError, NoDaemon

PATIENCE = 20.0  # seconds for the daemon to seal and end


@click.command("down", cls=Command, short_help="Detach everything, seal, stop.")
@pass_invocation
def command(invocation: Invocation) -> None:
    """Detach every session, seal what is open, and stop the daemon."""
    detached = attaching.detach_all(invocation)
    was_running = _stop(invocation)
    if not was_running:
        _clear_what_a_dead_daemon_left(invocation)
    if invocation.json:
        invocation.output.document({"stopped": was_running, "detached": sorted(detached)})
    else:
        said = "stopped" if was_running else "no daemon was running"
        count = f"{len(detached)} mount{'' if len(detached) == 1 else 's'} detached"
        invocation.output.line((said, "green" if was_running else "yellow"), count)


def _stop(invocation: Invocation) -> bool:
    try:
        invocation.client.call("stop")
    except NoDaemon:
        return False
    deadline = time.monotonic() + PATIENCE
    while not _has_ended(invocation):
        if time.monotonic() > deadline:
            raise EngramError(
                f"the daemon has not ended after {PATIENCE:g} s; see {invocation.locations.daemon_log}"
            )
        time.sleep(0.02)
    return True


def _has_ended(invocation: Invocation) -> bool:
    """Whether the hub is off and the keeper has let go of the run directory, so that `up` can follow."""
    lock = os.path.join(invocation.locations.run, "keeper.lock")
    if attaching.hub_mount(invocation) is not None or invocation.client.is_running():
        return False
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
    return True


def _clear_what_a_dead_daemon_left(invocation: Invocation) -> None:
    from engramfs.mount.hub import clear_stale

    if attaching.hub_mount(invocation) is not None:
        clear_stale(attaching.hub_point(invocation))
