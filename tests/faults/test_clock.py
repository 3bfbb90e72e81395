"""The clock of the machine is set back: versions go on in their order, and contents are told apart."""

import glob
import time

import pytest

from ..harness.daemon import Daemon
from . import wrapped_worker

HOUR = 3600  # seconds


def test_the_clock_is_set_back(daemon: Daemon) -> None:
    libraries = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    if not libraries:
        pytest.skip("faketime is not installed")
    clock = daemon.directory / "clock"
    clock.write_text("+0")
    fake = f"LD_PRELOAD={libraries[0]} FAKETIME_TIMESTAMP_FILE={clock} FAKETIME_NO_CACHE=1"
    assert wrapped_worker.start(daemon, f'{fake} FAKETIME_DONT_FAKE_MONOTONIC=1 exec "$@"')
    place = daemon.up()
    shown = []
    for number, offset in enumerate(["+0", "-26h", "-25h", "+1h", "-400d"]):
        clock.write_text(offset)
        place.write("file", b"%d" % number)
        daemon.barrier()
        assert place.read("file") == b"%d" % number
        shown.append(daemon.inside.call("os.stat", place.path("file")).st_mtime_ns)
    assert len(set(shown)) == len(shown)
    assert min(shown) < (time.time() - 300 * 24 * HOUR) * 10**9, "the clock was not set"
    log = place.log()
    assert [version["number"] for version in log] == [1, 2, 3, 4, 5]
    daemon.kill_worker()
    place.write("file", b"after")
    assert [place.read(f".versions/{number}/file") for number in range(1, 6)] == [
        b"0",
        b"1",
        b"2",
        b"3",
        b"4",
    ]
    assert place.read("file") == b"after"
