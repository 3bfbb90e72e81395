"""The disk under a serving daemon turns read-only, as ext4 does after an error: nobody is told a lie."""

import os
import signal

import pytest

from engramfs.daemon.run_directory import keeper_of

from ..harness.daemon import Daemon, eventually
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


def test_commands_that_read_show_the_log_and_say_what_the_journal_has_beside_it(daemon: Daemon) -> None:
    disk = Disk(daemon.inside, f"{daemon.directory}/image", daemon.state)
    daemon.configure('[batch]\nquiet = "30s"\nmax_age = "60s"\n')
    place = daemon.up()
    place.write("sealed", b"kept")
    daemon.barrier()
    for name in ("a", "b"):
        place.write(name, b"acknowledged")
    worker, keeper = daemon.worker, keeper_of(daemon.run_directory)
    assert keeper is not None
    os.kill(keeper, signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    eventually(lambda: daemon.command("status").code == 6)
    eventually(lambda: daemon.inside.run("mount", "-o", "remount,ro", daemon.state).code == 0)
    for command in (["log", place.store], ["show", f"{place.store}:sealed"], ["verify"], ["store", "list"]):
        finished = daemon.command(*command)
        assert (finished.code, finished.err.count("\n")) == (0, 1), finished
        assert "records that are in no version, and are not shown: cannot open" in finished.err
    assert "remount it writable" in daemon.command("store", "create", "contexts/a").err
    disk.remount("rw")
    assert "sealed now" in daemon.command("log", place.store).err
    assert daemon.command("log", place.store).err == ""
    daemon.up(root=place.root)
    assert place.names() == ["a", "b", "sealed"]
    daemon.down()
    disk.unmount()
