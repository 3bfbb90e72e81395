"""A vfs in this process over a real log in tmp_path. After every test it is stopped and verified."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import trio

from engramfs.vfs.resources import Settings

from .machine import NEVER, Machine

Boot = Callable[..., Awaitable[Machine]]


@pytest.fixture
async def boot(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Boot]:
    """Starts a machine over `state`: `await boot(quiet=0.02)`. By default only `seal` seals."""
    machines: list[Machine] = []

    async def boot(
        *,
        state: str | None = None,
        quiet: float = NEVER,
        max_age: float = NEVER,
        journal_bytes: int = 64 << 20,
        sync_on_close: bool = False,
        crashed: Machine | None = None,
    ) -> Machine:
        settings = Settings(quiet=quiet, max_age=max_age, sync_on_close=sync_on_close)
        machine = Machine(state or str(tmp_path / "state"), settings, journal_bytes, crashed)
        machines.append(machine)
        machine.create_store()
        nursery.start_soon(machine.serve)
        return machine

    yield boot
    for machine in machines:
        await machine.stop()
    for machine in {machine.state: machine for machine in machines}.values():
        machine.check_soundness()


@pytest.fixture
async def machine(boot: Boot) -> Machine:
    return await boot()
