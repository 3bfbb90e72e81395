"""Mounts whose daemon is dead or hangs.

A process that touches one may hang for ever, so a helper asks, with a time limit, once for each connection.
Those in the mount namespaces of others are not looked at.
"""

from collections.abc import Iterator
from itertools import groupby

from engramfs.daemon.doctor.finding import Finding, ok, problem
from engramfs.daemon.doctor.installation import Installation
from engramfs.mount.liveness import Liveness, liveness
from engramfs.mount.mountinfo import Mount, read_mounts, top_mount

_LIMIT = 2.0  # seconds
_SHOWN = 3


def check_stale_mounts(installation: Installation) -> Iterator[Finding]:
    mounts = read_mounts()
    ours = sorted((mount for mount in mounts if mount.is_ours), key=lambda mount: mount.device)
    alive = 0
    for _, group in groupby(ours, key=lambda mount: mount.device):
        points = list(group)
        state = _state(mounts, points)
        if state is Liveness.ANSWERS:
            alive += len(points)
        else:
            yield _stale(points, state, installation)
    yield ok(f"{alive} mounts of engramfs here answer" if alive else "no mount of engramfs here is in use")


def _state(mounts: list[Mount], points: list[Mount]) -> Liveness:
    """Asked at a point where nothing else is mounted over it; where there is none, nobody can meet it."""
    visible = [mount for mount in points if top_mount(mounts, mount.point) == mount]
    return liveness(visible[0].point, _LIMIT) if visible else Liveness.ANSWERS


def _stale(points: list[Mount], state: Liveness, installation: Installation) -> Finding:
    names = sorted((mount.point for mount in points), key=len)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    where = ", ".join(names[:_SHOWN]) + more
    tool = "umount -l" if installation.uid == 0 else "fusermount3 -u -z"
    is_hub = any(name.startswith(f"{installation.locations.run}/") for name in names)
    cure = f"{tool} {' '.join(reversed(names[:_SHOWN]))}"
    if state is Liveness.HANGS:
        return problem(
            f"the daemon behind {where} does not answer",
            "whoever touches it waits, and may not even be killed",
            f"engramfs restart, if it is this installation's; else end its processes, then {cure}",
        )
    return problem(
        f"the daemon behind {where} is dead",
        "every call there fails with ENOTCONN",
        f"engramfs up starts one and takes these off, or {cure}" if is_hub else cure,
    )
