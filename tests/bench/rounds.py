"""Contenders in turns: A B C A B C …, so that whatever else the machine does hurts all of them alike."""

import time
from collections.abc import Callable, Mapping
from statistics import median

Work = Callable[[], float]  # does it once; returns the seconds that one operation took


def in_turns(
    works: Mapping[str, Work],
    rounds: int,
    *,
    settle: float = 0.0,
    choose: Callable[[list[float]], float] = median,
) -> dict[str, float]:
    """The median turn of each contender, or the one that `choose` takes, in seconds an operation.

    A round in which nothing is counted goes before, and every other round is in reverse order. What a
    contender put off (sealing, uploading) it does in the `settle` seconds after its turn, in nobody's.
    """
    taken: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name in list(works) if number % 2 else list(works)[::-1]:
            seconds = works[name]()
            if number:
                taken[name].append(seconds)
            if settle:
                time.sleep(settle)
    return {name: choose(turns) for name, turns in taken.items()}


def each(count: int, operation: Callable[[int], object]) -> float:
    """Seconds that one of `count` calls of `operation` takes."""
    begun = time.perf_counter()
    for number in range(count):
        operation(number)
    return (time.perf_counter() - begun) / count
