"""What makes pyfuse3's loop safe, and twice as fast. `install` once, then `serve` instead of `main`.

Safe. pyfuse3 waits until /dev/fuse is readable and then reads it, blocking, with the GIL held. A client
that is killed in between takes its request back, and the read waits for the next one with everything
stopped. The descriptor is therefore non-blocking, and `serve` re-enters `main` when a read finds nothing.
That cancels the tasks of the earlier `main`, so a handler that waits shields itself. Polling once more
right before the read makes all of this rare.

Fast. As shipped, every request costs a checkpoint to take the read lock, an `epoll_ctl` and an
`epoll_wait`. A lock that stays with its reader, and polling a few microseconds before sleeping, save all
three when the next request is there soon. `FAIR` keeps other tasks alive meanwhile.

pyfuse3 takes a stand-in for trio in its module attribute `trio`: the way in which its own asyncio mode
works. This module is the one door to that global.
"""

import errno
import select
import time
import types
from collections.abc import Callable

import pyfuse3
import trio

SPIN = 100e-6  # seconds to go on polling for the next request before sleeping: what waking up costs
FAIR = 32  # requests served in a row before other tasks get a turn


class _Lock(trio.abc.Instrument):
    """What pyfuse3 waits for requests under. It is held by one task, the reader.

    `trio.Lock` would hand itself to the next waiting task with every request, which costs a switch of
    tasks and a turn of the event loop. Here a reader that answered without waiting takes the lock again at
    once. As an instrument of trio the lock hears when a task has yielded: if that was the reader, waiting
    in a handler, the next task becomes the reader.
    """

    def __init__(self) -> None:
        self._held = False
        self._waiting = trio.lowlevel.ParkingLot()
        trio.lowlevel.add_instrument(self)

    async def __aenter__(self) -> None:
        if self._held:
            await self._waiting.park()  # until it is handed over, held
        self._held = True

    async def __aexit__(self, *exc: object) -> None:
        self._held = False

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if not self._held and self._waiting:
            self._held = True
            self._waiting.unpark()


class _Readable:
    """Waits for one descriptor: polling first, sleeping after.

    `idle` is called each time, when whatever came before has been answered.
    """

    def __init__(self, idle: Callable[[], None]) -> None:
        self._idle = idle
        self._poller = select.poll()
        self._known: set[int] = set()
        self._served = 0

    async def __call__(self, descriptor: int) -> None:
        if descriptor not in self._known:
            self._poller.register(descriptor, select.POLLIN)
            self._known.add(descriptor)
        self._idle()
        self._served += 1
        if self._served % FAIR == 0:
            await trio.lowlevel.checkpoint()
        poll = self._poller.poll
        if poll(0):
            return
        end = time.perf_counter() + SPIN
        while time.perf_counter() < end:
            if poll(0):
                return
        while True:
            await trio.lowlevel.wait_readable(descriptor)
            if poll(0):
                return


def install(idle: Callable[[], None]) -> None:
    """Give pyfuse3 the stand-in. Once for each process and session."""
    pyfuse3.trio = types.SimpleNamespace(  # type: ignore[attr-defined]
        Lock=_Lock,
        open_nursery=trio.open_nursery,
        ClosedResourceError=trio.ClosedResourceError,
        lowlevel=types.SimpleNamespace(
            wait_readable=_Readable(idle),
            current_task=trio.lowlevel.current_task,
            current_trio_token=trio.lowlevel.current_trio_token,
            notify_closing=trio.lowlevel.notify_closing,
        ),
    )


async def serve() -> None:
    """Run `pyfuse3.main` until the filesystem is unmounted everywhere."""
    while True:
        try:
            await pyfuse3.main()
        except* OSError as group:
            if any(not _found_nothing(error) for error in _leaves(group)):
                raise
        else:
            return


def _found_nothing(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EAGAIN


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return leaves
