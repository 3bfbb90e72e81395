"""A session's mounts, put into a root directory and taken off again."""

import os
from enum import Enum
from typing import TYPE_CHECKING, Any

from engramfs.cli.invocation import Invocation
from engramfs.errors import Unavailable

if TYPE_CHECKING:
    from engramfs.mount.attach import MountPlan
    from engramfs.mount.mountinfo import Mount

_CAP_SYS_ADMIN = 1 << 21


def require_privilege() -> None:
    """Raises `Unavailable` at once when this process may not mount."""
    with open("/proc/self/status") as lines:
        effective = next(line.split()[1] for line in lines if line.startswith("CapEff:"))
    if not int(effective, 16) & _CAP_SYS_ADMIN:
        raise Unavailable(
            "mounting for others needs root (CAP_SYS_ADMIN); run as root, or use engramfs mount DIR without"
        )


def attach(invocation: Invocation, session: dict[str, Any], root: str, daemon: int) -> list[str]:
    """Attach what is missing of `session` under `root`; the places, parents first.

    What is there and served stays untouched. Where something is there and no longer served (its views
    were ended), everything is taken off first: nothing can be reached through a parent that is stale.
    """
    from engramfs.mount.attach import attach_session, detach

    hub = hub_point(invocation)
    plans = mount_plans(session)
    places = [_place(root, plan) for plan in plans]
    found = [_look(hub, plan, place) for plan, place in zip(plans, places, strict=True)]
    if _Found.STALE in found or _Found.MISSING in found[: len(session.get("parents", []))]:
        detach([place for place, state in zip(places, found, strict=True) if state is not _Found.MISSING])
        found = [_Found.MISSING] * len(plans)
    missing = [plan for plan, state in zip(plans, found, strict=True) if state is _Found.MISSING]
    if missing:
        attach_session(hub, daemon, root, missing)
    return places


def mount_plans(session: dict[str, Any]) -> list["MountPlan"]:
    """The read-only parents that the session names, then its attachments."""
    from engramfs.mount.attach import MountPlan

    parents = [MountPlan(parent["source"], parent["path"], True) for parent in session.get("parents", [])]
    attachments = [
        MountPlan(each["source"], each["path"], each["access"] == "read_only")
        for each in session["attachments"]
    ]
    return parents + attachments


def detach_all(invocation: Invocation) -> list[str]:
    """Take off every place in this mount namespace where the daemon's hub is attached, but not the hub."""
    from engramfs.mount.attach import detach
    from engramfs.mount.mountinfo import read_mounts

    hub = hub_mount(invocation)
    if hub is None:
        return []
    points = [
        mount.point
        for mount in read_mounts()
        if mount.is_ours and mount.device == hub.device and mount.point != hub.point
    ]
    detach(points)
    return points


def hub_point(invocation: Invocation) -> str:
    return os.path.join(os.path.realpath(invocation.locations.run), "fs")


def hub_mount(invocation: Invocation) -> "Mount | None":
    """The daemon's hub as it is mounted here, alive or dead."""
    from engramfs.mount.mountinfo import read_mounts, top_mount

    mount = top_mount(read_mounts(), hub_point(invocation))
    return mount if mount is not None and mount.is_ours else None


def _place(root: str, plan: "MountPlan") -> str:
    return os.path.realpath(os.path.join(root, plan.target.lstrip("/")))


class _Found(Enum):
    """What is at a place where a mount belongs."""

    MISSING = "nothing, or another mount"
    STALE = "the mount, no longer served"
    SERVED = "the mount"


def _look(hub: str, plan: "MountPlan", place: str) -> _Found:
    from engramfs.mount.mountinfo import read_mounts, top_mount

    mounts = read_mounts()
    served, mount = top_mount(mounts, hub), top_mount(mounts, place)
    if served is None or mount is None or mount.device != served.device:
        return _Found.MISSING
    if mount.root != "/" + plan.source.strip("/"):
        return _Found.MISSING
    try:
        os.close(os.open(place, os.O_RDONLY | os.O_CLOEXEC))  # unlike stat, never answered from a cache
    except OSError:
        return _Found.STALE
    return _Found.SERVED
