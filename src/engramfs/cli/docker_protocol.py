"""Docker's protocol for volume plugins, version 1: JSON by HTTP on a unix socket.

https://docs.docker.com/engine/extend/plugins_volume/

Concurrency. A thread for each connection, since Docker keeps them open.
"""

import contextlib
import os
import signal
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import click
import msgspec

from engramfs.cli.docker_volumes import Volume, Volumes
from engramfs.errors import Busy, EngramError, Unavailable

CONTENT_TYPE = "application/vnd.docker.plugins.v1.2+json"
_LONGEST = 1 << 20  # bytes of a request
_STOP = {signal.SIGINT, signal.SIGTERM}
Answer = dict[str, Any]


class Request(msgspec.Struct, frozen=True, rename="pascal"):
    """What any of the methods is asked."""

    name: str = ""
    user: str = msgspec.field(default="", name="ID")  # who mounts it
    opts: dict[str, str] | None = None


class Methods:
    """The methods of a volume driver, by their path."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes
        self.by_path: dict[str, Callable[[Request], Answer]] = {
            "/Plugin.Activate": lambda _: {"Implements": ["VolumeDriver"]},
            "/VolumeDriver.Capabilities": lambda _: {"Capabilities": {"Scope": "local"}},
            "/VolumeDriver.Create": self._create,
            "/VolumeDriver.Remove": self._remove,
            "/VolumeDriver.Mount": self._mount,
            "/VolumeDriver.Unmount": self._unmount,
            "/VolumeDriver.Path": self._path,
            "/VolumeDriver.Get": self._get,
            "/VolumeDriver.List": self._list,
        }

    def _create(self, request: Request) -> Answer:
        self._volumes.create(request.name, request.opts or {})
        return {}

    def _remove(self, request: Request) -> Answer:
        self._volumes.remove(request.name)
        return {}

    def _mount(self, request: Request) -> Answer:
        return {"Mountpoint": self._volumes.mount(request.name, request.user)}

    def _unmount(self, request: Request) -> Answer:
        self._volumes.unmount(request.name, request.user)
        return {}

    def _path(self, request: Request) -> Answer:
        return {"Mountpoint": self._volumes.directory(request.name)}

    def _get(self, request: Request) -> Answer:
        volume = self._volumes.get(request.name)
        status = {key: value for key, value in volume.options.items() if value is not None}
        if volume.session is not None:
            status["session"] = volume.session
        return {"Volume": {**self._described(volume), "Status": status}}

    def _list(self, _request: Request) -> Answer:
        return {"Volumes": [self._described(volume) for volume in self._volumes.every()]}

    def _described(self, volume: Volume) -> Answer:
        return {"Name": volume.name, "Mountpoint": self._volumes.directory(volume.name)}


def serve(path: str, volumes: Volumes) -> None:
    """Answer Docker on the socket `path` until SIGINT or SIGTERM. Raises `Busy` and `Unavailable`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    try:
        with _listening(path) as listener, _Server(listener, Methods(volumes)) as server:
            threading.Thread(target=server.serve_forever, name="docker-plugin", daemon=True).start()
            signal.sigwait(_STOP)
            server.shutdown()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _listening(path: str) -> Iterator[socket.socket]:
    """A listening socket for root alone, removed at the end; one that was left by the dead is replaced."""
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            _remove_stale(path)
            listener.bind(path)
            os.chmod(path, 0o600)
            listener.listen()
        except OSError as error:
            raise Unavailable(
                f"cannot listen on {path}: {error.strerror or error}; choose another --socket"
            ) from error
        try:
            yield listener
        finally:
            os.unlink(path)


def _remove_stale(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except FileNotFoundError:
            return
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise Busy(f"a plugin answers on {path} already; stop it first, or choose another --socket")


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False  # Docker's connections stay idle

    def __init__(self, listener: socket.socket, methods: Methods) -> None:
        super().__init__("", _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.methods = methods


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer goes out whole

    def handle(self) -> None:
        """Serve a connection until the other side has enough of it; Podman does not read whole answers."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_POST(self) -> None:
        """One call of a method. The name is that of the standard library."""
        body = self._body()
        method = self.server.methods.by_path.get(self.path)
        if body is None or method is None:
            self._answer(404 if method is None else 413, {"Err": f"engramfs cannot answer {self.path}"})
            return
        try:
            request = msgspec.json.decode(body, type=Request) if body else Request()
            self._answer(200, {**method(request), "Err": ""})
        except msgspec.MsgspecError as error:
            self._answer(400, {"Err": f"the request is not understood: {error}"})
        except EngramError as error:
            self._answer(500, {"Err": error.message})

    def _body(self) -> bytes | None:
        """The body of the request, or None when it is too long or of unknown length."""
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal() or int(length) > _LONGEST:
            self.close_connection = True
            return None
        return self.rfile.read(int(length))

    def _answer(self, status: int, answer: Answer) -> None:
        if status != 200:
            click.echo(f"engramfs docker-plugin: {self.path}: {answer['Err']}", err=True)
        content = msgspec.json.encode(answer)
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Nothing is said of requests that went well."""
