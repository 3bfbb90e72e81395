"""The worker: one process, one FUSE connection, one `trio.run`.

    python -m engramfs.daemon.worker --state DIR --run DIR [--config FILE]

Started by a keeper with the descriptors `fuse` (or `fuse-served`) and `control` (see `handover`). It
brings back what an earlier worker left, says READY=1, and serves until it is told to stop (by SIGTERM or
the method `stop`: exit code 0), to make room for another (`restart`: exit code `RESTART`), or until the
mount is gone (exit code `LOST`).

`fuse-served` is a connection that a worker has served already. It is taken over: the sandboxes notice
nothing.
"""

import argparse
import contextlib
import gc
import os
import signal
import socket
import sys

import trio

from engramfs import telemetry
from engramfs.daemon import control, handover
from engramfs.daemon.adoption import Adoptable
from engramfs.daemon.config import Config, load
from engramfs.daemon.handover import FUSE, FUSE_SERVED, LOST
from engramfs.daemon.opening import opened, report, serving
from engramfs.daemon.service import Service
from engramfs.daemon.sessions import Sessions, graft_store
from engramfs.errors import EngramError, Unavailable, UsageError
from engramfs.fuse.answered import Answered
from engramfs.fuse.notifier import Notifier
from engramfs.fuse.session import FuseSession
from engramfs.history import catalog
from engramfs.vfs.resuming import resume
from engramfs.vfs.unrecorded import Unrecorded
from engramfs.vfs.view_numbers import ViewNumbers


class _End:
    """How a worker ends: `stop` once, with the exit code."""

    def __init__(self) -> None:
        self.code = LOST
        self.session: FuseSession | None = None

    def stop(self, code: int = 0) -> None:
        if self.session is not None:
            self.code, session = code, self.session
            self.session = None
            session.stop()


async def _serve(
    state: str, run: str, config: Config, descriptor: int, take_over: bool, control_socket: socket.socket
) -> int:
    notifier, end = Notifier(), _End()
    views, mark, dirty = (os.path.join(run, name) for name in ("views", "answered", "unrecorded"))
    if not take_over:
        for old in (views, mark, dirty):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(old)
    answered, numbers, unrecorded = Answered(mark), ViewNumbers(views), Unrecorded(dirty)
    before, caller = answered.position, answered.caller
    with (
        contextlib.closing(answered),
        contextlib.closing(numbers),
        contextlib.closing(unrecorded),
        opened(
            state,
            config,
            notifier,
            numbers=numbers,
            unrecorded=unrecorded,
            take_over=take_over,
            position=before,
        ) as served,
    ):
        filesystem = served.filesystem
        with served.repository.engine.reading() as reader:
            names = [store.name for store in catalog.every(reader)]
        for name in names:
            graft_store(filesystem, name)
        sessions = Sessions(filesystem, config, os.path.join(run, "sessions"))
        for failure in sessions.bring_back():
            filesystem.resources.failed("", failure)
        if take_over:
            report(filesystem.resources, resume(filesystem, before, caller))
        filesystem.drop_unused_forks()
        end.session = session = FuseSession(
            filesystem, notifier, descriptor, take_over=take_over, answered=answered
        )
        hub = os.path.join(run, "fs")
        service = Service(served.repository, filesystem, sessions, config, hub, end.stop, notifier.settled)
        async with serving(served, expendable=True) as nursery:
            nursery.start_soon(_stop_on_signal, end)
            nursery.start_soon(_keep_alive)
            adoptable = Adoptable(descriptor, control_socket.fileno())
            methods = {**service.methods(), **adoptable.methods()}
            await nursery.start(control.serve, control_socket, methods)
            handover.notify("READY=1", f"STATUS=serving {len(names)} stores")
            await session.serve()
            handover.notify("STOPPING=1", f"EXIT_STATUS={end.code}")
    return end.code


async def _keep_alive() -> None:
    """Say that this loop runs, as often as the keeper asks for it."""
    interval = handover.watchdog_interval()
    while interval is not None:
        handover.keep_alive()
        await trio.sleep(interval)


async def _stop_on_signal(end: _End) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            end.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="engramfs worker", description="Serve one FUSE connection.")
    parser.add_argument("--state", required=True)
    parser.add_argument("--run", required=True)
    parser.add_argument("--config", default="")
    places = parser.parse_args()
    telemetry.configure()
    # Trees are many objects in few cycles: looking through all of them stops the mount for 150 ms at 120,000.
    gc.set_threshold(20_000, 10, 1_000)
    try:
        descriptors = handover.received_descriptors()
        take_over = FUSE_SERVED in descriptors
        descriptor = descriptors.get(FUSE_SERVED if take_over else FUSE)
        if descriptor is None or "control" not in descriptors:
            raise UsageError("a worker is started by its keeper; run engramfs daemon")
        config = load(places.config) if places.config else Config()
        with socket.socket(fileno=descriptors["control"]) as listener:
            return trio.run(_serve, places.state, places.run, config, descriptor, take_over, listener)
    except EngramError as error:
        os.write(2, f"engramfs: {error}\n".encode(errors="replace"))
        return error.exit_code
    except OSError as error:  # before it served: of the run directory
        os.write(2, f"engramfs: cannot use {places.run}: {error}\n".encode(errors="replace"))
        return Unavailable.exit_code


if __name__ == "__main__":
    sys.exit(main())
