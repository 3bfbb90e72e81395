"""A daemon whose first worker meets a fault at one of its system calls: strace makes it."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from engramfs.errors import EngramError

from ..harness.daemon import Daemon

DRIVER = """
import sys
from engramfs.daemon.keeper import run
sys.exit(run(sys.argv[1], sys.argv[2], None, sys.argv[3:]))
"""


def start(daemon: Daemon, calls: str, fault: str, number: int, path: str = "") -> bool:
    """Start a keeper whose first worker meets `fault` when it makes one of `calls` for the time `number`.

    `fault` is as strace has it, "error=EIO" or "signal=SIGKILL"; it counts each system call and each thread
    apart, and with `path` only calls on that file. Whether a worker answers; where none does, the keeper
    has ended.
    """
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    script = daemon.directory / "worker"
    inject = f"-e trace={calls} -e inject={calls}:{fault}:when={number}" + (f" -P {path}" if path else "")
    trace, used = daemon.directory / "trace", daemon.directory / "used"
    script.write_text(
        f'#!/bin/sh\n[ -e {used} ] && exec "$@"\n: >{used}\nexec strace -D -f -o {trace} {inject} "$@"\n'
    )
    script.chmod(0o700)
    os.makedirs(daemon.run_directory, mode=0o700)
    places = ["--state", daemon.state, "--run", daemon.run_directory]
    command = [sys.executable, "-c", DRIVER, daemon.state, daemon.run_directory, str(script)]
    command += [sys.executable, "-m", "engramfs.daemon.worker", *places]
    log = str(Path(daemon.run_directory, "daemon.log"))
    keeper = daemon.inside.call("start", command, None, daemon.environment, log)
    while daemon.inside.call("ended", keeper, 0.02) is None:
        if _answers(daemon):
            return True
    return False


def _answers(daemon: Daemon) -> bool:
    try:
        daemon.client.call("ping", timeout=5)
    except EngramError:
        return False
    return True


def hits(daemon: Daemon) -> list[str]:
    """The calls that met the fault, as strace shows them."""
    lines = (daemon.directory / "trace").read_text().splitlines()
    return [line for line in lines if "INJECTED" in line or "SIGKILL" in line]
