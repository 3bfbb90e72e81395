"""The hub is mounted by the keeper, ends when it is told to, and what dead daemons leave is replaced."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engramfs.errors import Busy, Refused, Unavailable
from engramfs.mount import syscalls
from engramfs.mount.connection import Connection
from engramfs.mount.hub import abort, clear_stale, mount_hub, open_fuse, unmount
from engramfs.mount.liveness import Liveness, liveness
from engramfs.mount.mountinfo import read_mounts, top_mount

from .conftest import Hub


def test_the_hub_is_a_fuse_mount_without_devices_and_setuid(hub: Hub) -> None:
    mounted = top_mount(read_mounts(), hub.point)
    assert mounted is not None
    assert mounted.is_ours
    assert mounted.source == "engramfs"
    assert {"nosuid", "nodev"} <= mounted.options
    assert mounted.minor == hub.connection.minor


def test_a_served_hub_answers(hub: Hub) -> None:
    (hub.backing / "file").write_text("content")
    assert Path(hub.point, "file").read_text() == "content"
    assert liveness(hub.point) is Liveness.ANSWERS


def test_a_hub_whose_daemon_died_is_dead_although_its_attributes_are_cached(hub: Hub) -> None:
    os.stat(hub.point)
    hub.kill_worker()
    assert liveness(hub.point) is Liveness.DEAD


def test_a_hub_that_nobody_reads_hangs_and_asking_does_not(no_mounts_left: None, tmp_path: Path) -> None:
    connection = Connection.open(str(tmp_path))
    started = time.monotonic()
    assert liveness(str(tmp_path), limit=0.3) is Liveness.HANGS
    assert time.monotonic() - started < 1
    connection.close()


def test_abort_frees_who_waits(no_mounts_left: None, tmp_path: Path) -> None:
    connection = Connection.open(str(tmp_path))
    waiting = subprocess.Popen(["stat", "-f", str(tmp_path)], stderr=subprocess.PIPE, env={"LC_ALL": "C"})
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(0.3)
    assert abort(str(tmp_path))
    _, said = waiting.communicate(timeout=5)
    assert b"Transport endpoint is not connected" in said or b"Software caused connection abort" in said
    connection.close()


def test_a_connection_that_ended_ends_no_other_that_has_its_number_now(hub: Hub, tmp_path: Path) -> None:
    """The kernel gives the number of a mount that is gone to the next one."""
    ended = Connection.open(str(tmp_path))
    unmount(str(tmp_path))
    mounted = top_mount(read_mounts(), hub.point)
    assert mounted is not None
    ended.minor = mounted.minor
    ended.close()
    assert liveness(hub.point) is Liveness.ANSWERS


def test_abort_of_a_place_without_a_hub_says_so(private_namespace: None, tmp_path: Path) -> None:
    assert not abort(str(tmp_path))


def test_a_stale_mount_is_replaced(hub: Hub) -> None:
    hub.kill_worker()
    assert clear_stale(hub.point) == 1
    assert top_mount(read_mounts(), hub.point) is None
    Connection.open(hub.point).close()


def test_stale_mounts_that_are_stacked_are_all_removed(no_mounts_left: None, tmp_path: Path) -> None:
    for _ in range(3):
        descriptor = open_fuse()
        mount_hub(descriptor, str(tmp_path))
        os.close(descriptor)
    assert clear_stale(str(tmp_path)) == 3


def test_a_living_hub_is_not_replaced(hub: Hub) -> None:
    with pytest.raises(Busy, match="engramfs down"):
        clear_stale(hub.point, patience=0.2)
    assert liveness(hub.point) is Liveness.ANSWERS


def test_a_worker_that_ends_within_the_patience_is_waited_for(hub: Hub) -> None:
    os.close(hub.connection.descriptor)
    hub.connection.descriptor = -1
    killer = subprocess.Popen(["sh", "-c", f"sleep 0.4; kill -9 {hub.worker}"])
    assert clear_stale(hub.point, patience=10) == 1
    killer.wait(5)


def test_the_mount_of_another_filesystem_is_left_alone(private_namespace: None, tmp_path: Path) -> None:
    syscalls.mount("none", str(tmp_path), "tmpfs", 0)
    try:
        with pytest.raises(Refused, match="tmpfs"):
            clear_stale(str(tmp_path))
    finally:
        unmount(str(tmp_path))


def test_unmounting_what_is_not_mounted_passes(tmp_path: Path) -> None:
    unmount(str(tmp_path))
    unmount(str(tmp_path / "missing"))


def test_a_failed_call_says_which_and_where(private_namespace: None, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="umount2: Invalid argument") as caught:
        syscalls.umount2(str(tmp_path))
    assert (caught.value.errno, caught.value.filename) == (errno.EINVAL, str(tmp_path))


def _in_a_child(code: str, *prefix: str) -> tuple[str, float]:
    started = time.monotonic()
    done = subprocess.run(
        [*prefix, sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=False
    )
    return done.stderr.strip().splitlines()[-1], time.monotonic() - started


OPEN = "from engramfs.mount.hub import open_fuse; open_fuse()"


def test_a_missing_device_is_said_in_one_line_within_a_second(private_namespace: None) -> None:
    hidden = f"mount -t tmpfs none /dev && exec {sys.executable} -c '{OPEN}'"
    started = time.monotonic()
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", hidden], capture_output=True, text=True, timeout=20, check=False
    )
    assert (
        "Unavailable: cannot open /dev/fuse: No such file or directory; load the kernel module" in done.stderr
    )
    assert time.monotonic() - started < 1


def test_a_missing_privilege_is_said_in_one_line(private_namespace: None, tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    code = f"from engramfs.mount.hub import open_fuse, mount_hub; mount_hub(open_fuse(), {str(tmp_path)!r})"
    said, _ = _in_a_child(code, "setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--")
    assert "Unavailable: cannot mount" in said
    assert "run as root" in said


def test_opening_fails_cleanly_when_the_mount_point_is_missing(
    private_namespace: None, tmp_path: Path
) -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(Unavailable, match="No such file or directory"):
        Connection.open(str(tmp_path / "missing"))
    assert os.listdir("/proc/self/fd") == before


def test_closing_everywhere_takes_bind_mounts_too_even_beneath_each_other(hub: Hub, tmp_path: Path) -> None:
    (hub.backing / "inner").mkdir()
    place = tmp_path / "place"
    place.mkdir()
    syscalls.mount(hub.point, str(place), None, 0x1000)
    syscalls.mount(hub.point, str(place / "inner"), None, 0x1000)
    os.kill(hub.worker, signal.SIGKILL)
    os.waitpid(hub.worker, 0)
    hub.worker = 0
    hub.connection.close(everywhere=True)
    assert [mount for mount in read_mounts() if mount.point.startswith(str(tmp_path))] == []
