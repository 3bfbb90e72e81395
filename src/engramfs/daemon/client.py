"""The synchronous client of the control socket, as the command line uses it. Imports neither trio nor LMDB.

A worker that ends with a call unanswered is replaced by its keeper. What it cannot have taken is sent again
to the next one, and so is what only reads; of anything else `Unanswered` says that it may have been done.
Nothing is ever written twice.

Concurrency. One connection for each call, so a client may be shared. Nothing is kept between calls but that
the daemon serves the right state.
"""

import contextlib
import os
import socket
import time
from collections.abc import Callable
from typing import Any

from engramfs.daemon import control_socket, rpc
from engramfs.errors import EngramError, NoDaemon, OtherState, TooLarge, Unanswered

Progress = Callable[[dict[str, object]], None]

_REPEATABLE = frozenset({"ping", "status", "barrier", "session.list", "session.show"})
_REPEATS = 2  # of a call that a worker had taken: it may be what ended the worker
_PAUSE = 0.01  # seconds


class _Broken(Exception):
    """The connection ended before the answer came."""

    def __init__(self, *, was_taken: bool) -> None:
        super().__init__()
        self.was_taken = was_taken  # perhaps


class ControlClient:
    """Calls the daemon whose run directory is `run_dir`.

    With `state`, the daemon has to serve that state directory: it is asked before the first call.

    `timeout` bounds the silence of the daemon in seconds: each line that it sends, progress included,
    starts it anew.
    """

    def __init__(self, run_dir: str, timeout: float = 60.0, *, state: str | None = None) -> None:
        self.run_dir = run_dir
        self.timeout = timeout
        self._expected = state

    def call(
        self, method: str, *, progress: Progress | None = None, timeout: float | None = None, **params: object
    ) -> Any:
        """The result of `method`. Raises what the method raised, and `NoDaemon` when none answers.

        Raises `TooLarge` for a call that is longer than one may be, `OtherState` when the daemon serves
        another state than it should, and `Unanswered` when the worker ended over a call that changes
        something.
        """
        limit = self.timeout if timeout is None else timeout
        request = _encoded(method, params)
        if self._expected is not None:
            self._require_state(self._expected, limit)
        return self._call(method, limit, request, progress)

    def _require_state(self, expected: str, limit: float) -> None:
        served = self._call("ping", limit, _encoded("ping", {}), None)["state"]
        if not _is_one_directory(served, expected):
            raise OtherState(
                f"the daemon at {self.run_dir} serves the state {served} and not {expected}; "
                f"give --state {served}, or the --run of another daemon"
            )
        self._expected = None

    def _call(self, method: str, limit: float, request: bytes, progress: Progress | None) -> Any:
        deadline, repeats = None, _REPEATS if method in _REPEATABLE else 0
        while True:
            try:
                return self._call_once(method, limit, request, progress)
            except _Broken as broken:
                if broken.was_taken and not repeats:
                    raise self._unanswered(method) from None
                repeats -= broken.was_taken
            now = time.monotonic()
            deadline = deadline or now + limit
            limit = max(_PAUSE, deadline - now)
            if now > deadline:
                raise self._silent(method)
            time.sleep(_PAUSE)

    def _call_once(self, method: str, limit: float, request: bytes, progress: Progress | None) -> Any:
        with control_socket.connect(self.run_dir, limit) as connection:
            try:
                return _exchange(connection, request, progress)
            except TimeoutError:
                raise self._silent(method, limit) from None

    def _silent(self, method: str, limit: float | None = None) -> EngramError:
        within = f" within {limit:g} s" if limit is not None else ", and neither did those that replaced it"
        return EngramError(f"the daemon did not answer {method}{within}; see {self.run_dir}/daemon.log")

    def _unanswered(self, method: str) -> EngramError:
        if method in _REPEATABLE:
            times = f"{_REPEATS + 1} times before it answered {method}"
            return NoDaemon(f"the daemon ended {times}; see {self.run_dir}/daemon.log")
        what = f"before it answered {method}, which may have been done or not"
        look = "look whether it was done before you do it again"
        if self.is_listening():
            return Unanswered(f"the worker was replaced {what}; {look}")
        return Unanswered(f"the daemon ended {what}; start it with engramfs up, and {look}")

    def is_running(self) -> bool:
        """Whether a daemon answers."""
        try:
            self.call("ping", timeout=5)
        except NoDaemon:
            return False
        return True

    def is_listening(self) -> bool:
        """Whether somebody will answer, as far as can be told without waiting for it."""
        try:
            control_socket.connect(self.run_dir, self.timeout).close()
        except NoDaemon:
            return False
        return True


def _encoded(method: str, params: dict[str, object]) -> bytes:
    """The request as it is sent. Raises `TooLarge` for what the daemon would not read to its end."""
    request = rpc.request(1, method, params)
    if len(request) > rpc.MAX_REQUEST:
        most, size = f"{rpc.MAX_REQUEST:,}", f"{len(request):,}"
        raise TooLarge(f"a call of {method} has at most {most} bytes, and this one {size}; make several")
    return request


def _exchange(connection: socket.socket, request: bytes, progress: Progress | None) -> Any:
    """The answer to one request. Raises what it says, and `_Broken` when it does not come."""
    is_sent = False
    # A server that refuses us answers and closes at once: then its answer is still to be read.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(request)
        is_sent = True
    try:
        with connection.makefile("rb") as lines:
            for line in lines:
                message = rpc.decode(line)
                if message.get("method") == "progress":
                    if progress is not None:
                        progress(_parameters(message))
                elif "error" in message:
                    raise rpc.error_from(message["error"])
                elif message.get("id") == 1:
                    return message.get("result")
    except ConnectionResetError:
        # So, rather than by an end, the kernel says that bytes of ours were never read. The last of them is
        # the end of the line, without which there is no request.
        raise _Broken(was_taken=False) from None
    raise _Broken(was_taken=is_sent)


def _is_one_directory(path: str, other: str) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


def _parameters(message: dict[str, object]) -> dict[str, object]:
    params = message.get("params")
    return params if isinstance(params, dict) else {}
