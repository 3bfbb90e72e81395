"""Docker volumes that are memory: the plugin spoken to as Docker does, and used by the real ones."""

import http.client
import json
import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..harness.daemon import ROOTS, Daemon, eventually
from .runtimes import ENGRAMFS, PODMAN_RUN, make_root, podman, podman_run, why_not

Start = Callable[[], "Plugin"]


class Plugin:
    """A running plugin, and a client of it that keeps one connection as Docker does."""

    def __init__(self, daemon: Daemon, directory: Path) -> None:
        self.daemon = daemon
        self.path = str(directory / "engramfs.sock")
        self.said = directory / "said"
        words = [*ENGRAMFS, "docker-plugin", "--socket", self.path]
        self.pid = daemon.inside.call("start", words, None, daemon.environment, str(self.said))
        eventually(lambda: os.path.exists(self.path) and self._connects())

    def _connects(self) -> bool:
        self._connection = _UnixConnection(self.path)
        try:
            self._connection.connect()
        except ConnectionRefusedError:
            return False
        return True

    def post(self, path: str, body: object = None) -> tuple[int, Any]:
        """The status and the answer of one call."""
        content = "" if body is None else json.dumps(body)
        self._connection.request(
            "POST", path, content, {"Accept": "application/vnd.docker.plugins.v1.2+json"}
        )
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())

    def ok(self, method: str, name: str = "", **more: object) -> Any:
        status, answer = self.post(f"/VolumeDriver.{method}", {"Name": name, **more})
        assert (status, answer.pop("Err")) == (200, ""), answer
        return answer

    def refusal(self, method: str, name: str = "", **more: object) -> str:
        status, answer = self.post(f"/VolumeDriver.{method}", {"Name": name, **more})
        assert status == 500
        refusal: str = answer["Err"]
        assert refusal in self.said.read_text(), "and a person reads it in the journal"
        return refusal

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        self._connection.close()
        if self.pid:
            self.daemon.inside.call("os.kill", self.pid, number)
            code = self.daemon.inside.call("ended", self.pid, 10)
            assert code == (0 if number != signal.SIGKILL else -9)
        self.pid = 0


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("plugin", timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        try:
            self.sock.connect(self._path)
        except OSError:
            self.sock.close()
            raise


@pytest.fixture
def start_plugin(daemon: Daemon, tmp_path: Path) -> Iterator[Start]:
    started: list[Plugin] = []

    def start() -> Plugin:
        started.append(Plugin(daemon, tmp_path))
        return started[-1]

    yield start
    for plugin in started:
        plugin.stop()


@pytest.fixture
def plugin(daemon: Daemon, start_plugin: Start) -> Plugin:
    daemon.configure('[agents.assistant]\npreset = "private-assistant"\n[agents.default]\n')
    daemon.up(agent="default")
    return start_plugin()


def volume_sessions(daemon: Daemon) -> list[dict[str, Any]]:
    return [each for each in daemon.client.call("session.list") if each["state"] == "open"]


def test_it_introduces_itself(plugin: Plugin) -> None:
    assert plugin.post("/Plugin.Activate") == (200, {"Implements": ["VolumeDriver"], "Err": ""})
    assert plugin.ok("Capabilities") == {"Capabilities": {"Scope": "local"}}
    assert plugin.ok("List") == {"Volumes": []}
    assert os.stat(plugin.path).st_mode & 0o777 == 0o600


def test_a_volume_is_one_directory_of_a_session_that_is_open_as_long_as_it_is_used(plugin: Plugin) -> None:
    inside, daemon = plugin.daemon.inside, plugin.daemon
    plugin.ok("Create", "notes", Opts={"agent": "assistant", "actor": "ann"})
    assert plugin.ok("Path", "notes") == {"Mountpoint": ""}
    assert volume_sessions(daemon) == []
    first = plugin.ok("Mount", "notes", ID="one")["Mountpoint"]
    assert plugin.ok("Mount", "notes", ID="two")["Mountpoint"] == first
    (session,) = volume_sessions(daemon)
    assert (session["agent"], session["actor"]) == ("assistant", "ann")
    inside.call("write", f"{first}/a", b"from a container")
    plugin.ok("Unmount", "notes", ID="one")
    assert inside.call("read", f"{first}/a") == b"from a container"
    described = plugin.ok("Get", "notes")["Volume"]
    assert (described["Name"], described["Mountpoint"]) == ("notes", first)
    assert described["Status"] == {
        "agent": "assistant",
        "actor": "ann",
        "mount": "state",
        "session": session["id"],
    }
    assert plugin.ok("List") == {"Volumes": [{"Name": "notes", "Mountpoint": first}]}
    plugin.ok("Unmount", "notes", ID="two")
    assert volume_sessions(daemon) == []
    (version,) = daemon.log("memory/assistant/state")
    assert version["author"]["session"] == session["id"]
    plugin.ok("Remove", "notes")
    assert plugin.ok("List") == {"Volumes": []}
    assert daemon.ok("show", "memory/assistant/state:a") == "from a container", "removed is the volume alone"


def test_two_actors_volumes_show_each_its_own_memory_and_preferences_are_read_only(plugin: Plugin) -> None:
    inside = plugin.daemon.inside
    for actor in ("ann", "ben"):
        options = {"agent": "assistant", "actor": actor}
        plugin.ok("Create", actor, Opts={**options, "mount": "user"})
        plugin.ok("Create", f"{actor}-rules", Opts={**options, "mount": "preferences"})
        directory = plugin.ok("Mount", actor, ID="x")["Mountpoint"]
        assert inside.call("names", directory) == ["AGENTS.md"]
        inside.call("write", f"{directory}/who", actor.encode())
        rules = plugin.ok("Mount", f"{actor}-rules", ID="x")["Mountpoint"]
        with pytest.raises(OSError, match="Errno 30"):
            inside.call("write", f"{rules}/who", b"x")
    for name in ("ann", "ben", "ann-rules", "ben-rules"):
        plugin.ok("Unmount", name, ID="x")
    assert plugin.daemon.ok("show", "memories/ann:who") == "ann"


def test_creating_again_does_no_harm_and_with_other_options_is_refused(plugin: Plugin) -> None:
    options = {"agent": "assistant", "actor": "ann"}
    for opts in (options, options, None, {}):
        plugin.ok("Create", "notes", Opts=opts)
    said = plugin.refusal("Create", "notes", Opts={**options, "actor": "ben"})
    assert "volume notes exists with other options" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"agent": "assistant"}, "name the actor with --actor"),
        ({"agent": "assistant", "actor": "../x"}, "actor id '../x' is not allowed"),
        ({"agent": "assistant", "actor": ""}, "actor id '' is not allowed"),
        ({"agent": "unknown"}, "unknown"),
        ({"size": "1G"}, "there is no option 'size'; use agent, actor, tenant, mount"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_volume_for_an_unclear_owner_is_not_made(
    plugin: Plugin, options: dict[str, str], said: str
) -> None:
    assert said in plugin.refusal("Create", "notes", Opts=options)
    assert plugin.ok("List") == {"Volumes": []}


def test_what_cannot_be_is_refused_in_one_line_and_nothing_stays_open(plugin: Plugin) -> None:
    plugin.ok("Create", "odd", Opts={"actor": "ann", "mount": "../../elsewhere"})
    assert "which agent default does not have; it has /memories/user, " in plugin.refusal(
        "Mount", "odd", ID="x"
    )
    assert volume_sessions(plugin.daemon) == []
    for method in ("Mount", "Unmount", "Path", "Get", "Remove"):
        assert "there is no volume missing" in plugin.refusal(method, "missing", ID="x")
    plugin.ok("Create", "used", Opts={"actor": "ann"})
    plugin.ok("Mount", "used", ID="a-container")
    assert "volume used is mounted by a-container" in plugin.refusal("Remove", "used")
    plugin.ok("Unmount", "used", ID="a-container")
    plugin.ok("Remove", "used")
    assert plugin.post("/VolumeDriver.Explode", {})[0] == 404
    assert plugin.post("/VolumeDriver.Get", {"Name": 7})[0] == 400


def test_volumes_and_who_uses_them_outlive_the_plugin(plugin: Plugin, start_plugin: Start) -> None:
    plugin.ok("Create", "notes", Opts={"agent": "assistant", "actor": "ann"})
    directory = plugin.ok("Mount", "notes", ID="one")["Mountpoint"]
    plugin.stop(signal.SIGKILL)
    assert os.path.exists(plugin.path), "what it left does not stand in the way"
    again = start_plugin()
    assert again.ok("Path", "notes") == {"Mountpoint": directory}
    again.ok("Unmount", "notes", ID="one")
    assert volume_sessions(plugin.daemon) == []
    again.stop()
    assert not os.path.exists(plugin.path)


def test_users_of_a_session_that_has_ended_are_forgotten(plugin: Plugin) -> None:
    """As after the machine was started again: the volume is there, the session and its containers are not."""
    plugin.ok("Create", "notes", Opts={"agent": "assistant", "actor": "ann"})
    plugin.ok("Mount", "notes", ID="of the last run")
    plugin.daemon.client.call("session.close", id=volume_sessions(plugin.daemon)[0]["id"])
    assert plugin.ok("Path", "notes") == {"Mountpoint": ""}
    plugin.ok("Mount", "notes", ID="of this run")
    plugin.ok("Unmount", "notes", ID="of this run")
    assert volume_sessions(plugin.daemon) == []


def test_without_a_daemon_nothing_is_mounted_and_a_second_plugin_is_refused(
    daemon: Daemon, start_plugin: Start
) -> None:
    plugin = start_plugin()
    plugin.ok("Create", "notes", Opts={"actor": "ann"})
    assert "no daemon runs" in plugin.refusal("Mount", "notes", ID="x")
    finished = daemon.command("docker-plugin", "--socket", plugin.path)
    assert (finished.code, finished.err.count("\n")) == (4, 1)
    assert "a plugin answers on" in finished.err
    daemon.up()


@pytest.mark.skipif(bool(why_not("podman")), reason=why_not("podman") or "-")
def test_podman_uses_volumes(plugin: Plugin, tmp_path: Path) -> None:
    """With an image: Podman 4.3 forgets to unmount the volumes of a container that has a --rootfs."""
    daemon, root = plugin.daemon, make_root(tmp_path / "root")
    configure_podman = f'[engine.volume_plugins]\nengramfs = "{plugin.path}"\n'
    program = podman(tmp_path, configuration=configure_podman)
    image = tmp_path / "image.tar"
    subprocess.run(["tar", "-C", root, "-cf", image, "."], check=True)
    assert daemon.inside.run(*program, "import", "-q", str(image), "sandbox").code == 0
    create = ["volume", "create", "--driver", "engramfs", "--opt", "actor=pod", "--opt", "mount=user", "pod"]
    finished = daemon.inside.run(*program, *create)
    assert finished.code == 0, finished
    script = "echo kept > /memory/a; stat -c %u /memory/a; ls /memory"
    words = [*program, *PODMAN_RUN, "-v", "pod:/memory", *podman_run(12345), "sandbox"]
    finished = daemon.inside.run(*words, "/bin/sh", "-c", f"PATH=/bin; {script}")
    assert (finished.code, finished.out) == (0, "0\nAGENTS.md\na\n"), finished
    eventually(lambda: volume_sessions(daemon) == [])  # Podman tidies up behind our back
    assert daemon.ok("show", "memories/pod:a") == "kept\n"
    assert daemon.inside.run(*program, "volume", "rm", "pod").code == 0
    assert plugin.ok("List") == {"Volumes": []}


@pytest.fixture
def docker(plugin: Plugin, tmp_path: Path) -> Iterator[list[str]]:
    """The words that call a Docker of the test's own, whose image `sandbox` is BusyBox alone."""
    inside, socket_path = plugin.daemon.inside, f"{ROOTS}/docker.sock"
    inside.shell(
        "mount -t tmpfs none /run && mkdir -p /run/docker/plugins && cd /run/docker/plugins && "
        f"touch engramfs.sock && mount --bind {plugin.path} engramfs.sock"
    )
    places = [f"--data-root={tmp_path}/docker", f"--exec-root={ROOTS}/docker-exec"]
    files = [f"--host=unix://{socket_path}", f"--pidfile={ROOTS}/docker.pid"]
    how = ["--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=vfs"]
    log = tmp_path / "dockerd.log"
    pid = inside.call("start", ["dockerd", *places, *files, *how], None, {}, str(log))
    words = ["docker", "--host", f"unix://{socket_path}"]
    try:
        eventually(lambda: inside.run(*words, "version").code == 0, limit=40)
        root = make_root(tmp_path / "root")
        quoted = shlex.join([*words, "import", "-", "sandbox"])
        inside.shell(f"tar -C {root} -c . | {quoted}")
        yield words
    finally:
        inside.call("os.kill", pid, signal.SIGTERM)
        assert inside.call("ended", pid, 25) is not None, log.read_text()


@pytest.mark.skipif(bool(why_not("dockerd")), reason=why_not("dockerd") or "-")
def test_docker_uses_volumes_and_takes_what_is_printed(plugin: Plugin, docker: list[str]) -> None:
    daemon = plugin.daemon

    def run(*words: str) -> str:
        finished = daemon.inside.run(*docker, *words)
        assert finished.code == 0, finished
        return finished.out

    run("volume", "create", "-d", "engramfs", "-o", "actor=doc", "-o", "mount=user", "memory")
    refused = daemon.inside.run(*docker, "volume", "create", "-d", "engramfs", "-o", "actor=../x", "bad")
    assert (refused.code, "actor id '../x' is not allowed" in refused.err) == (1, True)
    sandbox = ["run", "--rm", "--network=none", "--user=12345"]
    write = "PATH=/bin; echo kept > $0/a; stat -c %u $0/a; cat $0/a"
    assert run(*sandbox, "-v", "memory:/memory", "sandbox", "/bin/sh", "-c", write, "/memory") == "0\nkept\n"
    assert volume_sessions(daemon) == []
    printed = shlex.split(daemon.ok("session", "open", "--actor", "doc", "--print", "docker"))
    beside = "for place in /memories /mnt/memory /mnt/memory/preferences; do ! echo x > $place/x; done"
    script = f"{write}; {beside}; grep -c engramfs.*nosuid,nodev /proc/self/mounts"
    out = run(*sandbox, *printed, "sandbox", "/bin/sh", "-c", script, "/memories/user")
    assert out == "0\nkept\n6\n"
    daemon.ok("session", "close", volume_sessions(daemon)[0]["id"])
    run("volume", "rm", "memory")
    assert plugin.ok("List") == {"Volumes": []}
