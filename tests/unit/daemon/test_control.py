"""The control server: real unix sockets, and nothing that a client sends ends it."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from engramfs.daemon import control, control_socket, rpc
from engramfs.daemon.client import ControlClient
from engramfs.errors import Busy, EngramError, NoDaemon, ReadOnly


async def echo(params: dict[str, object], peer: control.Peer, notify: control.Notify) -> object:
    return params


async def who(params: dict[str, object], peer: control.Peer, notify: control.Notify) -> object:
    return {"pid": peer.pid, "uid": peer.uid, "gid": peer.gid}


async def refuse(params: dict[str, object], peer: control.Peer, notify: control.Notify) -> object:
    raise ReadOnly("store x is read-only; write elsewhere")


async def refuse_inside(params: dict[str, object], peer: control.Peer, notify: control.Notify) -> object:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(refuse, params, peer, notify)
    return None


async def crash(params: dict[str, object], peer: control.Peer, notify: control.Notify) -> object:
    raise RuntimeError("a bug")


async def unserializable(params: dict[str, object], peer: control.Peer, notify: control.Notify) -> object:
    return {"x": object()}


async def count(params: dict[str, object], peer: control.Peer, notify: control.Notify) -> object:
    for done in range(3):
        await notify({"done": done, "total": 3})
    return "counted"


async def sleep(params: dict[str, object], peer: control.Peer, notify: control.Notify) -> object:
    await trio.sleep_forever()


METHODS = {
    "echo": echo,
    "who": who,
    "refuse": refuse,
    "refuse_in_a_nursery": refuse_inside,
    "crash": crash,
    "unserializable": unserializable,
    "count": count,
    "sleep": sleep,
}


@asynccontextmanager
async def serving(run: str) -> AsyncIterator[ControlClient]:
    listener = control_socket.listen(run)
    async with trio.open_nursery() as nursery:
        await nursery.start(control.serve, listener, METHODS)
        yield ControlClient(run, timeout=10)
        nursery.cancel_scope.cancel()


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[ControlClient]:
    async with serving(str(tmp_path / "run")) as client:
        yield client


async def call(client: ControlClient, method: str, **params: Any) -> object:
    return await trio.to_thread.run_sync(lambda: client.call(method, **params))


async def raw_exchange(client: ControlClient, sent: bytes) -> list[dict[str, Any]]:
    """What the server answers to `sent` before it closes, or once each line has an answer."""
    with trio.fail_after(10):
        stream = await trio.open_unix_socket(os.path.join(client.run_dir, "control"))
        async with stream:
            await stream.send_all(sent)
            await stream.send_eof()
            received = b"".join([part async for part in stream])
    return [json.loads(line) for line in received.splitlines()]


async def test_a_call_returns_what_the_method_returns(client: ControlClient) -> None:
    sent = {"a": [1, None, "ü"], "path": "x\udcff"}
    assert await call(client, "echo", **sent) == sent


async def test_the_peer_is_who_the_kernel_says(client: ControlClient) -> None:
    assert await call(client, "who") == {"pid": os.getpid(), "uid": os.getuid(), "gid": os.getgid()}


async def test_an_error_is_raised_again_by_the_client(client: ControlClient) -> None:
    for method in ("refuse", "refuse_in_a_nursery"):
        with pytest.raises(ReadOnly, match="write elsewhere"):
            await call(client, method)


async def test_a_handler_that_fails_ends_nothing(
    client: ControlClient, capsys: pytest.CaptureFixture[str]
) -> None:
    for method in ("crash", "unserializable"):
        with pytest.raises(EngramError, match="internal error"):
            await call(client, method)
    assert await call(client, "echo") == {}
    assert "a bug" in capsys.readouterr().out, "the traceback is logged"


async def test_progress_arrives_before_the_result(client: ControlClient) -> None:
    seen: list[dict[str, object]] = []
    assert await trio.to_thread.run_sync(lambda: client.call("count", progress=seen.append)) == "counted"
    assert [(each["done"], each["total"]) for each in seen] == [(0, 3), (1, 3), (2, 3)]


async def test_an_unknown_method_is_named(client: ControlClient) -> None:
    with pytest.raises(EngramError, match="there is no method nonsense"):
        await call(client, "nonsense")
    answers = await raw_exchange(client, b'{"jsonrpc":"2.0","id":7,"method":"nonsense"}\n')
    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [(7, -32601)]


async def test_malformed_lines_are_answered_and_the_connection_goes_on(client: ControlClient) -> None:
    sent = b'{oops\n[]\n\n{"jsonrpc":"2.0","id":1,"method":"echo","params":{"x":1}}\n'
    answers = await raw_exchange(client, sent)
    assert [answer.get("error", {}).get("code") for answer in answers] == [-32700, -32600, None]
    assert answers[-1] == {"jsonrpc": "2.0", "id": 1, "result": {"x": 1}}


async def test_a_notification_gets_no_answer(client: ControlClient) -> None:
    assert await raw_exchange(client, b'{"jsonrpc":"2.0","method":"crash"}\n') == []


@pytest.mark.parametrize("ending", [b"", b"\n"])
async def test_a_request_over_the_bound_is_refused(client: ControlClient, ending: bytes) -> None:
    answers = await raw_exchange(client, b"x" * (rpc.MAX_REQUEST + 1) + ending)
    assert len(answers) == 1
    assert f"over {rpc.MAX_REQUEST} bytes" in answers[0]["error"]["message"]
    assert await call(client, "echo") == {}


async def test_a_request_within_the_bound_is_served(client: ControlClient) -> None:
    text = "x" * (rpc.MAX_REQUEST - 200)
    assert await call(client, "echo", text=text) == {"text": text}


async def test_connections_do_not_wait_for_each_other(client: ControlClient) -> None:
    async with trio.open_nursery() as nursery:
        stream = await trio.open_unix_socket(os.path.join(client.run_dir, "control"))
        await stream.send_all(rpc.request(1, "sleep", {}))
        with trio.fail_after(5):
            assert await call(client, "echo") == {}
        await stream.aclose()
        nursery.cancel_scope.cancel()


async def test_clients_that_vanish_are_forgotten(client: ControlClient) -> None:
    for sent in (b"", b"{", rpc.request(1, "count", {})):
        stream = await trio.open_unix_socket(os.path.join(client.run_dir, "control"))
        await stream.send_all(sent or b" ")
        await stream.aclose()
    assert await call(client, "echo") == {}


async def test_a_silent_daemon_is_an_error_after_the_timeout(client: ControlClient) -> None:
    with pytest.raises(EngramError, match=r"did not answer sleep within 0\.2 s"):
        await trio.to_thread.run_sync(lambda: client.call("sleep", timeout=0.2))


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
async def test_another_uid_is_refused_by_its_credentials_not_by_the_file_mode(client: ControlClient) -> None:
    os.chmod(client.run_dir, 0o755)
    os.chmod(os.path.join(client.run_dir, "control"), 0o777)
    become_another = (
        "import os, socket, sys\n"
        "connection = socket.socket(socket.AF_UNIX)\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "connection.connect('control')\n"
        "sys.stdout.write(connection.makefile().read())\n"
    )
    child = await trio.run_process(
        [sys.executable, "-c", become_another],
        cwd=client.run_dir,  # entered before the uid changes, so its parents need not be open to it
        capture_stdout=True,
        check=True,
    )
    answer = json.loads(child.stdout)
    assert answer["id"] is None
    assert answer["error"]["code"] == -32005
    assert answer["error"]["data"] == {"code": "refused"}
    assert "uid 65534" in answer["error"]["message"]
    assert await call(client, "echo") == {}


def test_without_a_socket_there_is_no_daemon(tmp_path: Path) -> None:
    for run in (tmp_path, tmp_path / "absent"):
        with pytest.raises(NoDaemon, match="engramfs up starts one"):
            ControlClient(str(run)).call("ping")


def leave_a_stale_socket(run: str) -> None:
    control_socket.listen(run).close()


def test_a_stale_socket_is_no_daemon_and_is_replaced(tmp_path: Path) -> None:
    leave_a_stale_socket(str(tmp_path))
    with pytest.raises(NoDaemon, match="left by one that ended"):
        ControlClient(str(tmp_path)).call("ping")
    control_socket.listen(str(tmp_path)).close()


def test_a_second_daemon_is_refused(tmp_path: Path) -> None:
    with control_socket.listen(str(tmp_path)), pytest.raises(Busy, match="engramfs down stops it"):
        control_socket.listen(str(tmp_path))


async def test_a_run_directory_deeper_than_a_socket_address_works(tmp_path: Path) -> None:
    async with serving(str(tmp_path / ("d" * 120) / "run")) as client:
        assert await call(client, "echo") == {}


def test_the_client_imports_nothing_heavy() -> None:
    heavy = ["trio", "lmdb", "rich", "structlog", "pyfuse3"]
    script = f"import sys, engramfs.daemon.client; print([m for m in {heavy} if m in sys.modules])"
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert child.stdout.strip() == "[]"
