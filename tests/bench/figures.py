"""A measured value beside what it is compared with."""

from typing import Literal

import msgspec

Unit = Literal["µs", "ms", "s", "MiB/s", "MiB", "records/s", "of 1"]


class Target(msgspec.Struct, frozen=True):
    """A limit of the ratio ours / peer, or of our value itself where there is no peer."""

    limit: float
    at_least: bool = False  # a rate: more is better

    def reached(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


class Comparison(msgspec.Struct, frozen=True):
    """What ours is measured against; `target` is None where the issue names none."""

    name: str
    value: float
    target: Target | None = None


class Figure(msgspec.Struct, frozen=True):
    """One row of the table. `ours` and the peers' values have the unit `unit`."""

    name: str
    unit: Unit
    ours: float
    peers: tuple[Comparison, ...] = ()
    target: Target | None = None  # of `ours` itself
    note: str = ""  # how it was measured, where that is not plain


def ratio(figure: Figure, peer: Comparison) -> float:
    return figure.ours / peer.value if peer.value else float("inf")
