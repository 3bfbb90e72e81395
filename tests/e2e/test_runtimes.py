"""One script in every kind of sandbox: it finds its own actor's memory, can write it, and nothing else."""

import contextlib
import json
import os
import shlex
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from engramfs.errors import Conflict, NoDaemon, UsageError

from ..harness.daemon import ROOTS, Daemon, eventually
from ..harness.inside import Finished
from .runtimes import (
    ENGRAMFS,
    HOOKED,
    PODMAN_RUN,
    Runtime,
    make_mount_points,
    make_root,
    podman,
    podman_run,
    printed,
    why_not,
)
from .session import PARENTS, PLACES

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

ALL = ["run", "bwrap", "runc", "crun", "podman"]
CONTAINERS = ["runc", "crun"]
SCRIPT = """
me=$1 other=$2
echo "secret of $me" > /memories/user/secret
echo "more" >> /memories/user/secret
mkdir /memories/user/directory && mv /memories/user/secret /memories/user/directory/
: > /mnt/memory/state/here-$me
i=0
until [ -e /mnt/memory/state/here-$other ]; do i=$((i + 1)); [ $i -lt 400 ] || exit 9; sleep 0.05; done
echo uid $(id -u) owner $(stat -c %u:%g /memories/user/directory/secret)
echo memory $(cat /memories/user/directory/secret)
echo files $(ls /memories) $(ls /memories/user) $(ls /mnt/memory)
for place in /mnt/memory/preferences /mnt/memory /mnt/context /memories; do
    ( echo x > $place/new ) 2>&1
done
grep -r "of $other" /memories /mnt
exit 0
"""


def available(names: list[str]) -> list[object]:
    return [
        pytest.param(name, marks=pytest.mark.skipif(bool(why_not(name)), reason=why_not(name) or "-"))
        for name in names
    ]


@pytest.fixture(params=available(ALL))
def runtime(request: pytest.FixtureRequest, served: Daemon, tmp_path: Path) -> Runtime:
    return Runtime(request.param, served, tmp_path)


@pytest.fixture(params=available(CONTAINERS))
def container(request: pytest.FixtureRequest, served: Daemon, tmp_path: Path) -> Runtime:
    return Runtime(request.param, served, tmp_path)


def sessions(daemon: Daemon, agent: str) -> list[str]:
    return [each["id"] for each in daemon.client.call("session.list") if each["agent"] == agent]


def start(runtime: Runtime, words: list[str], name: str) -> tuple[int, Path]:
    output = runtime.directory / f"said-{name}"
    daemon = runtime.daemon
    return daemon.inside.call("start", words, None, daemon.environment, str(output)), output


@pytest.mark.parametrize("uid", [0, 12345])
def test_two_actors_side_by_side_each_see_their_own_memory(runtime: Runtime, uid: int) -> None:
    agent = f"runtime-{runtime.name}-{uid}"
    actors = (f"{runtime.name}-{uid}-ann", f"{runtime.name}-{uid}-ben")
    started = {
        me: start(runtime, runtime.words(SCRIPT, me, other, agent=agent, actor=me, uid=uid), me)
        for me, other in (actors, actors[::-1])
    }
    for me, (pid, output) in started.items():
        code = runtime.daemon.inside.call("ended", pid, 30)
        said = output.read_text().splitlines()
        assert code == 0, said
        owner = 0 if runtime.name == "run" else uid
        assert said[:3] == [
            f"uid {uid} owner {owner}:{owner}",
            f"memory secret of {me} more",
            "files user AGENTS.md directory preferences state",
        ]
        assert len(said) == 7, said
        assert all(line.endswith("Read-only file system") for line in said[3:]), said
    runtime.daemon.barrier()
    for me in actors:
        assert {version["author"]["actor"] for version in runtime.daemon.log(f"memories/{me}")[1:]} == {me}
    for session in sessions(runtime.daemon, agent):
        assert runtime.name == "bwrap", "the others close their sessions themselves"
        runtime.daemon.ok("session", "close", session)


# Switching in a running container


def test_a_switch_reaches_a_running_container(container: Runtime) -> None:
    agent, one, two = f"switch-{container.name}", f"{container.name}-one", f"{container.name}-two"
    script = (
        "echo of one > /memories/user/mine; echo ready; "
        "until [ ! -e /memories/user/mine ]; do sleep 0.02; done; echo of two > /memories/user/mine"
    )
    pid, output = start(container, container.words(script, agent=agent, actor=one), one)
    eventually(lambda: "ready" in output.read_text())
    (session,) = sessions(container.daemon, agent)
    container.daemon.ok("switch", session, "--actor", two)
    assert container.daemon.inside.call("ended", pid, 20) == 0, output.read_text()
    assert container.daemon.ok("show", f"memories/{one}:mine") == "of one\n"
    assert container.daemon.ok("show", f"memories/{two}:mine") == "of two\n"
    assert sessions(container.daemon, agent) == [], "closed when the container had stopped"


# The hook


def run_container(
    container: Runtime, annotations: dict[str, str], script: str = "echo started", *stages: str
) -> Finished:
    root = container.directory / f"{container.name}-root"
    if not root.exists():
        make_root(root)
    words = container.container(root, ["sh", "-c", script], annotations, stages=stages or HOOKED)
    return container.daemon.inside.run(*words, environment=container.daemon.environment)


def check_refused(container: Runtime, finished: Finished, said: str, code: int) -> None:
    """The container has not started, and the runtime says what it tells of its hooks."""
    assert (finished.code != 0, finished.out) == (True, ""), finished
    assert (said if container.name == "runc" else f"exit code: {code}") in finished.err


def annotated(agent: str, actor: str) -> dict[str, str]:
    return {"engramfs.agent": agent, "engramfs.actor": actor}


@pytest.mark.parametrize("stage", ["prestart", "createRuntime", "createContainer"])
def test_the_hook_attaches_at_every_stage_before_the_start(container: Runtime, stage: str) -> None:
    """By createContainer, crun has made a read-only root read-only: mount points must be there before."""
    root = make_root(container.directory / f"{container.name}-root")
    if stage == "createContainer":
        make_mount_points(root)
    agent = f"stage-{container.name}-{stage}"
    script = "echo x > /memories/user/a && ls /memories && stat -c %u /memories/user/a"
    finished = run_container(container, annotated(agent, agent), script, stage, "poststop")
    assert (finished.code, finished.out) == (0, "user\n0\n"), finished
    assert sessions(container.daemon, agent) == []
    assert os.listdir(f"{container.daemon.run_directory}/containers") == []


def test_a_container_that_asks_for_nothing_starts_without_a_daemon(container: Runtime) -> None:
    container.daemon = Elsewhere(container.daemon, str(container.directory / "none"))
    finished = run_container(container, {"other": "annotation"}, "ls -A /")
    assert (finished.code, "memories" in finished.out) == (0, False), finished


@pytest.mark.parametrize(
    ("actor", "said"),
    [("../ann", "actor id '../ann' is not allowed"), ("", "actor id '' is not allowed")],
    ids=["outside", "empty"],
)
def test_a_container_for_an_unclear_owner_does_not_start(container: Runtime, actor: str, said: str) -> None:
    agent = f"unclear-{container.name}"
    finished = run_container(container, annotated(agent, actor))
    check_refused(container, finished, said, UsageError.exit_code)
    assert sessions(container.daemon, agent) == []


def test_a_container_that_holds_something_at_a_mount_point_does_not_start(container: Runtime) -> None:
    (make_root(container.directory / f"{container.name}-root") / "memories").mkdir()
    (container.directory / f"{container.name}-root/memories/own").write_text("of the image")
    agent = f"taken-{container.name}"
    finished = run_container(container, annotated(agent, "ann"))
    check_refused(container, finished, "/memories exists and is not empty", Conflict.exit_code)
    assert sessions(container.daemon, agent) == []


def test_a_container_without_a_daemon_to_ask_does_not_start(container: Runtime) -> None:
    container.daemon = Elsewhere(container.daemon, str(container.directory / "none"))
    finished = run_container(container, annotated("default", "ann"))
    check_refused(container, finished, "no daemon runs", NoDaemon.exit_code)


def test_a_hook_that_is_called_otherwise_refuses(served: Daemon, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"annotations": {"engramfs.agent": "wrong"}}')
    states = {
        "": "not what an OCI runtime gives",
        '{"id": 1}': "not what an OCI runtime gives",
        state(tmp_path / "missing", os.getpid()): "cannot read",
        state(tmp_path, 4194303): "has no process 4194303",
        state(tmp_path, served.inside.pid): "no mount namespace of its own",
    }
    for given, said in states.items():
        (tmp_path / "state").write_text(given)
        script = f"{shlex.join(ENGRAMFS)} oci-hook < {tmp_path}/state"
        finished = served.inside.run("bash", "-c", script, environment=served.environment)
        assert (finished.code != 0, finished.err.count("\n")) == (True, 1), finished
        assert said in finished.err
    assert sessions(served, "wrong") == []


def state(bundle: Path, pid: int) -> str:
    return json.dumps({"id": "c", "status": "creating", "pid": pid, "bundle": str(bundle)})


class Elsewhere(Daemon):
    """A daemon's namespace with another run directory, where none runs."""

    def __init__(self, daemon: Daemon, run_directory: str) -> None:
        self.inside, self.environment, self.state = daemon.inside, daemon.environment, daemon.state
        self.run_directory = run_directory


def test_files_belong_to_the_user_of_the_container_in_a_user_namespace_too(container: Runtime) -> None:
    agent, root = f"mapped-{container.name}", make_root(container.directory / "root")
    make_mount_points(root)
    script = "echo x > /memories/user/a && stat -c %u:%g /memories/user/a && id -u"
    words = container.container(root, ["sh", "-c", script], annotated(agent, agent), uid=12)
    path = container.directory / "bundle-root/config.json"
    config = json.loads(path.read_text())
    config["root"]["path"] = f"{ROOTS}/{agent}"  # its root user, another one here, can walk there
    container.daemon.inside.shell(f"cp -a {root} {ROOTS}/{agent}")
    config["linux"]["namespaces"].append({"type": "user"})
    mapping = [{"containerID": 0, "hostID": 100000, "size": 1000}]
    config["linux"] |= {"uidMappings": mapping, "gidMappings": mapping}
    path.write_text(json.dumps(config))
    finished = container.daemon.inside.run(*words, environment=container.daemon.environment)
    assert (finished.code, finished.out) == (0, "12:12\n12\n"), finished


# What is printed for runtimes


@pytest.mark.skipif(bool(why_not("podman")), reason=why_not("podman") or "-")
def test_podman_takes_what_is_printed_and_a_switch_reaches_it_once_it_is_attached(
    served: Daemon, tmp_path: Path
) -> None:
    """A colon, a comma and a quote in a path are no trouble either."""
    odd = '/srv/a:b,c"d'
    agent, root = "printed-podman", make_root(tmp_path / "root")
    served.ok("store", "create", "rules/printed")
    attach = ["--attach", f"rules/printed={odd}:read_only"]
    opened = served.ok("session", "open", "--agent", agent, "--actor", "pia", *attach, "--print", "podman")
    script = (
        f"echo of pia > /memories/user/mine; ls -d {shlex.quote(odd)}; echo x > {shlex.quote(odd)}/x; "
        "echo x > /memories/x; echo x > /mnt/memory/preferences/x; grep engramfs /proc/self/mounts; "
        "echo ready; until [ -e /memories/user/theirs ]; do sleep 0.02; done"
    )
    arguments = [*PODMAN_RUN, *shlex.split(opened), *podman_run(12345), "--rootfs", str(root)]
    words = [*podman(tmp_path), *arguments, "sh", "-c", script]
    pid, output = start(Runtime("podman", served, tmp_path), words, "podman")
    eventually(lambda: "ready" in output.read_text())
    eventually(lambda: output.read_text().count("Read-only file system") == 3)
    mounts = [line for line in output.read_text().splitlines() if line.startswith("engramfs ")]
    assert len(mounts) == 7
    assert all("nosuid,nodev" in mount for mount in mounts), mounts
    (session,) = sessions(served, agent)
    served.ok("attach", session, "--pid", str(process_in_namespace_of(session, served)))
    served.ok("switch", session, "--actor", "pia-other")
    served.ok("run", "--agent", agent, "--actor", "pia-other", "--", "touch", "/memories/user/theirs")
    assert served.inside.call("ended", pid, 20) == 0, output.read_text()
    assert served.ok("show", "memories/pia:mine") == "of pia\n"
    assert served.json("session", "show", session)["state"] == "gone"
    served.ok("session", "close", session)


def process_in_namespace_of(session: str, daemon: Daemon) -> int:
    """A process of the container that shows a session's mounts, as `podman inspect` would name it."""
    own = os.readlink(f"/proc/{daemon.inside.pid}/ns/mnt")
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if (
                os.readlink(f"/proc/{name}/ns/mnt") != own
                and f"/sessions/{session}/" in Path(f"/proc/{name}/mountinfo").read_text()
            ):
                return int(name)
    raise AssertionError("no process sees the session")


def test_the_arguments_for_docker_are_parents_first(served: Daemon) -> None:
    words = printed(served, "docker", {"agent": "printed-docker", "actor": "dan"})
    (session,) = sessions(served, "printed-docker")
    hub, preferences = f"{served.run_directory}/fs", "memory/printed-docker/preferences"
    assert words[:2] == ["--label", f"engramfs.session={session}"]
    assert set(words[2::2]) == {"--mount"}
    assert words[3::2] == [
        *(
            f"type=bind,source={hub}/sessions/{session}/layout{path},target={path}"
            for path in ("/mnt/context", "/mnt/memory", "/memories")
        ),
        f"type=bind,source={hub}/sessions/{session}/views/memories/user,target=/memories/user",
        f"type=bind,source={hub}/stores/{preferences},target=/mnt/memory/preferences",
        f"type=bind,source={hub}/sessions/{session}/views/mnt/memory/state,target=/mnt/memory/state",
    ]
    served.ok("session", "close", session)


def test_the_part_of_a_manifest_makes_a_valid_pod(served: Daemon, tmp_path: Path) -> None:
    (tmp_path / "instructions.md").write_text("# Do")
    served.ok("deploy", "printed-pod", str(tmp_path))
    text = served.inside.run(
        *(*ENGRAMFS, "session", "open", "--agent", "printed-pod", "--actor", "kim", "--print", "kubernetes"),
        environment=served.environment,
    ).out
    part = yaml.safe_load(text)
    container = {"name": "agent", "image": "agent", "volumeMounts": part["volumeMounts"]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "agent"},
        "spec": {"containers": [container], "volumes": part["volumes"]},
    }
    kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)
    sources = {volume["name"]: volume["hostPath"] for volume in part["volumes"]}
    shown = {mount["mountPath"]: sources[mount["name"]] for mount in part["volumeMounts"]}
    assert shown["/instructions.md"] == {
        "path": f"{served.run_directory}/fs/pins/agents/printed-pod@1/instructions.md",
        "type": "File",
    }
    assert list(shown)[:3] == PARENTS, "they hold the mount points of the others"
    assert {*shown} > {*PLACES}
    (session,) = sessions(served, "printed-pod")
    served.ok("session", "close", session)


def test_the_id_goes_beside_what_is_printed(served: Daemon) -> None:
    finished = served.command("session", "open", "--agent", "beside", "--print", "bwrap")
    (session,) = sessions(served, "beside")
    assert (finished.code, finished.err) == (0, f"session {session}\n")
    document = served.json("session", "open", "--agent", "beside", "--print", "bwrap")
    assert document["id"] in document["bwrap"]
    for each in sessions(served, "beside"):
        served.ok("session", "close", each)
