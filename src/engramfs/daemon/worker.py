"""The worker: one process, one FUSE connection, one `trio.run`.

    python -m engramfs.daemon.worker --state DIR --run DIR [--config FILE]

Started by a keeper with the descriptors `fuse` and `control` (see `handover`). It recovers what an
earlier worker left in the journal, brings its sessions back, says READY=1, and serves until it is told
to stop: by SIGTERM, by the method `stop`, or because the mount is gone.

What it opens it closes in the reverse order: see `serving`.
"""

import argparse
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator

import msgspec
import trio

from engramfs import telemetry
from engramfs.daemon import control, handover
from engramfs.daemon.config import Config, load
from engramfs.daemon.service import Service
from engramfs.daemon.sessions import Sessions, graft_store
from engramfs.errors import EngramError, UsageError
from engramfs.fuse.notifier import Notifier
from engramfs.fuse.session import FuseSession
from engramfs.history import catalog
from engramfs.history.repository import Repository
from engramfs.model.transient import TransientNames
from engramfs.storage.journal import Journal
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.invalidator import Invalidator
from engramfs.vfs.log_writer import LogWriter
from engramfs.vfs.recovery import last_position, recover
from engramfs.vfs.resources import Resources, Settings


class Worker(msgspec.Struct, frozen=True):
    """What a worker is made of once it can serve."""

    repository: Repository
    filesystem: Filesystem
    writer: LogWriter


@contextlib.contextmanager
def opened(
    state: str, config: Config, invalidator: Invalidator, purpose: str = "the engramfs daemon"
) -> Iterator[Worker]:
    """The state directory, recovered and open for writing, with a filesystem over it.

    `purpose` tells other processes who holds the store lock.
    """
    log = telemetry.logger("worker")
    transient = TransientNames(config.batch.transient)
    with contextlib.ExitStack() as stack:
        repository = stack.enter_context(Repository.open(state, write=purpose))
        found = recover(repository, transient)
        if found.records or found.torn_bytes:
            log.info("recovered", **msgspec.structs.asdict(found))
        for leftover in os.listdir(repository.spool_path):
            os.unlink(os.path.join(repository.spool_path, leftover))
        journal = Journal(repository.journal_path, int(config.journal.max_bytes))
        stack.callback(journal.close)
        journal.position = max(journal.position, last_position(repository))
        writer = LogWriter(repository)
        resources = Resources(
            engine=repository.engine,
            journal=journal,
            writer=writer,
            invalidator=invalidator,
            spool_path=repository.spool_path,
            settings=Settings(
                quiet=float(config.batch.quiet),
                max_age=float(config.batch.max_age),
                sync_on_close=config.batch.durability == "close",
            ),
            transient=transient,
        )
        writer.on_trouble = lambda what: resources.failed("", what)
        for what in found.skipped:
            resources.failed("", f"not recovered: {what}")
        if found.torn_bytes:
            resources.failed("", f"dropped {found.torn_bytes} torn bytes at the end of the journal")
        yield Worker(repository, Filesystem(resources), writer)


@contextlib.asynccontextmanager
async def serving(worker: Worker) -> AsyncIterator[trio.Nursery]:
    """Seal and write in the background; at the end, everything that is open is sealed first."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.writer.serve)
        nursery.start_soon(worker.filesystem.seal_when_due)
        try:
            yield nursery
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(5):
                await worker.filesystem.seal_all()
            nursery.cancel_scope.cancel()


async def _serve(state: str, run: str, config: Config, fuse: int, control_socket: socket.socket) -> None:
    notifier = Notifier()
    with opened(state, config, notifier) as worker:
        filesystem = worker.filesystem
        with worker.repository.engine.reading() as reader:
            names = [store.name for store in catalog.every(reader)]
        for name in names:
            graft_store(filesystem, name)
        sessions = Sessions(filesystem, config, os.path.join(run, "sessions"))
        for failure in sessions.bring_back():
            filesystem.resources.failed("", failure)
        session = FuseSession(filesystem, notifier, fuse)
        service = Service(
            worker.repository, filesystem, sessions, config, os.path.join(run, "fs"), session.stop
        )
        async with serving(worker) as nursery:
            nursery.start_soon(_stop_on_signal, session)
            nursery.start_soon(_keep_alive)
            await nursery.start(control.serve, control_socket, service.methods())
            handover.notify("READY=1", f"STATUS=serving {len(names)} stores")
            await session.serve()
            handover.notify("STOPPING=1")


async def _keep_alive() -> None:
    """Say that this loop runs, as often as the keeper asks for it."""
    interval = handover.watchdog_interval()
    while interval is not None:
        handover.keep_alive()
        await trio.sleep(interval)


async def _stop_on_signal(session: FuseSession) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            session.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="engramfs worker", description="Serve one FUSE connection.")
    parser.add_argument("--state", required=True)
    parser.add_argument("--run", required=True)
    parser.add_argument("--config", default="")
    places = parser.parse_args()
    telemetry.configure()
    try:
        descriptors = handover.received_descriptors()
        if not {"fuse", "control"} <= descriptors.keys():
            raise UsageError("a worker is started by its keeper; run engramfs daemon")
        config = load(places.config) if places.config else Config()
        listener = socket.socket(fileno=descriptors["control"])
        trio.run(_serve, places.state, places.run, config, descriptors["fuse"], listener)
    except EngramError as error:
        os.write(2, f"engramfs: {error}\n".encode(errors="replace"))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
