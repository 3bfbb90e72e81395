"""The daemon collects by itself, as often as `[gc] every` says.

A process of its own does the work, at the lowest priority: what costs the worker anything are its slices.
"""

import os
import subprocess
import sys
import time

import structlog
import trio

from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Table
from engramfs.vfs.resources import Resources

_FIRST = 600.0  # seconds from the start to the first collection ever
_LOOK = 3600.0  # seconds from one look at the clock to the next, at most
_OF_THE_WORKER = (
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
)
log = structlog.get_logger("engramfs.gc")


def gc_command(state: str, run: str, config: str) -> list[str]:
    """`config` may be empty."""
    command = ["nice", "-n", "19", sys.executable, "-m", "engramfs", "gc", "--state", state, "--run", run]
    return [*command, "--config", config] if config else command


async def collect_when_due(command: list[str], every: float, resources: Resources) -> None:
    """Run `command` `every` so many seconds, until cancelled; 0: never."""
    if not every:
        return
    started = time.time()
    while True:
        left = _last(resources.engine, started - every + min(every, _FIRST)) + every - time.time()
        if left > 0:
            await trio.sleep(min(left, _LOOK))
            continue
        if not await _collect(command, resources):
            started = time.time() - every
            await trio.sleep(min(every, _LOOK))


def _last(engine: Engine, otherwise: float) -> float:
    """When the last collection ended, in seconds since 1970."""
    with engine.reading() as reader:
        value = reader.get(Table.META, keys.COLLECTED_KEY)
    return keys.read_u64(value) / 10**9 if value is not None else otherwise


async def _collect(command: list[str], resources: Resources) -> bool:
    """Whether it came to its end."""
    environment = {name: value for name, value in os.environ.items() if name not in _OF_THE_WORKER}
    done = await trio.run_process(
        command,
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_stdout=True,
        capture_stderr=True,
    )
    if done.returncode == 0:
        log.info("collected", said=done.stdout.decode(errors="replace").split("\n"))
        return True
    reason = done.stderr.decode(errors="replace").strip()
    log.error("a collection failed", code=done.returncode, reason=reason)
    resources.failed("", f"engramfs gc failed: {reason}")
    return False
