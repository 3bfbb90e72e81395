"""A session's mounts, put into a root directory and taken off again."""

import contextlib
import functools
import os
from enum import Enum
from typing import TYPE_CHECKING, Any

from engramfs.cli.invocation import Invocation
from engramfs.errors import Unavailable

if TYPE_CHECKING:
    from engramfs.mount.copying import MountPlan
    from engramfs.mount.holders import Way
    from engramfs.mount.mountinfo import Mount
    from engramfs.mount.place import Place

_CAP_SYS_ADMIN = 1 << 21
_PATIENCE = 5.0  # seconds for a look at every process
Document = dict[str, Any]


def require_privilege() -> None:
    """Raises `Unavailable` at once when this process may not mount."""
    with open("/proc/self/status") as lines:
        effective = next(line.split()[1] for line in lines if line.startswith("CapEff:"))
    if not int(effective, 16) & _CAP_SYS_ADMIN:
        raise Unavailable(
            "mounting for others needs root (CAP_SYS_ADMIN); run as root, or use engramfs mount DIR without"
        )


def attach_missing(
    invocation: Invocation, session: Document, root: str, daemon: int, *, over: bool = False
) -> list[str]:
    """Attach what is missing of `session` under `root`; the places, parents first.

    What is there and served stays untouched. Where something is there and no longer served (its views
    were ended), everything is taken off first: nothing can be reached through a parent that is stale.
    """
    from engramfs.mount.attach import attach_session
    from engramfs.mount.detach import detach

    hub = hub_point(invocation)
    plans = mount_plans(session)
    places = [_place(root, plan) for plan in plans]
    found = [_look(hub, plan, place) for plan, place in zip(plans, places, strict=True)]
    if _Found.STALE in found or _Found.MISSING in found[: len(session.get("parents", []))]:
        detach([place for place, state in zip(places, found, strict=True) if state is not _Found.MISSING])
        found = [_Found.MISSING] * len(plans)
    missing = [plan for plan, state in zip(plans, found, strict=True) if state is _Found.MISSING]
    if missing:
        attach_session(hub, daemon, root, missing, over=over)
    return places


def attach(
    invocation: Invocation, session: Document, place: "Place", *, root: str = "/", over: bool = False
) -> list[str]:
    """Attach all of `session` at `place`, here or in another process's namespace, and tell the daemon.

    `root` is the directory that is about to become the root of the place's process. Raises `Conflict` when
    another session or other files are there, unless `over`; then all stays as it was.
    """
    from engramfs.mount.attach import attach_session, attach_to_process

    client, known = invocation.client, {"id": session["id"], "place": document_of(place)}
    hub, daemon, plans = hub_point(invocation), daemon_pid(invocation), mount_plans(session)
    was_there = any(place.is_same(other) for other in places_of(session))
    client.call("session.attaching", **known, over=over)
    try:
        if place.pid is None:
            paths = attach_session(hub, daemon, place.root, plans, over=over)
        else:
            paths = attach_to_process(hub, daemon, place.pid, plans, root=root, over=over)
    except BaseException:
        if not was_there:
            client.call("session.detached", **known)
        raise
    client.call("session.attached", **known)
    return paths


def detach_from(invocation: Invocation, session: Document, places: list["Place"]) -> list[str]:
    """Take the mounts of `session` off at `places`, and tell the daemon; where they were."""
    taken = take_off(invocation, session, places)
    for place in places:
        invocation.client.call("session.detached", id=session["id"], place=document_of(place))
    return taken


def take_off(invocation: Invocation, session: Document, places: list["Place"]) -> list[str]:
    """Take the mounts of `session` off at `places`, as far as anybody is left there; where they were."""
    from engramfs.errors import NotFound
    from engramfs.mount.detach import detach_session
    from engramfs.mount.visit import visit

    plans = mount_plans(session)
    taken: list[str] = []
    for way in ways(invocation, session, places):
        if way is not None:
            with contextlib.suppress(NotFound):
                taken += visit(way.pid, lambda directory: detach_session(directory, plans), way.root)
    return taken


def ways(invocation: Invocation, session: Document, places: list["Place"]) -> list["Way | None"]:
    """How to get to each place of a session; None where nobody is left."""
    from engramfs.mount.holders import Held, held_within, way_to

    hub, daemon = hub_mount(invocation), daemon_pid(invocation)

    @functools.cache
    def held() -> Held:
        return held_within(_PATIENCE, hub.device) if hub is not None else {}

    return [way_to(session["id"], place, held, daemon) for place in places]


def places_of(session: Document) -> list["Place"]:
    """Where a session is attached."""
    from engramfs.mount.place import Place

    return [Place(**place) for place in session["places"]]


def document_of(place: "Place") -> Document:
    """A place as the control socket takes it."""
    from dataclasses import asdict

    return asdict(place)


def require_mapped(pid: int, session: Document) -> None:
    """Raises `Refused` when the session's files would be nobody's in the user namespace of a process."""
    from engramfs.errors import Refused

    for what, identifier in (("uid", session["uid"]), ("gid", session["gid"])):
        with open(f"/proc/{pid}/{what}_map") as lines:
            ranges = [[int(number) for number in line.split()] for line in lines]
        if not any(outside <= identifier < outside + count for _, outside, count in ranges):
            hint = f"open the session with --{what} {ranges[0][1]}" if ranges else "map its ids first"
            raise Refused(
                f"the user namespace of process {pid} does not know {what} {identifier}, the files' owner; "
                f"{hint}"
            )


def daemon_pid(invocation: Invocation) -> int:
    """A process in the daemon's mount namespace."""
    pid: int = invocation.client.call("ping")["pid"]
    return pid


def mount_plans(session: Document) -> list["MountPlan"]:
    """The read-only parents that the session names, then its attachments."""
    from engramfs.mount.copying import MountPlan

    parents = [MountPlan(parent["source"], parent["path"], True) for parent in session.get("parents", [])]
    attachments = [
        MountPlan(each["source"], each["path"], each["access"] == "read_only")
        for each in session["attachments"]
    ]
    return parents + attachments


def detach_all(invocation: Invocation) -> list[str]:
    """Take off every place in this mount namespace where the daemon's hub is attached, but not the hub."""
    from engramfs.mount.detach import detach
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
