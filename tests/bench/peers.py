"""The figures that are measured against other filesystems, and against the disk itself."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

import msgspec
from tests.bench.contenders import Contender, installed
from tests.bench.figures import Comparison, Figure, Target, Unit
from tests.bench.file_work import LARGE, FileWork, populate
from tests.bench.rounds import in_turns

_SETTLE = 0.12  # seconds: engramfs seals what is quiet for 0.05
_READ = {"bindfs": Target(1.7), "JuiceFS": Target(0.4)}
_DISK = {"ext4": Target(1.5)}
_WRITE = {"JuiceFS": Target(0.35)}
_RATE = {"JuiceFS": Target(0.8, at_least=True)}


class Peers:
    """The contenders that are there, started and holding the same files."""

    def __init__(self, contenders: list[Contender]) -> None:
        self._works = {contender.name: FileWork(contender.path) for contender in contenders}
        self.versions = dict.fromkeys(("engramfs", "ext4", "bindfs", "JuiceFS"), "not installed")
        self.versions |= {contender.name: contender.version() for contender in contenders}

    def figures(self) -> Iterator[Figure]:
        """One after the other, as they are measured."""
        of = FileWork
        yield self._time("open+read 4 KiB+close, warm", of.open_read_close, _READ, "µs", rounds=81)
        yield self._time("grep -r over 1,000 files, warm", of.grep, _READ, "ms", rounds=31)
        yield self._time("stat, warm", of.stat, _DISK, "µs", rounds=15)
        yield self._time("lookup of a missing name, warm", of.look_up_missing, _DISK, "µs", rounds=9)
        yield self._time("create+write 4 KiB+close", of.create_write_close, _WRITE, "µs", 11, _SETTLE)
        yield self._time("append a line", of.append_line, _WRITE, "µs", 11, _SETTLE)
        yield self._time("atomic save (temporary + rename)", of.save_atomically, _WRITE, "µs", 11, _SETTLE)
        yield self._reading_rate()

    def _time(
        self,
        name: str,
        work: Callable[[FileWork], float],
        targets: dict[str, Target],
        unit: Literal["µs", "ms"],
        rounds: int,
        settle: float = 0.0,
    ) -> Figure:
        seconds = in_turns(self._turns(work), rounds, settle=settle)
        factor = {"µs": 1e6, "ms": 1e3}[unit]
        figure = _figure(name, unit, {who: each * factor for who, each in seconds.items()}, targets)
        note = f"the median of {rounds} turns of each"
        return msgspec.structs.replace(figure, note=note)

    def _reading_rate(self) -> Figure:
        seconds = in_turns(self._turns(FileWork.read_large), rounds=15, choose=min)
        rates = {who: (LARGE >> 20) / each for who, each in seconds.items()}
        figure = _figure("sequential read of 64 MiB, warm", "MiB/s", rates, _RATE)
        return msgspec.structs.replace(figure, note="the best of 15 turns of each")

    def _turns(self, work: Callable[[FileWork], float]) -> dict[str, Callable[[], float]]:
        return {name: partial(work, of) for name, of in self._works.items()}


def _figure(name: str, unit: Unit, values: dict[str, float], targets: dict[str, Target]) -> Figure:
    peers = tuple(
        Comparison(peer, value, targets.get(peer)) for peer, value in values.items() if peer != "engramfs"
    )
    return Figure(name, unit, values["engramfs"], peers)


@contextlib.contextmanager
def started(directory: str) -> Iterator[Peers]:
    """Every contender that is installed, with its files, until the block ends."""
    contenders = installed(directory)
    with contextlib.ExitStack() as stack:
        for contender in contenders:
            contender.start()
            stack.callback(contender.stop)
            populate(contender.path)
        yield Peers(contenders)
