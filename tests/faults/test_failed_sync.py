"""A sync of the journal fails, and the kernel forgets what it could not write: no later one may hide that."""

import os

import pytest

from ..harness.daemon import Daemon, Place
from .disk import RefusingDisk
from .machine import Machine

ONLY_THE_JOURNAL = '[batch]\ndurability = "close"\nquiet = "60s"\nmax_age = "60s"\n'


def save_until_a_close_fails(place: Place) -> dict[str, bytes]:
    """What was saved before. The filesystem has set some blocks aside for the journal that it may fill."""
    saved: dict[str, bytes] = {}
    while len(saved) < 100:
        name, content = f"file{len(saved)}", os.urandom(60_000)
        try:
            place.write(name, content)
        except OSError:
            return saved
        saved[name] = content
    raise AssertionError("the disk refuses nothing")


@pytest.mark.parametrize("killed", [False, True], ids=["the same worker", "the next worker"])
def test_what_is_closed_after_a_failed_sync_survives_a_loss_of_power(daemon: Daemon, killed: bool) -> None:
    daemon.configure(ONLY_THE_JOURNAL)
    disk = RefusingDisk(daemon.inside, str(daemon.directory), daemon.state)
    machine = Machine(daemon, disk)
    place = machine.place
    disk.refuse()
    saved = save_until_a_close_fails(place)
    disk.accept()
    if killed:
        daemon.kill_worker()
    place.write("afterwards", b"kept")
    machine.lose_power()
    machine.boot()
    saved["afterwards"] = b"kept"
    there = set(machine.place.names())
    assert saved.keys() - there == set()
    assert {name: machine.place.read(name) for name in saved} == saved
    daemon.down()
    disk.unmount()
