"""The power fails: what was synced, sealed, or closed with `durability = "close"` is there.

Two programs write while the disk under the state directory stops taking anything (see `disk`). Then every
process is killed, the disk mounted again as after a boot, and the daemon started.
"""

import os
import random
import shutil
import signal
import time

import pytest

from ..harness.daemon import Daemon
from .disk import MIB, Disk
from .machine import Machine, problems_in

SYNCED = {"synced"}
ON_CLOSE = '[batch]\ndurability = "close"\n'


def lose_power(daemon: Daemon, kind: str, kept: set[str], times: int) -> None:
    machine = Machine(daemon, Disk(daemon.inside, f"{daemon.directory}/image", daemon.state, kind))
    for number in range(times):
        done = machine.work_until_the_power_fails()
        machine.boot()
        assert machine.problems(done, kept) == [], f"cut {number}"


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_what_was_synced_or_sealed_survives(daemon: Daemon, kind: str) -> None:
    lose_power(daemon, kind, SYNCED, 2)


def test_what_was_closed_survives_where_the_configuration_says_so(daemon: Daemon) -> None:
    daemon.configure(ON_CLOSE)
    lose_power(daemon, "ext4", SYNCED | {"closed"}, 1)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_fifty_cuts(daemon: Daemon, kind: str) -> None:
    lose_power(daemon, kind, SYNCED, 50)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_fifty_cuts_with_durability_on_close(daemon: Daemon, kind: str) -> None:
    daemon.configure(ON_CLOSE)
    lose_power(daemon, kind, SYNCED | {"closed"}, 50)


def test_the_rig_sees_what_is_lost_when_nothing_is_synced(daemon: Daemon) -> None:
    """Under eatmydata every fsync of the daemon says yes and does nothing: then the same cut must show it."""
    if shutil.which("eatmydata") is None:
        pytest.skip("eatmydata is not installed")
    daemon.environment["LD_PRELOAD"] = "libeatmydata.so"
    machine = Machine(daemon, Disk(daemon.inside, f"{daemon.directory}/image", daemon.state))
    done = machine.work_until_the_power_fails()
    try:
        machine.boot()
    except AssertionError:
        return  # not even the log can be opened
    assert machine.problems(done, SYNCED) != []


@pytest.mark.parametrize("times", [3, pytest.param(50, marks=pytest.mark.soak)])
def test_an_image_of_the_disk_at_any_moment_has_what_was_synced_before(daemon: Daemon, times: int) -> None:
    """The disk is a file on an xfs that can share blocks, so a copy of it takes no time."""
    inside, directory = daemon.inside, daemon.directory
    below = Disk(inside, f"{directory}/below-image", f"{directory}/below", "xfs", 900 * MIB)
    machine = Machine(daemon, Disk(inside, f"{below.point}/image", daemon.state))
    work, running = machine.begin_work()
    os.mkdir(directory / "copy")
    for number in range(times):
        time.sleep(random.uniform(0.05, 0.3))
        before = work.events()
        inside.shell(f"cp --reflink=always {below.point}/image {below.point}/copy")
        promised = work.promised_by(before)
        inside.shell(f"mount -o loop {below.point}/copy {directory}/copy")
        try:
            assert problems_in(f"/proc/{inside.pid}/root{directory}/copy", promised, SYNCED) == [], (
                f"copy {number}"
            )
        finally:
            inside.shell(f"umount {directory}/copy; rm {below.point}/copy")
    for pid in running:
        os.kill(pid, signal.SIGTERM)
        assert inside.call("ended", pid, 10) == 0
    assert work.failures() == []
    daemon.down()
    machine.disk.unmount()
    below.unmount()
