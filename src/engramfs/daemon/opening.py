"""A state directory, opened to serve it: recovered after a fresh start, gone on with after a takeover.

`opened` gives back in the reverse order what it took; `serving` runs the tasks that seal and write.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType

import msgspec
import trio

from engramfs import telemetry
from engramfs.daemon.config import Config
from engramfs.errors import StorageError
from engramfs.history import hygiene
from engramfs.history.repository import Repository
from engramfs.model.transient import TransientNames
from engramfs.storage.journal import Journal
from engramfs.storage.reserve import Reserve
from engramfs.vfs import lost_spools
from engramfs.vfs.failures import Failures
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.invalidator import Invalidator
from engramfs.vfs.log_writer import LogWriter
from engramfs.vfs.recovery import Recovered, last_position, recover
from engramfs.vfs.resources import Resources, Settings
from engramfs.vfs.unrecorded import Unrecorded
from engramfs.vfs.view_numbers import Key, ViewNumbers

NO_VIEWS: Mapping[int, Key] = MappingProxyType({})


class Open(msgspec.Struct, frozen=True):
    """A state directory that can be served."""

    repository: Repository
    filesystem: Filesystem
    writer: LogWriter


@contextlib.contextmanager
def opened(
    state: str,
    config: Config,
    invalidator: Invalidator,
    *,
    purpose: str = "the engramfs daemon",
    numbers: ViewNumbers | None = None,
    unrecorded: Unrecorded | None = None,
    failures: Failures | None = None,
    take_over: bool = False,
    position: int = 0,
    former_views: Mapping[int, Key] = NO_VIEWS,
) -> Iterator[Open]:
    """Open `state` for writing, with a filesystem over it.

    Without `take_over`, what an earlier worker left in the journal is sealed, and what it had open ends.
    With it, nothing is ended: `engramfs.vfs.resuming` goes on with it. `purpose` tells others who holds
    the store lock; journal positions go on after `position`. `former_views` are those that an earlier
    worker served, by number.
    """
    transient = TransientNames(config.batch.transient)
    with contextlib.ExitStack() as stack:
        repository = stack.enter_context(Repository.open(state, write=purpose))
        found = Recovered() if take_over else recover(repository, transient, former_views)
        reserve = stack.enter_context(contextlib.closing(Reserve(repository.reserve_path)))
        journal = Journal(repository.journal_path, int(config.journal.max_bytes), reserve)
        stack.callback(journal.close)
        journal.position = max(journal.position, last_position(repository), position)
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
            unrecorded=unrecorded,
            failures=failures,
        )
        writer.on_trouble = lambda what: resources.failed("", what)
        report(resources, found)
        if not take_over:
            _end_what_was_open(repository)
        if not hygiene.is_available():
            telemetry.logger("worker").info(hygiene.MISSING)
        yield Open(repository, Filesystem(resources, numbers, resumed=take_over), writer)


def _end_what_was_open(repository: Repository) -> None:
    for leftover in os.listdir(repository.spool_path):
        os.unlink(os.path.join(repository.spool_path, leftover))


def report(resources: Resources, found: Recovered) -> None:
    """Say in the log, and in `status` where something was lost, what an earlier worker left."""
    if found.records or found.torn_bytes:
        facts = {name: value for name, value in msgspec.structs.asdict(found).items() if name != "lost"}
        telemetry.logger("worker").info("recovered", **facts)
    for what in found.skipped:
        resources.failed("", f"not recovered: {what}")
    if found.torn_bytes:
        resources.failed("", f"dropped {found.torn_bytes} torn bytes at the end of the journal")
    if found.lost:  # their names stay out of the log file: see `engramfs.vfs.losing`
        telemetry.logger("worker").warning("dropped what was written and not closed", files=len(found.lost))
    for store, what in lost_spools.described(found.lost):
        resources.failed(store, what)


@contextlib.asynccontextmanager
async def serving(state: Open, *, expendable: bool = False) -> AsyncIterator[trio.Nursery]:
    """Seal and write in the background; at the end, everything that is open is sealed first.

    An `expendable` process ends at once when that fails: the next one answers what is in flight.
    """
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_vital, state.writer.serve, expendable)
        nursery.start_soon(_vital, state.filesystem.seal_when_due, expendable)
        nursery.start_soon(_vital, state.filesystem.resources.failed_closes.serve, expendable)
        try:
            yield nursery
        finally:
            # What cannot be sealed stays in the journal, and the next start seals it.
            with trio.CancelScope(shield=True), trio.move_on_after(5), contextlib.suppress(StorageError):
                await state.filesystem.seal_all()
            nursery.cancel_scope.cancel()


async def _vital(task: Callable[[], Awaitable[None]], expendable: bool) -> None:
    """Without this task nothing is sealed, and a call that waits for that would wait for ever."""
    try:
        await task()
    except Exception as error:
        telemetry.logger("worker").exception("cannot go on", reason=str(error))
        if expendable:
            os._exit(1)
        raise
