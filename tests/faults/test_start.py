"""What keeps a daemon from starting is said in one line that names it."""

import os
from pathlib import Path

from ..harness.daemon import Daemon
from .disk import Disk


def test_a_state_directory_that_cannot_be_written(daemon: Daemon) -> None:
    disk = Disk(daemon.inside, f"{daemon.directory}/image", daemon.state)
    daemon.up().write("file", b"content")
    daemon.ok("down")
    disk.remount("ro")
    refused = daemon.command("up", "--root", "/mnt/0")
    assert refused.code == 1
    assert refused.err.count("\n") == 1
    assert daemon.state in refused.err
    assert "Read-only file system" in refused.err
    assert not daemon.inside.call("os.path.exists", "/mnt/1/mnt")
    disk.remount("rw")
    assert daemon.up().read("file") == b"content"
    daemon.ok("down")
    disk.unmount()


def test_a_second_daemon_on_one_state_directory(daemon: Daemon) -> None:
    place = daemon.up()
    other = {**daemon.environment, "ENGRAMFS_RUN": str(daemon.directory / "other")}
    daemon.environment, ours = other, daemon.environment
    refused = daemon.command("up", "--root", "/mnt/0")
    daemon.environment = ours
    assert refused.code == 4
    assert refused.err == (
        f"engramfs: {daemon.state} is in use by the engramfs daemon (pid {daemon.worker}); stop it first\n"
    )
    place.write("file", b"the first goes on")
    assert os.listdir(Path(daemon.directory, "other", "fs")) == []
