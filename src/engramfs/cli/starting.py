"""A daemon of our own: started detached, and waited for until it answers."""

import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from itertools import filterfalse

from engramfs.cli.invocation import Invocation
from engramfs.daemon import adoption
from engramfs.daemon.run_directory import ATTACHING, keeper_of
from engramfs.errors import Conflict, EngramError, NoDaemon, NotFound, Refused, Unavailable, UsageError

PATIENCE = 15.0  # seconds until a started daemon answers
_ROUTINE = (
    "engramfs keeper: started worker ",
    "engramfs keeper: worker: ",
    "engramfs keeper: the worker is ready",
)
_BY_EXIT_CODE = {kind.exit_code: kind for kind in (UsageError, NotFound, Conflict, Refused)}


@contextlib.contextmanager
def alone(invocation: Invocation) -> Iterator[None]:
    """One `up` of a run directory at a time: the second finds what the first has made."""
    run = invocation.locations.run
    try:
        os.makedirs(run, mode=0o700, exist_ok=True)
        descriptor = os.open(os.path.join(run, "up.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(f"cannot use {run}: {error.strerror}; choose another place with --run") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def start_daemon(invocation: Invocation) -> bool:
    """Start a daemon unless one answers; whether one was started.

    A worker that answers and whose keeper has died gets another keeper, which takes it in.

    Raises what the daemon said last when it ended at once, and `EngramError` when it does not answer.
    """
    if is_kept(invocation):
        return False
    log = _open_log(invocation)
    try:
        begin = os.lseek(log, 0, os.SEEK_END)
        process = _spawn([*invocation.locations.options(), "daemon"], log)
    finally:
        os.close(log)
    deadline = time.monotonic() + PATIENCE
    status: int | None = None
    while not _is_ready(invocation, max(0.1, deadline - time.monotonic())):
        status = _exit_status(process) if status is None else status
        if status is not None and keeper_of(invocation.locations.run) is None:  # else another was started
            raise _why_ended(invocation, begin, status)
        if time.monotonic() > deadline:
            log_path = invocation.locations.daemon_log
            raise EngramError(f"the daemon does not answer after {PATIENCE:g} s; {log_path} may say why")
        time.sleep(0.01)
    return True


def is_kept(invocation: Invocation, within: float = adoption.PATIENCE) -> bool:
    """Whether a worker answers, and is the one that the keeper of the run directory keeps."""
    try:
        known = adoption.keeper_known(invocation.client, within)  # a service manager may start one for this
    except NoDaemon:
        return False
    keeper = keeper_of(invocation.locations.run)
    return keeper is not None and known in (keeper, None)


def _is_ready(invocation: Invocation, within: float) -> bool:
    """Whether a daemon serves, and has put the sessions of an earlier one back."""
    attaching = os.path.join(invocation.locations.run, ATTACHING)
    return is_kept(invocation, within) and not os.path.exists(attaching)


def _open_log(invocation: Invocation) -> int:
    locations = invocation.locations
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(locations.daemon_log, flags, 0o600)
    except OSError as error:
        raise Unavailable(
            f"cannot write {locations.daemon_log}: {error.strerror}; choose another place with --run"
        ) from error


def _spawn(arguments: list[str], log: int) -> int:
    """Run `engramfs` in a session of its own, so that no terminal's signals reach it."""
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "engramfs", *arguments],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
        ],
        setsid=True,
    )


def _exit_status(process: int) -> int | None:
    ended, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _why_ended(invocation: Invocation, begin: int, status: int) -> EngramError:
    path = invocation.locations.daemon_log
    if status <= 0:
        how = f"killed by {signal.Signals(-status).name}" if status else "stopped"
        return Unavailable(f"the daemon was {how} while it started; engramfs up tries again, and see {path}")
    with open(path, "rb") as file:
        file.seek(begin)
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("engramfs: ")] or list(filterfalse(_is_routine, lines))
    kind = _BY_EXIT_CODE.get(status, Unavailable)
    if not said:
        return kind(f"the daemon ended while it started, with exit status {status}; see {path}")
    return kind(said[-1].removeprefix("engramfs keeper: ").removeprefix("engramfs: "))


def _is_routine(line: str) -> bool:
    """Whether a line of the log says what happens at every start."""
    return "level=info" in line or line.startswith(_ROUTINE)
