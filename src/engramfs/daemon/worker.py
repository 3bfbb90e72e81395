"""The worker: one process, one FUSE connection, one `trio.run`.

    python -m engramfs.daemon.worker --state DIR --run DIR [--config FILE]
        [--alone DIR --agent AGENT [--actor ACTOR] [--tenant TENANT]]

Started by a keeper with the descriptors `fuse` (or `fuse-served`) and `control` (see `handover`). It
brings back what an earlier worker left, says READY=1, and serves until it is told to stop (by SIGTERM or
the method `stop`: exit code 0), to make room for another (`restart`: exit code `RESTART`), or until the
mount is gone (exit code `LOST`).

`fuse-served` is a connection that a worker has served already. It is taken over: the sandboxes notice
nothing. A worker that is started with the descriptor `turn` alone waits there for the others, imported and
ready: it is the keeper's spare.
"""

import argparse
import contextlib
import gc
import os
import signal
import socket
import sys
from typing import NamedTuple

import trio

from engramfs import telemetry
from engramfs.daemon import control, handover, rpc
from engramfs.daemon.adoption import Adoptable
from engramfs.daemon.config import Config, load
from engramfs.daemon.gc_schedule import collect_when_due, gc_command
from engramfs.daemon.handover import FUSE, FUSE_SERVED, LOST, RESTART, TURN
from engramfs.daemon.opening import Open, opened, report, serving
from engramfs.daemon.run_directory import keeper_of
from engramfs.daemon.service import Service
from engramfs.daemon.session import Session
from engramfs.daemon.sessions import Sessions, graft_store
from engramfs.errors import EngramError, Unavailable, UsageError
from engramfs.fuse.answered import Answered
from engramfs.fuse.notifier import Notifier
from engramfs.fuse.session import FuseSession
from engramfs.fuse.teller import Teller
from engramfs.history import catalog
from engramfs.vfs.failures import Failures
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.losing import say_what_is_lost, say_what_waits
from engramfs.vfs.resuming import resume
from engramfs.vfs.unrecorded import Unrecorded
from engramfs.vfs.view_numbers import ViewNumbers, former_keys


class _End:
    """How a worker ends: `stop` once, with the exit code (see `engramfs.daemon.service.End`)."""

    def __init__(self) -> None:
        self.code = LOST
        self.session: FuseSession | None = None

    def announce(self, code: int) -> None:
        """Tell the keeper that this worker is about to end with `code`: a crash is then the end too."""
        # A keeper that has died is told nothing.
        with contextlib.suppress(OSError):
            handover.notify("STOPPING=1", f"EXIT_STATUS={code}")

    def is_kept(self) -> bool:
        """Whether somebody is there to start another worker."""
        try:
            return handover.notify("STATUS=making room for another worker")
        except OSError:
            return False

    def stop(self, code: int = 0) -> None:
        if self.session is not None:
            self.code, session = code, self.session
            self.session = None
            session.stop()


class Alone(NamedTuple):
    """The one session of `engramfs mount DIR`: its tree is the root of the mount at `point`."""

    point: str
    agent: str
    actor: str | None
    tenant: str | None

    async def show(self, sessions: Sessions) -> Session:
        """The session that an earlier worker served, or a new one."""
        session = next(iter(sessions.every()), None)
        if session is None:
            session = await sessions.open(self.agent, self.actor, self.tenant)
        sessions.show_alone(session)
        return session

    def say_where(self, session: Session) -> None:
        """Print the directories that the session shows."""
        for each in session.attachments:
            os.write(1, f"{self.point}{each.path}\n".encode(errors="surrogateescape"))


async def _serve(
    places: argparse.Namespace,
    config: Config,
    descriptor: int,
    take_over: bool,
    control_socket: socket.socket,
    teller: Teller,
) -> int:
    run: str = places.run
    alone = Alone(places.alone, places.agent, places.actor, places.tenant) if places.alone else None
    notifier, end = Notifier(teller), _End()
    with contextlib.ExitStack() as stack:
        former_views = former_keys(os.path.join(run, "views"))
        answered, numbers, unrecorded = _marks(run, stack, take_over=take_over)
        before, caller = answered.position, answered.caller
        served = stack.enter_context(
            opened(
                places.state,
                config,
                notifier,
                purpose=f"engramfs mount {alone.point}" if alone else "the engramfs daemon",
                numbers=numbers,
                unrecorded=unrecorded,
                failures=Failures(os.path.join(run, "failures"), keep=take_over),
                take_over=take_over,
                position=before,
                former_views=former_views,
            )
        )
        filesystem = served.filesystem
        stores = _show_stores(served)
        sessions = Sessions(filesystem, config, os.path.join(run, "sessions"))
        for failure in sessions.bring_back():
            filesystem.resources.failed("", failure)
        if take_over:
            report(filesystem.resources, resume(filesystem, before, caller))
        filesystem.drop_unused_forks()
        async with serving(served, expendable=True) as nursery:
            shown = await alone.show(sessions) if alone else None
            end.session = session = FuseSession(
                filesystem, notifier, descriptor, take_over=take_over, answered=answered
            )
            hub = alone.point if alone else os.path.join(run, "fs")
            service = Service(served.repository, filesystem, sessions, config, hub, end, notifier.settled)
            nursery.start_soon(_stop_on_signal, end, run)
            nursery.start_soon(_keep_alive)
            nursery.start_soon(service.end_what_was_held)
            collect = gc_command(places.state, run, places.config)
            nursery.start_soon(collect_when_due, collect, float(config.gc.every), filesystem.resources)
            adoptable = Adoptable(descriptor, control_socket.fileno())
            methods = {**service.methods(), **adoptable.methods()}
            await nursery.start(control.serve, control_socket, methods)
            handover.hand_over(descriptor, "READY=1", f"STATUS=serving {stores} stores")
            if alone and shown and not take_over:
                alone.say_where(shown)
            await session.serve()
            end.announce(end.code)
        _say_what_is_open(filesystem, end.code)
    return end.code


def _say_what_is_open(filesystem: Filesystem, code: int) -> None:
    """Of a worker that ends with `code`: another goes on with it, or nobody does."""
    say = say_what_waits if code == handover.RESTART else say_what_is_lost
    for view in filesystem.writable_views():
        say(view)


def _marks(
    run: str, stack: contextlib.ExitStack, *, take_over: bool
) -> tuple[Answered, ViewNumbers, Unrecorded]:
    """What one worker leaves to the next in the run directory `run`; made anew for a new mount."""
    views, mark, dirty = (os.path.join(run, name) for name in ("views", "answered", "unrecorded"))
    if not take_over:
        for old in (views, mark, dirty):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(old)
    answered, numbers, unrecorded = Answered(mark), ViewNumbers(views), Unrecorded(dirty)
    for each in (answered, numbers, unrecorded):
        stack.enter_context(contextlib.closing(each))
    return answered, numbers, unrecorded


def _show_stores(served: Open) -> int:
    """Show every store in the hub; how many there are."""
    with served.repository.engine.reading() as reader:
        names = [store.name for store in catalog.every(reader)]
    for name in names:
        graft_store(served.filesystem, name)
    return len(names)


async def _keep_alive() -> None:
    """Say that this loop runs, as often as the keeper asks for it."""
    interval = handover.watchdog_interval()
    while interval is not None:
        handover.keep_alive()
        await trio.sleep(interval)


async def _stop_on_signal(end: _End, run: str) -> None:
    """Make room for another worker; without a keeper of ours that starts one, end."""
    try:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                end.stop(RESTART if keeper_of(run) is not None else 0)
    finally:  # one more is not to end this process before it has closed the log
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)


def main() -> int:
    places = _parsed()
    telemetry.configure(level="warning" if places.alone else "info")
    # Trees are many objects in few cycles: looking through all of them stops the mount for 150 ms at 120,000.
    gc.set_threshold(20_000, 10, 1_000)
    try:
        descriptors = handover.received_descriptors()
        if TURN in descriptors:
            descriptors = handover.wait_for_turn(descriptors[TURN])
            if not descriptors:
                return 0
        take_over = FUSE_SERVED in descriptors
        descriptor = descriptors.get(FUSE_SERVED if take_over else FUSE)
        if descriptor is None or "control" not in descriptors:
            raise UsageError("a worker is started by its keeper; run engramfs daemon")
        config = load(places.config) if places.config else Config()
        with (
            contextlib.closing(Teller(descriptor)) as teller,
            socket.socket(fileno=descriptors["control"]) as listener,
        ):
            return trio.run(_serve, places, config, descriptor, take_over, listener, teller)
    except Exception as raised:
        error = rpc.sole_error(raised)
        if isinstance(error, EngramError):
            os.write(2, f"engramfs: {error}\n".encode(errors="replace"))
            return error.exit_code
        if isinstance(raised, OSError):  # before it served: of the run directory
            os.write(2, f"engramfs: cannot use {places.run}: {raised}\n".encode(errors="replace"))
            return Unavailable.exit_code
        raise


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="engramfs worker", description="Serve one FUSE connection.")
    parser.add_argument("--state", required=True)
    parser.add_argument("--run", required=True)
    parser.add_argument("--config", default="")
    parser.add_argument("--alone", metavar="DIR", help="show one session alone, which is mounted at DIR")
    parser.add_argument("--agent")
    parser.add_argument("--actor")
    parser.add_argument("--tenant")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
