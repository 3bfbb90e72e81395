"""`engramfs down`: everything off, sealed and stopped."""

import fcntl
import glob
import os
import signal
import time

import click

from engramfs.cli import attaching
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.errors import EngramError

PATIENCE = 20.0  # seconds for the daemon to seal and end
ANSWER = 10.0  # seconds for the worker to answer


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
    """End the sessions and the daemon; whether there was one."""
    keeper = _keeper(invocation)
    if keeper is None:
        return False
    client = invocation.client
    try:
        for session in client.call("session.list", timeout=ANSWER):
            client.call("session.close", id=session["id"], timeout=ANSWER)
        client.call("stop", timeout=ANSWER)
    except EngramError as error:
        # A worker that cannot be asked is stopped by its keeper.
        invocation.output.note(f"engramfs: {error.message}; telling the keeper {keeper} to stop")
        os.kill(keeper, signal.SIGTERM)
    _wait_for_the_end(invocation)
    return True


def _wait_for_the_end(invocation: Invocation) -> None:
    """Until the hub is off and the keeper has let go of the run directory, so that `up` can follow."""
    deadline = time.monotonic() + PATIENCE
    while _keeper(invocation) is not None or attaching.hub_mount(invocation) is not None:
        if time.monotonic() > deadline:
            raise EngramError(
                f"the daemon has not ended after {PATIENCE:g} s; see {invocation.locations.daemon_log}"
            )
        time.sleep(0.02)


def _keeper(invocation: Invocation) -> int | None:
    """The pid of the keeper that holds the run directory."""
    try:
        descriptor = os.open(
            os.path.join(invocation.locations.run, "keeper.lock"), os.O_RDONLY | os.O_CLOEXEC
        )
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.pread(descriptor, 20, 0) or b"0") or None
    finally:
        os.close(descriptor)
    return None


def _clear_what_a_dead_daemon_left(invocation: Invocation) -> None:
    """Its hub, and the files of its sessions, which the next daemon would bring back."""
    from engramfs.mount.hub import clear_stale

    if attaching.hub_mount(invocation) is not None:
        clear_stale(attaching.hub_point(invocation))
    for path in glob.glob(os.path.join(glob.escape(invocation.locations.run), "sessions", "*.json")):
        os.unlink(path)
