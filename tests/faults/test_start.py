"""What keeps a daemon from starting is said in one line that names it."""

import os
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("option", "kibibytes", "limit"), [("-f", 1000, "RLIMIT_FSIZE"), ("-v", 2_000_000, "RLIMIT_AS")]
)
def test_a_limit_of_whoever_starts_it(daemon: Daemon, option: str, kibibytes: int, limit: str) -> None:
    limited = ["bash", "-c", f'ulimit {option} {kibibytes} && exec "$@"', "bash"]
    daemon.inside.call("os.mkdir", "/mnt/0")
    refused = daemon.command("up", "--root", "/mnt/0", through=limited)
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert f"({limit}); lift it: ulimit {option} unlimited" in refused.err
    assert limit in daemon.command("doctor", through=limited).out
    daemon.up()
