"""`engramfs mount DIR`: one session's tree at a directory, with neither daemon nor root.

One process is everything: it mounts through fusermount3, which hands it the descriptor, serves in the
foreground, and unmounts when it is told to stop. It holds the store lock as a worker does.
"""

import os
import signal

import trio

from engramfs import telemetry
from engramfs.daemon.config import Config
from engramfs.daemon.opening import opened, serving
from engramfs.daemon.paths import Locations
from engramfs.daemon.sessions import Sessions
from engramfs.errors import EngramError
from engramfs.fuse.notifier import Notifier
from engramfs.fuse.session import FuseSession
from engramfs.mount.fusermount import mount_unprivileged, unmount_unprivileged
from engramfs.mount.mountinfo import read_mounts, top_mount
from engramfs.mount.target import require_empty


def run(
    locations: Locations,
    config: Config,
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
    telemetry.configure(level="warning")
    directory = os.path.realpath(directory)
    if not over:
        _require_nothing_covered(directory)
    try:
        trio.run(_serve, locations.state, config, directory, agent, actor, tenant)
    except BaseExceptionGroup as group:
        error = _known(group)
        if error is None:
            raise
        raise error from group
    return 0


def _require_nothing_covered(directory: str) -> None:
    mounted = top_mount(read_mounts(), directory)
    if mounted is not None and mounted.is_ours:
        return  # a stale mount is replaced, and a living one refused, when it comes to mounting
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        require_empty(descriptor, directory, directory=True)
    finally:
        os.close(descriptor)


def _known(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """What a nursery wrapped, if it is one of our errors."""
    found: BaseException | None = group.subgroup(EngramError)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


async def _serve(
    state: str, config: Config, directory: str, agent: str, actor: str | None, tenant: str | None
) -> None:
    notifier = Notifier()
    with opened(state, config, notifier, purpose=f"engramfs mount {directory}") as worker:
        sessions = Sessions(worker.filesystem, config, None)
        async with serving(worker) as nursery:
            session = await sessions.open(agent, actor, tenant)
            sessions.show_alone(session)
            descriptor = mount_unprivileged(directory)
            try:
                fuse = FuseSession(worker.filesystem, notifier, descriptor)
                nursery.start_soon(_announce, directory, [each.path for each in session.attachments])
                nursery.start_soon(_stop_on_signal, fuse)
                await fuse.serve()
            finally:
                unmount_unprivileged(directory)
                os.close(descriptor)


async def _announce(directory: str, paths: list[str]) -> None:
    for path in paths:
        os.write(1, f"{directory}{path}\n".encode(errors="surrogateescape"))


async def _stop_on_signal(session: FuseSession) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for _ in signals:
            session.stop()
            return
