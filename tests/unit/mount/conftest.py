"""A mount namespace of the tests' own, and a hub in it that a real worker serves.

Every test process moves into a private namespace once: nothing that is mounted here is seen outside,
and nothing outlives the process. A test that leaves a mount of engramfs behind fails all the same.
"""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engramfs.daemon import handover
from engramfs.daemon.notifications import Notifications
from engramfs.mount.connection import Connection
from engramfs.mount.mountinfo import read_mounts

WORKER = Path(__file__).parents[2] / "e2e" / "directory_worker.py"


@pytest.fixture
def no_mounts_left(private_namespace: None) -> Iterator[None]:
    before = {mount.id for mount in read_mounts()}  # another engramfs may run on this machine
    yield
    left = [mount for mount in read_mounts() if mount.is_ours and mount.id not in before]
    for mount in reversed(left):
        subprocess.run(["umount", "-l", mount.point], timeout=10, check=False)
    assert left == []


class Hub:
    """A hub whose worker serves the directory `backing`; both go with the test."""

    def __init__(self, directory: Path) -> None:
        self.backing = directory / "backing"
        self.point = str(directory / "fs")
        self.backing.mkdir(parents=True)
        os.mkdir(self.point)
        self.connection = Connection.open(self.point)
        notifications = Notifications()
        environment = {**os.environ, "NOTIFY_SOCKET": notifications.address}
        command = [sys.executable, str(WORKER), str(self.backing)]
        descriptors = {"fuse": self.connection.descriptor}
        self.worker = handover.start(command, descriptors, environment, 2)
        try:
            assert select.select([notifications], [], [], 20)[0], "the worker did not come up"
            message = notifications.receive(self.worker)
            assert message is not None
            assert message.lines["READY"] == "1"
        finally:
            notifications.close()

    def kill_worker(self) -> None:
        """End the worker and the connection, as when a whole daemon is killed."""
        if self.worker:
            os.kill(self.worker, signal.SIGKILL)
            os.waitpid(self.worker, 0)
            self.worker = 0
        if self.connection.descriptor >= 0:
            os.close(self.connection.descriptor)
            self.connection.descriptor = -1

    def close(self) -> None:
        self.kill_worker()
        subprocess.run(["umount", "-l", self.point], timeout=10, check=False, stderr=subprocess.DEVNULL)


@pytest.fixture
def hub(tmp_path: Path, no_mounts_left: None) -> Iterator[Hub]:
    hub = Hub(tmp_path / "hub")
    yield hub
    hub.close()


@pytest.fixture
def other_hub(tmp_path: Path, no_mounts_left: None) -> Iterator[Hub]:
    hub = Hub(tmp_path / "other")
    yield hub
    hub.close()
