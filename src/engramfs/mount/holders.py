"""Which sessions are still mounted somewhere, found in /proc: no mounted filesystem is touched.

A sandbox takes its mount namespace with it when its last process ends. So a session is held as long as some
process lives in a namespace that has one of its mounts.

A look into /proc waits for a process that is about to execute a program and waits itself, for a dead mount,
say. Who must not wait looks with a limit, or in a thread that can be left behind.
"""

import os
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

from engramfs.errors import Unavailable
from engramfs.mount.mountinfo import FUSE_TYPE, Mount, parse
from engramfs.mount.place import Place, lives, namespace_of

Held = dict[str, dict[int, int]]  # session → mount namespaces that have its mounts → a process in each
_SESSIONS = "/sessions/"  # below it are the sources of a session's own mounts, in the hub


def held_sessions(device: tuple[int, int]) -> Held:
    """The sessions whose mounts some process sees; `device` is that of the hub."""
    held: Held = {}
    for namespace, pid in _namespaces().items():
        for mount in _mounts_of(pid):
            if mount.device == device and mount.root.startswith(_SESSIONS):
                session = mount.root[len(_SESSIONS) :].partition("/")[0]
                held.setdefault(session, {})[namespace] = pid
    return held


def held_within(seconds: float, device: tuple[int, int]) -> Held:
    """`held_sessions`. Raises `Unavailable` when the look takes longer."""
    found: list[Held] = []
    look = threading.Thread(target=lambda: found.append(held_sessions(device)), daemon=True)
    look.start()
    look.join(seconds)
    if not found:
        raise Unavailable(
            f"no answer within {seconds:g} s to who holds the session: some process hangs while it executes a"
            " program, perhaps from a dead mount; end it, or try again"
        )
    return found[0]


def is_gone(session: str, place: Place, held: Held, own: int) -> bool:
    """Whether nobody is left at `place` of `session`; `own` is the namespace of the daemon.

    A root directory of the daemon's own namespace stays, unless it was attached for a process.
    """
    if lives(place.pid, place.started):
        return False
    if place.namespace == own:
        return place.pid is not None
    return not any(namespace != own for namespace in held.get(session, {}))


class Way(NamedTuple):
    """How to get to a place: into the namespace of process `pid`, and there to the directory `root`."""

    pid: int
    root: str


def way_to(session: str, place: Place, held: Callable[[], Held], daemon: int) -> Way | None:
    """The way to `place`, or None when nobody is left there. `daemon` is a process in its own namespace.

    `held` is asked only where nothing else tells.
    """
    if place.pid is not None and lives(place.pid, place.started) and _is_in(place):
        return Way(place.pid, "/")
    if namespace_of(daemon) == place.namespace:
        return Way(daemon, place.root)
    holder = held().get(session, {}).get(place.namespace)
    return Way(holder, "/" if place.pid is not None else place.root) if holder is not None else None


def _is_in(place: Place) -> bool:
    try:
        return namespace_of(place.pid or 0) == place.namespace
    except OSError:
        return False


def _namespaces() -> dict[int, int]:
    """Every mount namespace, with one of its processes."""
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            link = os.readlink(f"/proc/{name}/ns/mnt")  # mnt:[4026531841]
        except OSError:
            continue  # it has ended, or is none of our business
        found.setdefault(int(link[5:-1]), int(name))
    return found


def _mounts_of(pid: int) -> Iterator[Mount]:
    try:
        with open(
            f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape", newline="\n"
        ) as lines:
            for line in lines:
                if FUSE_TYPE in line:
                    yield parse(line.rstrip("\n"))
    except (OSError, ValueError):  # it has ended
        return
