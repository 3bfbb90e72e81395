"""What looking for secrets costs a `close()` of 4 KiB: with the library beside without it, in turns.

Without it nothing is looked at. With it a store that flags looks when a version is sealed, in the thread
that writes the log, so a `close()` is slower only where the two need the interpreter at once; a store that
refuses looks before it answers. One file is written after the other without a pause, so batches are sealed
all the time.
"""

import itertools
import os
import time
from collections.abc import Iterator
from statistics import median, quantiles

from tests.bench.daemon import STATE, Daemon
from tests.bench.figures import Comparison, Figure, Target
from tests.bench.file_work import FILES, new_content

_ROUNDS, _WRITES = 20, 200
_WITHOUT, _FLAG, _REFUSE = "without", "flag", "refuse"


class Closing:
    """Writes 4 KiB files in the writable directory of a daemon, and keeps how long each `close()` took."""

    def __init__(self, daemon: Daemon) -> None:
        self._directory = daemon.writable
        self._names = itertools.cycle(range(FILES))
        self.taken: list[float] = []

    def turn(self) -> None:
        for number in itertools.islice(self._names, _WRITES):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            descriptor = os.open(f"{self._directory}/{number:03}", flags, 0o644)
            os.write(descriptor, new_content())
            begun = time.perf_counter()
            os.close(descriptor)
            self.taken.append(time.perf_counter() - begun)


def figures(directory: str) -> Iterator[Figure]:
    modules = f"{directory}/without-secrets"
    os.mkdir(modules)
    with open(f"{modules}/sitecustomize.py", "w", encoding="ascii") as file:
        file.write('import sys\nsys.modules["detect_secrets"] = None\n')
    places = {name: f"{directory}/secrets-{name}" for name in (_WITHOUT, _FLAG, _REFUSE)}
    for place in places.values():
        os.mkdir(place)
    with (
        Daemon(places[_WITHOUT], modules=modules) as without,
        Daemon(places[_FLAG]) as flag,
        Daemon(places[_REFUSE]) as refuse,
    ):
        refuse.run("store", "set", STATE, "--secrets", "refuse")
        closings = {_WITHOUT: Closing(without), _FLAG: Closing(flag), _REFUSE: Closing(refuse)}
        for number in range(_ROUNDS):
            for closing in list(closings.values())[:: 1 if number % 2 else -1]:
                closing.turn()
                time.sleep(0.2)  # for what is still to be sealed
    taken = {name: closing.taken for name, closing in closings.items()}
    for name in (_FLAG, _REFUSE):
        yield _figure(f"close() of 4 KiB, secrets: {name}", median(taken[name]), median(taken[_WITHOUT]), 1.2)
        yield _figure(f"the same, p99: {name}", _p99(taken[name]), _p99(taken[_WITHOUT]), None)


def _figure(what: str, ours: float, without: float, limit: float | None) -> Figure:
    target = Target(limit) if limit is not None else None
    return Figure(what, "µs", ours * 1e6, (Comparison("not looked at", without * 1e6, target),))


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100)[-1]
