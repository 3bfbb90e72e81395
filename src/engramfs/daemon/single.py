"""`engramfs mount DIR`: one session's tree at a directory, with neither daemon nor root.

A keeper in the foreground, as that of the daemon, mounts through fusermount3 and keeps a worker that shows
one session alone. Its run directory is in the state, of which only one process at a time can be the writer.
Imports neither trio nor pyfuse3: they are the worker's.
"""

import contextlib
import errno
import os

from engramfs.daemon import control_socket
from engramfs.daemon.client import ControlClient
from engramfs.daemon.keeper import Keeper, says_whether_taken_over, worker_command
from engramfs.daemon.paths import Locations
from engramfs.daemon.predecessor import Left
from engramfs.daemon.run_directory import RunDirectory
from engramfs.daemon.service_manager import ServiceManager
from engramfs.errors import Busy, NoDaemon, Unavailable
from engramfs.mount.connection import Connection
from engramfs.mount.fusermount import mount_unprivileged, unmount_unprivileged
from engramfs.mount.mountinfo import read_mounts, top_mount
from engramfs.mount.target import require_empty


def run(
    locations: Locations,
    directory: str,
    *,
    agent: str,
    actor: str | None,
    tenant: str | None,
    over: bool = False,
) -> int:
    """Serve until SIGINT, SIGTERM or an unmount from outside; the exit code.

    Raises `Unavailable` without fusermount3 or /dev/fuse, `Busy` when the state directory is in use or
    engramfs is mounted at `directory` already, `Conflict` when files are there, unless `over`.
    """
    point = os.path.realpath(directory)
    if not over:
        _require_nothing_covered(point)
    run = os.path.join(locations.state, "mount")
    _require_unserved(locations.state, run)
    config = locations.config if os.path.lexists(locations.config) else None
    command = worker_command(locations.state, run, config)
    command += ["--alone", point, "--agent", agent]
    for option, value in (("--actor", actor), ("--tenant", tenant)):
        command += [option, value] if value is not None else []
    with (
        contextlib.closing(RunDirectory(run)) as held,
        control_socket.listening(held.path) as control,
    ):
        held.clear_sessions()
        os.chdir("/")  # whoever started us may stand inside a mount of ours
        return Keeper(
            held,
            control,
            command,
            lambda: Connection.open(point, mount_unprivileged, unmount_unprivileged),
            point,
            ServiceManager({}),
            Left(),
            take_over=says_whether_taken_over(),
            in_foreground=True,
        ).keep()


def _require_unserved(state: str, run: str) -> None:
    """Raise `Busy` when another `engramfs mount` serves the state, or the worker of one that was killed."""
    try:
        served = ControlClient(run, timeout=5).call("status")["mount"]
    except NoDaemon:
        return
    raise Busy(f"{state} is served at {served} already; unmount it first (fusermount3 -u {served})")


def _require_nothing_covered(directory: str) -> None:
    mounted = top_mount(read_mounts(), directory)
    if mounted is not None and mounted.is_ours:
        return  # a stale mount is replaced, and a living one refused, when it comes to mounting
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        require_empty(descriptor, directory, directory=True)
    except OSError as error:
        if error.errno != errno.ENOTCONN or mounted is None:
            raise
        raise Unavailable(
            f"{directory} is a mount of {mounted.kind} whose process is gone; take it off first: "
            f"fusermount3 -u {directory}"
        ) from error
    finally:
        os.close(descriptor)
