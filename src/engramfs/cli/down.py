"""`engramfs down`: everything off, sealed and stopped."""

import contextlib
import glob
import os
import signal
import time

import click

from engramfs.cli import attaching
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.starting import is_kept, start_daemon
from engramfs.daemon.run_directory import keeper_of
from engramfs.errors import Conflict, EngramError

PATIENCE = 20.0  # seconds for the daemon to seal and end
ANSWER = 10.0  # seconds for the worker to answer


@click.command("down", cls=Command, short_help="Detach everything, seal, stop.")
@pass_invocation
def command(invocation: Invocation) -> None:
    """Detach every session, seal what is open, and stop the daemon."""
    _require_our_state(invocation)
    detached = attaching.detach_all(invocation)
    sessions = _session_files(invocation)
    was_running = _stop(invocation)
    if not was_running:
        _clear_dead_hub(invocation)
    for path in sessions:  # the next daemon would bring them back
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    if invocation.json:
        invocation.output.document({"stopped": was_running, "detached": sorted(detached)})
    else:
        said = "stopped" if was_running else "no daemon was running"
        count = f"{len(detached)} mount{'' if len(detached) == 1 else 's'} detached"
        invocation.output.line((said, "green" if was_running else "yellow"), count)


def _require_our_state(invocation: Invocation) -> None:
    """Raise `Conflict` when the daemon serves another state. One that does not answer is not asked."""
    try:
        invocation.client.call("ping", timeout=ANSWER / 2)
    except Conflict:
        raise
    except EngramError:
        return


def _stop(invocation: Invocation) -> bool:
    """End the sessions and the daemon; whether there was one."""
    client = invocation.client
    keeper = _keeper(invocation)
    if keeper is None:
        return False
    try:
        for session in client.call("session.list", timeout=ANSWER):
            client.call("session.close", id=session["id"], timeout=ANSWER)
        client.call("stop", timeout=ANSWER)
    except EngramError as error:
        # A worker that cannot be asked, or that crashed over it, is stopped by its keeper.
        invocation.output.note(
            f"engramfs: {error.message}; telling the keeper {keeper} to stop. "
            "What could not be sealed is in the journal, and engramfs up seals it"
        )
        with contextlib.suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGTERM)
    _wait_for_the_end(invocation)
    return True


def _keeper(invocation: Invocation) -> int | None:
    """The keeper to stop, or None. A worker whose keeper died gets another, so that it ends in order."""
    run = invocation.locations.run
    if keeper_of(run) is None and not invocation.client.is_running():
        return None
    try:
        kept = is_kept(invocation, ANSWER / 5)
    except EngramError:  # a worker that cannot be asked is stopped by its keeper, if it has one
        kept = keeper_of(run) is not None
    if not kept:
        start_daemon(invocation)
    return keeper_of(run)


def _has_ended(invocation: Invocation) -> bool:
    """Whether the hub is off and the keeper has let go of the run directory, so that `up` can follow."""
    return keeper_of(invocation.locations.run) is None and attaching.hub_mount(invocation) is None


def _wait_for_the_end(invocation: Invocation) -> None:
    deadline = time.monotonic() + PATIENCE
    while not _has_ended(invocation):
        if time.monotonic() > deadline:
            raise EngramError(
                f"the daemon has not ended after {PATIENCE:g} s; see {invocation.locations.daemon_log}"
            )
        time.sleep(0.02)


def _session_files(invocation: Invocation) -> list[str]:
    return glob.glob(os.path.join(glob.escape(invocation.locations.run), "sessions", "*.json"))


def _clear_dead_hub(invocation: Invocation) -> None:
    from engramfs.mount.hub import clear_stale

    if attaching.hub_mount(invocation) is not None:
        clear_stale(attaching.hub_point(invocation))
