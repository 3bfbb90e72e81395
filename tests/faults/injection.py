"""A daemon whose first worker meets a fault at one of its system calls: strace makes it."""

import shutil

import pytest

from ..harness.daemon import Daemon
from . import wrapped_worker


def start(daemon: Daemon, calls: str, fault: str, number: int, path: str = "") -> bool:
    """Start a keeper whose first worker meets `fault` when it makes one of `calls` for the time `number`.

    `fault` is as strace has it, "error=EIO" or "signal=SIGKILL"; it counts each system call and each thread
    apart, and with `path` only calls on that file. Whether a worker answers; where none does, the keeper
    has ended.
    """
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    inject = f"-e trace={calls} -e inject={calls}:{fault}:when={number}" + (f" -P {path}" if path else "")
    trace, used = daemon.directory / "trace", daemon.directory / "used"
    script = f'[ -e {used} ] && exec "$@"; : >{used}; exec strace -D -f -o {trace} {inject} "$@"'
    return wrapped_worker.start(daemon, script)


def hits(daemon: Daemon) -> list[str]:
    """The calls that met the fault, as strace shows them."""
    lines = (daemon.directory / "trace").read_text().splitlines()
    return [line for line in lines if "INJECTED" in line or "SIGKILL" in line]
