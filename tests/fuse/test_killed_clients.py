"""A client that is killed between its request and the answer must not hold up anybody else.

A read of /dev/fuse that finds the request taken back would block the whole process (see
`engramfs.fuse.readable`). Here clients are killed while they work, and another one measures.
"""

import threading
import time

import pytest

from ..harness.daemon import Place
from ..harness.inside import Inside

LONGEST = 0.2  # seconds that any call may take

# Children that do nothing but ask; each is killed after a moment, so that many die with a request under way.
KILLER = """
import os, random, signal, time
directory = os.environ["DIRECTORY"]
for number in range(int(os.environ["KILLS"])):
    child = os.fork()
    if not child:
        while True:
            try:
                os.stat(directory + "/missing%d" % random.randrange(10 ** 9))
                os.close(os.open(directory + "/file", os.O_RDONLY))
            except FileNotFoundError:
                pass
    time.sleep(0.002 + random.random() * 0.006)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""

# Asks every 2 ms, then stays silent for moments in which a blocked worker would go on sleeping.
MEASURE = """
import os, time
directory, longest = os.environ["DIRECTORY"], 0
while not os.path.exists(os.environ["STOP"]):
    started = time.monotonic()
    os.close(os.open(directory + "/measured", os.O_RDONLY))
    longest = max(longest, time.monotonic() - started)
    time.sleep(0.002)
print(longest)
"""


@pytest.mark.parametrize("kills", [300, pytest.param(1000, marks=pytest.mark.soak)])
def test_no_call_waits_because_others_were_killed(place: Place, kills: int) -> None:
    place.write("file", b"")
    place.write("measured", b"")
    stop = place.daemon.directory / "stop"
    stop.unlink(missing_ok=True)
    measuring = Inside(beside=place.inside.pid)
    measured: list[str] = []

    def measure() -> None:
        finished = measuring.run(
            "python3", "-c", MEASURE, timeout=100, environment={"DIRECTORY": place.state, "STOP": str(stop)}
        )
        measured.append(finished.out)

    thread = threading.Thread(target=measure)
    thread.start()
    try:
        environment = {"DIRECTORY": place.state, "KILLS": str(kills)}
        killed = place.inside.run("python3", "-c", KILLER, timeout=90, environment=environment)
        assert killed == (0, "", "")
    finally:
        stop.touch()
        thread.join()
        measuring.close()
    assert float(measured[0]) < LONGEST


def test_the_worker_answers_its_control_socket_after_a_kill_with_nobody_else_asking(place: Place) -> None:
    """With no other client there is no next request that would end a blocked read."""
    place.write("file", b"")
    asking = "import os\nwhile True:\n    os.close(os.open(os.environ['DIRECTORY'] + '/file', os.O_RDONLY))"
    longest = 0.0
    for _ in range(20):
        output = str(place.daemon.directory / "output")
        client = place.inside.call(
            "start", ["python3", "-c", asking], None, {"DIRECTORY": place.state}, output
        )
        time.sleep(0.06)
        place.inside.call("os.kill", client, 9)
        assert place.inside.call("ended", client, 10) == -9
        started = time.monotonic()
        place.daemon.client.call("ping", timeout=5)
        longest = max(longest, time.monotonic() - started)
    assert longest < 1
