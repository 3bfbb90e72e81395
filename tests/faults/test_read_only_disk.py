"""The disk under a serving daemon turns read-only, as ext4 does after an error: nobody is told a lie."""

import os

import pytest

from ..harness.daemon import Daemon
from .disk import Disk
from .machine import Machine

REFUSED = "Input/output error|Read-only file system"


def test_the_journal_cannot_be_written_any_more(daemon: Daemon) -> None:
    disk = Disk(daemon.inside, f"{daemon.directory}/image", daemon.state)
    machine = Machine(daemon, disk)
    place, call = machine.place, daemon.inside.call
    place.write("sealed", b"kept")
    daemon.barrier()
    opened = call("os.open", place.path("sealed"), os.O_RDWR)
    disk.remount("abort")
    refused: list[tuple[str, *tuple[object, ...]]] = [
        ("write", place.path("new"), b"refused"),
        ("os.mkdir", place.path("directory")),
        ("os.rename", place.path("sealed"), place.path("renamed")),
        ("os.unlink", place.path("sealed")),
        ("os.write", opened, b"refused"),
    ]
    for name, *arguments in refused:
        with pytest.raises(OSError, match=REFUSED):
            call(name, *arguments)
    assert place.read("sealed") == b"kept"
    assert place.names() == ["sealed"]
    call("os.close", opened)
    failures = str(daemon.client.call("status")["failures"])
    assert "the journal" in failures
    machine.lose_power()
    machine.boot()
    assert machine.place.read("sealed") == b"kept"
    assert machine.place.names() == ["sealed"]
    daemon.down()
    disk.unmount()
