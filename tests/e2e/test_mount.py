"""`engramfs mount DIR`: one session without a daemon and without root."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..harness.daemon import ROOTS, eventually
from ..harness.inside import Finished, Inside

NOBODY = 65534
LIBRARIES = f"{ROOTS}/libraries"


def _system_python() -> str | None:
    """A Python that every uid can run and that is of the same version as ours."""
    for candidate in ("/usr/bin/python3", f"/usr/bin/python3.{sys.version_info.minor}"):
        if os.path.exists(candidate):
            script = "import sys; print(sys.version_info[:2])"
            found = subprocess.run([candidate, "-c", script], capture_output=True, text=True, check=False)
            if found.stdout.strip() == str(tuple(sys.version_info[:2])):
                return candidate
    return None


class Unprivileged:
    """A namespace in which uid 65534 may use /dev/fuse and has a copy of engramfs to run."""

    def __init__(self, directory: Path) -> None:
        self.inside = Inside()
        self.output = str(directory / "output")
        self.home = f"{ROOTS}/home"
        self.python = _system_python()
        self.processes: list[int] = []
        source = Path(__file__).parents[2] / "src"
        self.inside.shell(f"""
            mount -t tmpfs -o mode=755 roots {ROOTS}
            mkdir -p {self.home} {LIBRARIES}/source {LIBRARIES}/site
            chown {NOBODY} {self.home}
            mknod -m 666 {ROOTS}/fuse c 10 229
            mount --bind {ROOTS}/fuse /dev/fuse
            mount --bind {source} {LIBRARIES}/source
            mount --bind {sysconfig.get_path("purelib")} {LIBRARIES}/site
        """)
        self.environment = {
            "HOME": self.home,
            "PYTHONPATH": f"{LIBRARIES}/source:{LIBRARIES}/site",
            "XDG_RUNTIME_DIR": "",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def start(self, directory: str, *options: str) -> int:
        """The pid of `engramfs mount`, once it serves or has ended."""
        command = [str(self.python), "-m", "engramfs", "mount", directory, *options]
        pid: int = self.inside.call("start", command, NOBODY, self.environment, self.output)
        self.processes.append(pid)
        end = time.monotonic() + 15
        while not self.said() and self.inside.call("ended", pid, 0.01) is None:
            assert time.monotonic() < end
        return pid

    def command(self, *arguments: str) -> Finished:
        return self.inside.run(
            str(self.python), "-m", "engramfs", *arguments, user=NOBODY, environment=self.environment
        )

    def said(self) -> str:
        return Path(self.output).read_text()

    def worker(self) -> int:
        """The pid of the worker behind `engramfs mount`."""
        run = f"{self.home}/.local/state/engramfs/mount"
        return int(json.loads(self.command("--run", run, "--json", "status").out)["worker"]["pid"])

    def kill(self, pid: int) -> None:
        """SIGKILL to everything that `engramfs mount` consists of."""
        self.processes.remove(pid)
        for each in [pid, *self.inside.call("read", f"/proc/{pid}/task/{pid}/children").split()]:
            self.inside.call("os.kill", int(each), signal.SIGKILL)
        assert self.inside.call("ended", pid, 10) == -signal.SIGKILL

    def stop(self, pid: int) -> int | None:
        self.processes.remove(pid)
        self.inside.call("os.kill", pid, signal.SIGTERM)
        code: int | None = self.inside.call("ended", pid, 15)
        return code

    def close(self) -> None:
        for pid in list(self.processes):
            self.stop(pid)
        self.inside.close()


@pytest.fixture
def nobody(tmp_path: Path) -> Iterator[Unprivileged]:
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("making a device for others needs root and /dev/fuse")
    helper = shutil.which("fusermount3")
    if helper is None or not os.stat(helper).st_mode & stat.S_ISUID:
        pytest.skip("needs fusermount3 with its setuid bit")
    if _system_python() is None:
        pytest.skip("needs a Python of this version that every uid can run")
    nobody = Unprivileged(tmp_path)
    yield nobody
    nobody.close()


def test_a_session_is_served_at_a_directory_and_what_was_saved_stays(nobody: Unprivileged) -> None:
    point = f"{nobody.home}/point"
    nobody.inside.shell(f"mkdir {point}", user=NOBODY)
    pid = nobody.start(point, "--actor", "ann")
    assert nobody.said().splitlines() == [
        f"{point}{path}" for path in ("/memories/user", "/mnt/memory/preferences", "/mnt/memory/state")
    ]
    state = f"{point}/mnt/memory/state"
    script = f"cd {state}; echo hi > file; sleep 0.2; cat .versions/1/file; stat -c %u file; ls -a {point}"
    assert nobody.inside.shell(script, user=NOBODY).split() == [
        "hi",
        str(NOBODY),
        ".",
        "..",
        "memories",
        "mnt",
    ]
    refused = nobody.inside.run("sh", "-c", f"echo x > {point}/mnt/memory/preferences/a", user=NOBODY)
    assert "Read-only file system" in refused.err
    assert nobody.stop(pid) == 0
    assert nobody.inside.call("names", point) == []
    shown = nobody.command("log", "memory/default/state")
    assert "created" in shown.out or "1 change" in shown.out
    pid = nobody.start(point, "--actor", "ann")
    assert nobody.inside.shell(f"cat {state}/file", user=NOBODY) == "hi\n"
    assert nobody.stop(pid) == 0


def test_a_mount_point_that_is_in_use_is_refused(nobody: Unprivileged) -> None:
    nobody.inside.shell(f"mkdir {nobody.home}/point", user=NOBODY)
    first = nobody.start(f"{nobody.home}/point")
    second = nobody.command("mount", f"{nobody.home}/point")
    assert second.code == 4
    assert second.err.count("\n") == 1
    assert nobody.stop(first) == 0


def test_files_are_covered_only_when_told(nobody: Unprivileged) -> None:
    point = f"{nobody.home}/point"
    nobody.inside.shell(f"mkdir {point}; echo mine > {point}/file", user=NOBODY)
    refused = nobody.command("mount", point)
    assert (refused.code, refused.err.count("\n")) == (4, 1), refused
    assert f"{point} exists and is not empty" in refused.err
    pid = nobody.start(point, "--over")
    assert nobody.inside.shell(f"ls {point}", user=NOBODY).split() == ["memories", "mnt"]
    nobody.kill(pid)
    again = nobody.start(point)
    assert nobody.stop(again) == 0
    assert nobody.inside.call("read", f"{point}/file") == b"mine\n"


def test_a_stale_mount_is_replaced(nobody: Unprivileged) -> None:
    point = f"{nobody.home}/point"
    nobody.inside.shell(f"mkdir {point}", user=NOBODY)
    first = nobody.start(point)
    nobody.inside.shell(f"stat {point}", user=NOBODY)  # the kernel remembers that it is a directory
    nobody.kill(first)
    eventually(lambda: "not connected" in nobody.inside.run("cat", f"{point}/file", user=NOBODY).err)
    second = nobody.start(point)
    assert nobody.inside.shell(f"ls {point}", user=NOBODY).split() == ["memories", "mnt"]
    assert nobody.stop(second) == 0


# Saves files and appends to an open one, each call with its result checked, until FILE exists.
WORK = """
cd {state}; exec 3>>lines; n=0
until [ -e {stop} ]; do
    echo $n >&3 || exit 1
    echo $n >saved || exit 2
    [ "$(cat saved)" = $n ] || exit 3
    n=$((n + 1))
done
exec 3>&-; [ "$(wc -l <lines)" = $n ] && echo $n
"""


def test_nobody_notices_that_the_worker_is_killed(nobody: Unprivileged) -> None:
    point, stop = f"{nobody.home}/point", f"{nobody.home}/stop"
    nobody.inside.shell(f"mkdir {point}", user=NOBODY)
    pid = nobody.start(point)
    said = f"{nobody.output}-of-work"
    script = WORK.format(state=f"{point}/mnt/memory/state", stop=stop)
    work = nobody.inside.call("start", ["bash", "-c", script], NOBODY, {}, said)
    killed = set()
    for _ in range(4):
        worker = nobody.worker()
        time.sleep(0.5)
        killed.add(worker)
        nobody.inside.call("os.kill", worker, signal.SIGKILL)
    nobody.inside.shell(f"touch {stop}", user=NOBODY)
    assert nobody.inside.call("ended", work, 30) == 0, Path(said).read_text() + nobody.said()
    assert int(Path(said).read_text()) > 10
    assert len(killed) == 4
    assert nobody.stop(pid) == 0
    assert f"worker {killed.pop()} ended (killed by SIGKILL)" in nobody.said()


def test_the_worker_goes_on_without_its_keeper_until_it_is_unmounted(nobody: Unprivileged) -> None:
    point = f"{nobody.home}/point"
    nobody.inside.shell(f"mkdir {point}", user=NOBODY)
    keeper = nobody.start(point)
    worker = nobody.worker()
    nobody.inside.call("os.kill", keeper, signal.SIGKILL)
    nobody.processes.remove(keeper)
    assert nobody.inside.call("ended", keeper, 10) == -signal.SIGKILL
    nobody.inside.shell(f"echo hi >{point}/mnt/memory/state/file", user=NOBODY)
    refused = nobody.command("mount", point)
    assert (refused.code, refused.err.count("\n")) == (4, 1), refused
    assert "unmount it first (fusermount3 -u" in refused.err
    nobody.inside.shell(f"fusermount3 -u {point}", user=NOBODY)
    eventually(lambda: not os.path.exists(f"/proc/{worker}"))
    again = nobody.start(point)
    assert nobody.inside.shell(f"cat {point}/mnt/memory/state/file", user=NOBODY) == "hi\n"
    assert nobody.stop(again) == 0


def test_an_unmount_from_outside_ends_it(nobody: Unprivileged) -> None:
    point = f"{nobody.home}/point"
    nobody.inside.shell(f"mkdir {point}", user=NOBODY)
    pid = nobody.start(point)
    nobody.inside.shell(f"fusermount3 -u {point}", user=NOBODY)
    assert nobody.inside.call("ended", pid, 15) == 0
    nobody.processes.remove(pid)


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        ("umount /dev/fuse", "/dev/fuse"),
        ("mount --bind /dev/null $(readlink -f $(command -v fusermount3))", "fusermount3"),
    ],
)
def test_what_the_machine_lacks_is_said_in_one_line_at_once(
    nobody: Unprivileged, break_it: str, said: str
) -> None:
    nobody.inside.shell(f"mkdir {nobody.home}/point", user=NOBODY)
    nobody.inside.shell(break_it)
    refused = nobody.command("mount", f"{nobody.home}/point")
    assert refused.code == 1
    assert refused.err.count("\n") == 1
    assert refused.err.startswith("engramfs: ")
    assert said in refused.err
