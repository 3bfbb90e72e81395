"""A machine that systemd runs, for tests of units: its own processes, mounts, control groups and /run.

It boots in about a second, over a copy-on-write view of this machine's root directory, and leaves nothing.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import engramfs

BOOT = Path(__file__).parent / "boot_systemd.sh"
SYSTEMD = "/lib/systemd/systemd"
CONTROL_GROUPS = Path("/sys/fs/cgroup")
_TARGET = "[Unit]\nDescription=Nothing\nDefaultDependencies=no\n"


def why_not() -> str:
    """Why no such machine can be had here; empty when it can."""
    needed = {SYSTEMD: "systemd", "/dev/fuse": "/dev/fuse", str(CONTROL_GROUPS): "control groups"}
    missing = [what for path, what in needed.items() if not os.path.exists(path)]
    if os.geteuid() != 0:
        missing.insert(0, "root")
    if "overlay" not in Path("/proc/filesystems").read_text():
        missing.append("overlayfs")
    return f"needs {', '.join(missing)}" if missing else ""


class Machine:
    """`run` runs a command in it, as a shell of root there would."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def wait_until_up(self) -> None:
        end = time.monotonic() + 20
        while "ActiveState=active" not in self.run("systemctl", "show", "nothing.target", check=False):
            assert time.monotonic() < end, "systemd does not answer"
            time.sleep(0.02)

    def run(self, *command: str, check: bool = True, limit: float = 60) -> str:
        """What the command printed, on stderr too."""
        enter = ["nsenter", f"--target={self._pid}", "--all", "--root", "--wd"]
        done = subprocess.run(
            [*enter, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit,
            check=False,
        )
        if check:
            assert done.returncode == 0, f"{' '.join(command)}: exit code {done.returncode}: {done.stdout}"
        return done.stdout.strip()

    def property(self, unit: str, name: str) -> str:
        """A property of a unit, as `systemctl show` has it."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit)

    def log(self, unit: str) -> str:
        return self.run("journalctl", "--no-pager", "--output=cat", f"--unit={unit}")

    def eventually(self, unit: str, name: str, value: str, limit: float = 20) -> None:
        end = time.monotonic() + limit
        while (found := self.property(unit, name)) != value:
            assert time.monotonic() < end, f"{name} of {unit} is {found}, not {value}: {self.log(unit)}"
            time.sleep(0.05)


@contextlib.contextmanager
def booted(directory: Path, units: Iterable[Path], drop_ins: dict[str, str]) -> Iterator[Machine]:
    """A machine with `units` installed and engramfs in its PATH; `drop_ins` add to units, by their name."""
    scratch, over = directory / "scratch", directory / "over"
    scratch.mkdir()
    _lay_out(over, units, drop_ins)
    with _control_groups() as join, open(directory / "console", "wb") as console:
        kinds = ["--mount", "--pid", "--fork", "--cgroup", "--uts", "--ipc", "--kill-child=KILL"]
        command = [str(BOOT), str(scratch), str(over), "nothing.target", *_elsewhere()]
        process = subprocess.Popen(
            ["sh", "-c", f'{join} exec "$@"', "sh", "unshare", *kinds, "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
        )
        try:
            machine = Machine(_first_process(process))
            machine.wait_until_up()
            yield machine
        finally:
            process.send_signal(signal.SIGKILL)  # and with it the first process, and with that every other
            process.wait(20)


def _lay_out(over: Path, units: Iterable[Path], drop_ins: dict[str, str]) -> None:
    system, programs = over / "etc/systemd/system", over / "usr/local/bin"
    system.mkdir(parents=True)
    programs.mkdir(parents=True)
    (programs / "engramfs").symlink_to(Path(sys.executable).parent / "engramfs")
    (system / "nothing.target").write_text(_TARGET)
    for unit in units:
        shutil.copy(unit, system)
    for name, text in drop_ins.items():
        (system / f"{name}.d").mkdir()
        (system / f"{name}.d" / "test.conf").write_text(text)


def _elsewhere() -> list[str]:
    """Where Python and engramfs are, as far as that is not in the root filesystem."""
    code = Path(engramfs.__file__).parents[1]
    others = [Path(sys.prefix), Path(sys.base_prefix).resolve(), code]
    root = os.stat("/").st_dev
    return [str(path) for path in others if path.stat().st_dev != root]


def _first_process(process: "subprocess.Popen[bytes]") -> int:
    """The pid here of the process that is number 1 there, once it is systemd."""
    end = time.monotonic() + 20
    while time.monotonic() < end and process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if children and Path(f"/proc/{children[0]}/comm").read_text().strip() == "systemd":
            return int(children[0])
        time.sleep(0.02)
    raise AssertionError("systemd did not come up")


@contextlib.contextmanager
def _control_groups() -> Iterator[str]:
    """Control groups of our own in every hierarchy: the shell commands with which a process joins them."""
    single = (CONTROL_GROUPS / "cgroup.controllers").exists()
    # cpuset takes no process before it is set up, and nothing here needs it.
    several = [path for path in CONTROL_GROUPS.iterdir() if path.is_dir() and path.name != "cpuset"]
    hierarchies = [CONTROL_GROUPS] if single else several
    groups = [hierarchy / f"engramfs-test-{os.getpid()}" for hierarchy in hierarchies]
    for group in groups:
        group.mkdir()
    try:
        yield " ".join(f"echo 0 >{group}/cgroup.procs || exit;" for group in groups)
    finally:
        for group in groups:
            _remove(group)


def _remove(group: Path) -> None:
    """Remove a control group and those in it, whose last processes may still be ending."""
    end = time.monotonic() + 20
    for path, _, _ in os.walk(group, topdown=False):
        while True:
            try:
                os.rmdir(path)
            except OSError:
                assert time.monotonic() < end, f"there are processes in {path}"
                time.sleep(0.02)
            else:
                break
