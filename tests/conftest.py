"""What all tests share: nothing may be left behind, and a real daemon where one is asked for.

A test that leaves a mount, a process or a descriptor behind fails. Mounts and processes are taken away
first, so that the tests after it are not touched.
"""

import contextlib
import gc
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

from engramfs.mount import syscalls
from engramfs.mount.mountinfo import read_mounts

from .harness.daemon import Daemon, Place
from .harness.small_disk import SmallDisk

PATIENCE = 5.0  # seconds for processes that are ending to be gone


@pytest.fixture(autouse=True)
def nothing_left_behind(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    base = str(tmp_path_factory.getbasetemp())
    before = _mounts(base), _children(), _descriptors()
    yield
    directory = request.node.funcargs.get("tmp_path")
    left = {
        "mounts": _leave_no_mount(base, before[0]),
        "processes": _leave_no_process(before[1], directory),
        "descriptors": _leave_no_descriptor(before[2]),
    }
    left = {what: found for what, found in left.items() if found}
    assert not left, f"left behind: {left}"


def _mounts(base: str) -> set[str]:
    """Where these tests have mounted something: the machine may have an engramfs of its own."""
    return {mount.point for mount in read_mounts() if mount.is_ours and mount.point.startswith(base)}


def _leave_no_mount(base: str, before: set[str]) -> list[str]:
    left = sorted(_mounts(base) - before)
    for point in reversed(left):
        subprocess.run(["umount", "-l", point], timeout=10, check=False)
    return left


def pytest_configure() -> None:
    resource_tracker.ensure_running()  # the one process of `multiprocessing` that stays, for all tests
    # Programs inherit what is ignored here: by `nohup`, or by a job in the background.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _children() -> dict[int, str]:
    """The processes that this one started: pid → command."""
    children = {}
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/self/task/{task}/children") as listed:
            for pid in map(int, listed.read().split()):
                children[pid] = _command(pid)
    return children


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _of_test(directory: Path | None) -> dict[int, str]:
    """Processes, whoever their parent is by now, that were started with a path of this test."""
    if directory is None:
        return {}
    commands = {int(pid): _command(int(pid)) for pid in os.listdir("/proc") if pid.isdecimal()}
    return {pid: command for pid, command in commands.items() if f"{directory}/" in f"{command}/"}


def _leave_no_process(before: dict[int, str], directory: Path | None) -> dict[int, str]:
    deadline = time.monotonic() + PATIENCE
    while left := {**_new_children(before), **_of_test(directory)}:
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left


def _new_children(before: dict[int, str]) -> dict[int, str]:
    """Those that ended and that nobody waited for are no processes any more."""
    new = {pid: command for pid, command in _children().items() if pid not in before}
    return {pid: command for pid, command in new.items() if not _has_ended(pid)}


def _has_ended(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return True


def _descriptors() -> set[tuple[int, str]]:
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the listing itself
            found.add((int(descriptor), os.readlink(f"/proc/self/fd/{descriptor}")))
    return found


def _leave_no_descriptor(before: set[tuple[int, str]]) -> set[tuple[int, str]]:
    left = _descriptors() - before
    if left:
        gc.collect()
        left = _descriptors() - before
    return left


def _require_mounting() -> None:
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("mounting needs root and /dev/fuse")


@pytest.fixture(scope="session")
def private_namespace() -> None:
    """From now on this process has mounts that nothing else sees, and that end with it."""
    _require_mounting()
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount("none", "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon of the test's own: nothing runs before the first `up`. Stopped and verified after the test."""
    _require_mounting()
    daemon = Daemon(tmp_path)
    try:
        yield daemon
        daemon.down()
    finally:
        daemon.close()


@pytest.fixture(scope="session")
def shared_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon for all tests that are content with a session of their own."""
    _require_mounting()
    daemon = Daemon(tmp_path_factory.mktemp("shared"))
    try:
        yield daemon
        daemon.down()
    finally:
        daemon.close()


@pytest.fixture
def place(shared_daemon: Daemon, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A session with stores of its own. Afterwards its stores are verified, and nothing failed inside."""
    said = shared_daemon.said()
    number = len(shared_daemon.places)
    place = shared_daemon.up(agent=f"agent{number}", actor=f"actor{number}")
    yield place
    shared_daemon.barrier()
    shared_daemon.check_soundness(*(each["store"] for each in place.attachments))
    shared_daemon.end(place)
    assert shared_daemon.said() == said


@pytest.fixture
def small_disk() -> Iterator[SmallDisk]:
    """A disk of 4 MiB."""
    if os.geteuid() != 0:
        pytest.skip("making a tmpfs needs root")
    with contextlib.closing(SmallDisk(4 << 20)) as disk:
        yield disk
