"""The synchronous client of the control socket, as the command line uses it. Imports neither trio nor LMDB.

Concurrency. One connection for each call, so a client may be shared. Nothing is kept between calls but that
the daemon serves the right state.
"""

import contextlib
import os
import socket
from collections.abc import Callable
from typing import Any

from engramfs.daemon import control_socket, rpc
from engramfs.errors import Conflict, EngramError, NoDaemon

Progress = Callable[[dict[str, object]], None]


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

        Raises `Conflict` when the daemon serves another state than it should.
        """
        limit = self.timeout if timeout is None else timeout
        if self._expected is not None:
            self._require_state(self._expected, limit)
        return self._call(method, limit, params, progress)

    def _require_state(self, expected: str, limit: float) -> None:
        served = self._call("ping", limit, {}, None)["state"]
        if not _is_one_directory(served, expected):
            raise Conflict(
                f"the daemon at {self.run_dir} serves the state {served} and not {expected}; "
                f"give --state {served}, or the --run of another daemon"
            )
        self._expected = None

    def _call(self, method: str, limit: float, params: dict[str, object], progress: Progress | None) -> Any:
        with control_socket.connect(self.run_dir, limit) as connection:
            try:
                return self._exchange(connection, method, params, progress)
            except TimeoutError:
                raise EngramError(
                    f"the daemon did not answer {method} within {limit:g} s; see {self.run_dir}/daemon.log"
                ) from None
            except ConnectionError:
                raise NoDaemon(
                    f"the daemon ended before it answered {method}; engramfs up starts it again"
                ) from None

    def _exchange(
        self, connection: socket.socket, method: str, params: dict[str, object], progress: Progress | None
    ) -> Any:
        # A server that refuses us answers and closes at once: then its answer is still to be read.
        with contextlib.suppress(BrokenPipeError):
            connection.sendall(rpc.request(1, method, params))
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
        raise NoDaemon(f"the daemon ended before it answered {method}; engramfs up starts it again")

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


def _is_one_directory(path: str, other: str) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


def _parameters(message: dict[str, object]) -> dict[str, object]:
    params = message.get("params")
    return params if isinstance(params, dict) else {}
