"""The sandbox runtimes that there are here, each as a way to run one shell script with a session of an actor.

Containers get their session from the hook `engramfs oci-hook`, the others from the command line.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from ..harness.daemon import ROOTS, Daemon

BUSYBOX = "/bin/busybox"
PODMAN_RUN = ("run", "--rm", "--network=none")
HOOKED = ("createRuntime", "poststop")  # the stages of deploy/oci/engramfs.json
# crun 1.8 does not know the hybrid layout of control groups; without the second hierarchy it is content.
_ONE_HIERARCHY = 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"'
_LEGACY = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", _ONE_HIERARCHY, "sh"]


def why_not(name: str) -> str:
    """Why a runtime cannot be used here; empty when it can."""
    if name == "run":
        return ""
    program = {"bwrap": "bubblewrap"}.get(name, name)
    if shutil.which(name) is None:
        return f"needs {program}"
    return "" if _is_static(BUSYBOX) else "needs busybox-static"


def _is_static(path: str) -> bool:
    done = subprocess.run(["ldd", path], capture_output=True, check=False) if os.path.exists(path) else None
    return done is not None and done.returncode != 0


def make_root(path: Path) -> Path:
    """A root directory with BusyBox, without users, and without mount points for engramfs."""
    for name in ("bin", "dev", "etc", "proc", "sys", "tmp"):
        (path / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, path / "bin/busybox")
    applets = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for applet in applets:
        if applet != "busybox":
            (path / "bin" / applet).symlink_to("busybox")
    return path


def make_mount_points(root: Path) -> None:
    for parent in ("memories", "mnt/context", "mnt/memory"):
        (root / parent).mkdir(parents=True)


class Runtime:
    """`name` is that of the program, or `run`. Everything that it makes is below `directory`."""

    def __init__(self, name: str, daemon: Daemon, directory: Path) -> None:
        self.name = name
        self.daemon = daemon
        self.directory = directory

    def words(self, script: str, *arguments: str, agent: str, actor: str, uid: int = 0) -> list[str]:
        """The command that runs a script in a new sandbox."""
        shell = ["sh", "-c", script, "sh", *arguments]
        identity = {"agent": agent, "actor": actor}
        if self.name == "run":
            return self._run(shell, identity, uid)
        root = make_root(self.directory / f"root-{actor}")
        if self.name == "bwrap":
            return self._bubblewrap(shell, identity, uid, root)
        if self.name == "podman":
            return self._podman(shell, identity, uid, root)
        return self._oci(shell, identity, uid, root)

    def _run(self, shell: list[str], identity: dict[str, str], uid: int) -> list[str]:
        user = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if uid else []
        return [*ENGRAMFS, "run", *options(identity), "--", *user, *shell]

    def _bubblewrap(self, shell: list[str], identity: dict[str, str], uid: int, root: Path) -> list[str]:
        make_mount_points(root)  # bwrap cannot make them in a read-only root
        arguments = printed(self.daemon, "bwrap", identity)
        user = ["--unshare-user", "--uid", str(uid), "--gid", str(uid)] if uid else []
        base = [
            "--ro-bind",
            str(root),
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--unshare-pid",
            "--clearenv",
        ]
        return ["bwrap", *user, *base, *arguments, "--setenv", "PATH", "/bin", *shell]

    def _podman(self, shell: list[str], identity: dict[str, str], uid: int, root: Path) -> list[str]:
        hooks = self.directory / "hooks"
        if not hooks.exists():
            hooks.mkdir()
            (hooks / "engramfs.json").write_text(json.dumps(self.hooks_d()))
        annotations = [f"--annotation=engramfs.{what}={value}" for what, value in identity.items()]
        program = podman(self.directory, f"--hooks-dir={hooks}")
        return [*program, *PODMAN_RUN, *annotations, *podman_run(uid), "--rootfs", str(root), *shell]

    def hooks_d(self) -> dict[str, object]:
        """deploy/oci/engramfs.json, with the command of these tests."""
        path = Path(__file__).parents[2] / "deploy/oci/engramfs.json"
        document: dict[str, object] = json.loads(path.read_text())
        return {**document, "hook": self.hook()}

    def hook(self) -> dict[str, object]:
        where = ["--run", self.daemon.run_directory, "--state", self.daemon.state]
        return {"path": sys.executable, "args": [*ENGRAMFS, *where, "oci-hook"], "timeout": 30}

    def _oci(self, shell: list[str], identity: dict[str, str], uid: int, root: Path) -> list[str]:
        annotations = {f"engramfs.{what}": value for what, value in identity.items()}
        return self.container(root, shell, annotations, uid=uid)

    def container(
        self,
        root: Path,
        shell: list[str],
        annotations: dict[str, str],
        *,
        stages: Sequence[str] = HOOKED,
        uid: int = 0,
    ) -> list[str]:
        """The command that runs a container with our hook at `stages`.

        Its id is unlike any other on this machine: two of one id are in one control group, and end together.
        """
        bundle = self.directory / f"bundle-{root.name}"
        bundle.mkdir()
        subprocess.run([self.name, "spec"], cwd=bundle, check=True)
        path = bundle / "config.json"
        config = json.loads(path.read_text())
        config["process"] |= {"terminal": False, "args": shell, "user": {"uid": uid, "gid": uid}}
        config["process"].pop("rlimits", None)  # which root without CAP_SYS_RESOURCE cannot set
        config["root"] = {"path": str(root), "readonly": True}
        config["annotations"] = annotations
        config["hooks"] = {stage: [self.hook()] for stage in stages}
        path.write_text(json.dumps(config))
        state = ["--root", str(self.directory / self.name)]
        before = _LEGACY if self.name == "crun" else []
        return [*before, self.name, *state, "run", "--bundle", str(bundle), f"engramfs-{uuid4().hex}"]


ENGRAMFS = [sys.executable, "-m", "engramfs"]


def options(identity: dict[str, str]) -> list[str]:
    return [word for what, value in identity.items() for word in (f"--{what}", value)]


def printed(daemon: Daemon, runtime: str, identity: dict[str, str]) -> list[str]:
    """What `session open --print` says, as words."""
    return shlex.split(daemon.ok("session", "open", *options(identity), "--print", runtime))


def podman(directory: Path, *options: str, configuration: str = "") -> list[str]:
    """`podman` with a place of its own for everything, up to its command.

    What it keeps while it runs goes to the tmpfs of the namespace: there the paths are short enough for it.
    """
    path = directory / "containers.conf"
    # Its locks are in a file, and not in one shared memory for the machine.
    path.write_text(f'[engine]\nlock_type = "file"\n{configuration}')
    places = [f"--root={directory}/podman", f"--runroot={ROOTS}/podman", f"--tmpdir={ROOTS}/podman-tmp"]
    how = ["--storage-driver=vfs", "--cgroup-manager=cgroupfs", "--runtime=runc", "--events-backend=none"]
    return ["env", f"CONTAINERS_CONF={path}", "podman", *places, *how, *options]


def podman_run(uid: int) -> list[str]:
    """More options of `podman run`, without which it does not work here."""
    return ["--ulimit=nofile=1024:1024", "--ulimit=nproc=10000:10000", f"--user={uid}:{uid}"]
