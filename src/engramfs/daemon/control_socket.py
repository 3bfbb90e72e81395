"""The unix socket `<run>/control`: bound by the keeper, or by systemd for it, and found by clients.

A socket's address ends at 107 bytes, and run directories may be deeper than that; so the directory is
opened and the socket addressed through `/proc/self/fd`.
"""

import contextlib
import os
import socket
import stat
from collections.abc import Iterator

from engramfs.errors import Busy, NoDaemon, Refused, Unavailable

NAME = "control"


def listen(run: str) -> socket.socket:
    """A listening socket in the directory `run`, made when missing; a stale one is replaced.

    Only its owner reaches it. Raises `Busy` when a daemon answers there, and `Unavailable`.
    """
    try:
        os.makedirs(run, mode=0o700, exist_ok=True)
    except OSError as error:
        raise Unavailable(
            f"cannot create {run}: {error.strerror}; choose another place with --run"
        ) from error
    _remove_stale(run)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        with _address(run) as address:
            listener.bind(address)
        os.chmod(os.path.join(run, NAME), 0o600)
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise Unavailable(f"cannot listen on {run}/{NAME}: {error.strerror}") from error
    return listener


@contextlib.contextmanager
def listening(run: str, passed: int | None = None) -> Iterator[socket.socket]:
    """The listening socket of the directory `run`, removed at the end.

    `passed` is its descriptor when the service manager made it; then that is used, and stays on disk.
    Raises as `listen` does, and `Unavailable` when what was passed is not where clients look.
    """
    if passed is None:
        with listen(run) as listener:
            try:
                yield listener
            finally:
                os.unlink(os.path.join(run, NAME))
    else:
        with socket.socket(fileno=passed) as listener:
            _require_that_clients_find(listener, run)
            yield listener


@contextlib.contextmanager
def inherited(run: str, descriptor: int) -> Iterator[socket.socket]:
    """The listening socket of the directory `run` that another process made; removed at the end."""
    with socket.socket(fileno=descriptor) as listener:
        try:
            yield listener
        finally:
            os.unlink(os.path.join(run, NAME))


def _require_that_clients_find(listener: socket.socket, run: str) -> None:
    address, expected = listener.getsockname(), os.path.join(run, NAME)
    try:
        found = listener.family == socket.AF_UNIX and os.path.samefile(address, expected)
    except OSError:
        found = False
    if not found:
        raise Unavailable(
            f"the service manager listens on {address!r} and clients look for {expected}; "
            "make ListenStream= and --run agree"
        )


def connect(run: str, timeout: float) -> socket.socket:
    """A connection to the daemon of `run`. Raises `NoDaemon` and `Refused`."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    connection.settimeout(timeout)
    try:
        with _address(run) as address:
            connection.connect(address)
    except (FileNotFoundError, NotADirectoryError):
        connection.close()
        raise NoDaemon(f"no daemon runs: there is no {run}/{NAME}; engramfs up starts one") from None
    except ConnectionRefusedError:
        connection.close()
        raise NoDaemon(
            f"no daemon runs: {run}/{NAME} was left by one that ended; engramfs up starts one"
        ) from None
    except PermissionError:
        connection.close()
        raise Refused(f"{run}/{NAME} is another user's; run engramfs as its owner or as root") from None
    except (TimeoutError, BlockingIOError):
        connection.close()
        raise NoDaemon(
            f"the daemon of {run} does not accept connections; engramfs down and up restart it"
        ) from None
    return connection


@contextlib.contextmanager
def _address(run: str) -> Iterator[str]:
    descriptor = os.open(run, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{NAME}"
    finally:
        os.close(descriptor)


def _remove_stale(run: str) -> None:
    path = os.path.join(run, NAME)
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise Unavailable(f"{path} is not a socket; move it away or choose another place with --run")
    try:
        connect(run, timeout=5).close()
    except NoDaemon:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    raise Busy(
        f"a daemon runs already and answers on {path}; engramfs down stops it",
    )
