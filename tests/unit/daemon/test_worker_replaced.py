"""What a caller of the control socket meets when the worker ends over the call and is replaced."""

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from engramfs.daemon import control_socket, rpc
from engramfs.daemon.client import ControlClient
from engramfs.errors import EngramError, NoDaemon, Unanswered

Worker = Callable[[socket.socket], None]


def ends_unread(_connection: socket.socket) -> None:
    """Ends with the request in the socket."""


def ends_after_part(connection: socket.socket) -> None:
    """Ends with the end of the line in the socket."""
    connection.recv(8)


def ends_over_it(connection: socket.socket) -> None:
    with connection.makefile("rb") as lines:
        lines.readline()


def answers(connection: socket.socket) -> None:
    with connection.makefile("rb") as lines:
        request = rpc.decode_request(lines.readline())
    connection.sendall(rpc.result(request.identifier, f"{request.method} is done"))


class Keeper:
    """One listening socket, and for each request that comes there another worker."""

    def __init__(self, run: str, *workers: Worker) -> None:
        self.requests = 0
        self._listener = control_socket.listen(run)
        self._workers = iter(workers)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def __enter__(self) -> "Keeper":
        return self

    def __exit__(self, *_exc: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection:
                    connection.settimeout(10)
                    if connection.recv(1, socket.MSG_PEEK):  # else somebody only asks whether we listen
                        self.requests += 1
                        next(self._workers)(connection)


@pytest.mark.parametrize("ends", [ends_unread, ends_after_part])
def test_what_the_worker_cannot_have_taken_is_sent_again_whatever_it_is(tmp_path: Path, ends: Worker) -> None:
    with Keeper(str(tmp_path), ends, ends, ends, answers):
        assert ControlClient(str(tmp_path)).call("edit", store="s") == "edit is done"


def test_a_request_that_did_not_fit_into_the_socket_is_sent_again(tmp_path: Path) -> None:
    with Keeper(str(tmp_path), ends_after_part, answers):
        assert ControlClient(str(tmp_path)).call("edit", content="x" * (4 << 20)) == "edit is done"


def test_what_only_reads_is_sent_again(tmp_path: Path) -> None:
    with Keeper(str(tmp_path), ends_over_it, answers):
        assert ControlClient(str(tmp_path)).call("session.show", id="1") == "session.show is done"


def test_what_may_have_been_done_is_not_done_again(tmp_path: Path) -> None:
    said = "the worker was replaced before it answered edit, which may have been done or not; look"
    with Keeper(str(tmp_path), ends_over_it, answers) as keeper:
        with pytest.raises(Unanswered, match=said):
            ControlClient(str(tmp_path)).call("edit", store="s")
        assert keeper.requests == 1


def test_a_call_over_which_every_worker_ends_does_not_go_on_for_ever(tmp_path: Path) -> None:
    with Keeper(str(tmp_path), *[ends_over_it] * 9) as keeper:
        with pytest.raises(NoDaemon, match="ended 3 times before it answered status"):
            ControlClient(str(tmp_path)).call("status")
        assert keeper.requests == 3


def test_the_wait_for_another_worker_ends_with_the_callers_patience(tmp_path: Path) -> None:
    with (
        Keeper(str(tmp_path), *[ends_unread] * 999),
        pytest.raises(EngramError, match="did not answer edit"),
    ):
        ControlClient(str(tmp_path), timeout=0.2).call("edit")
