"""A daemon whose workers are started through a script of the test."""

import os
import sys
from pathlib import Path

from engramfs.errors import EngramError

from ..harness.daemon import Daemon

KEEP = """
import sys
from engramfs.daemon.keeper import run
sys.exit(run(sys.argv[1], sys.argv[2], None, sys.argv[3:]))
"""


def start(daemon: Daemon, script: str) -> bool:
    """Start a keeper whose workers are `sh -c SCRIPT`, where "$@" is the worker itself.

    Whether a worker answers; where none does, the keeper has ended.
    """
    places = ["--state", daemon.state, "--run", daemon.run_directory]
    worker = [sys.executable, "-m", "engramfs.daemon.worker", *places]
    keeper = [
        sys.executable,
        "-c",
        KEEP,
        daemon.state,
        daemon.run_directory,
        "sh",
        "-c",
        script,
        "sh",
        *worker,
    ]
    os.makedirs(daemon.run_directory, mode=0o700)
    log = str(Path(daemon.run_directory, "daemon.log"))
    process = daemon.inside.call("start", keeper, None, daemon.environment, log)
    while daemon.inside.call("ended", process, 0.02) is None:
        if _answers(daemon):
            return True
    return False


def _answers(daemon: Daemon) -> bool:
    try:
        daemon.client.call("ping", timeout=5)
    except EngramError:
        return False
    return True
