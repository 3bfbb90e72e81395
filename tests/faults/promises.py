"""What a writer was promised (see `writer`), against what is there afterwards."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

Event = list[str | None]  # what, path, digest


def read_report(path: Path) -> list[Event]:
    """The events, oldest first; a last line that was cut short is none."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def promised_before(before: list[Event], after: list[Event]) -> list[Event]:
    """The events of `before`; of those that came later only what was tried: nobody lived to hear the rest."""
    return [*before, *(event for event in after[len(before) :] if event[0] == "try")]


def broken(events: Iterable[Event], found: Mapping[str, str], kept: set[str]) -> list[str]:
    """What of `events` does not hold, given the digests of the files that are there.

    A path may have what it had when the last event of a kind in `kept` said so, or anything that was tried
    since; never anything else.
    """
    possible: dict[str, list[str | None]] = {}
    problems = []
    for event, path, digest in events:
        if event == "failed" or path is None:
            continue
        states = possible.setdefault(path, [None])
        if event == "try":
            states.append(digest)
        elif event == "read" and digest not in states:
            problems.append(f"{path} was read as {digest} instead of {' or '.join(map(str, states))}")
        elif event in kept:
            states[:] = [digest]
    for path, states in possible.items():
        if found.get(path) not in states:
            problems.append(f"{path} has {found.get(path)} instead of {' or '.join(map(str, states))}")
    return problems + [f"{path} was never written" for path in found if path not in possible]
