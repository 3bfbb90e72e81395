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


def run(
    locations: Locations,
    config: Config,
    directory: str,
    *,
    agent: str,
    actor: str | None,
    tenant: str | None,
) -> int:
    """Serve until SIGINT, SIGTERM or an unmount from outside; the exit code.

    Raises `Unavailable` without fusermount3 or /dev/fuse, `Busy` when the state directory is in use or
    engramfs is mounted at `directory` already.
    """
    telemetry.configure(level="warning")
    try:
        trio.run(_serve, locations.state, config, os.path.realpath(directory), agent, actor, tenant)
    except BaseExceptionGroup as group:
        error = _known(group)
        if error is None:
            raise
        raise error from group
    return 0


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
