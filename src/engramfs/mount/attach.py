"""A session's tree in a root directory: bind mounts of places in the hub, all or nothing.

A mount that engramfs left or put at a target before is replaced without a moment in which the place is
bare: the new one goes beneath the old one, which is then taken off (Linux 6.5; before, bare for a moment).

Needs root. Blocking: a hanging worker blocks the caller; the keeper calls this from a child process.
"""

import errno
import os
from collections.abc import Sequence

from engramfs.errors import Conflict, Unavailable
from engramfs.mount import syscalls
from engramfs.mount.copying import Copied, MountPlan, copies
from engramfs.mount.detach import take_off
from engramfs.mount.hub import unmount
from engramfs.mount.liveness import Liveness, liveness_of
from engramfs.mount.mountinfo import Mount, top_mount
from engramfs.mount.target import RootDirectory, is_directory, require_empty, require_kind
from engramfs.mount.visit import visit


def attach_session(
    hub: str, daemon_pid: int, root: str, mounts: Sequence[MountPlan], *, over: bool = False
) -> list[str]:
    """Attach `mounts` in their order (parents first) under `root`; returns the places, for `detach`.

    `hub` is the hub's path as the daemon `daemon_pid` sees it. Every mount is nosuid and nodev. With `over`,
    what is at a target already is covered. Raises `Conflict` naming a target that is in use, `NoDaemon`,
    `NotFound` for a source or root that is not there, `Unavailable` without privilege; then nothing stays
    attached.
    """
    with RootDirectory(root) as directory, copies(hub, daemon_pid, mounts) as copied:
        return place_all(directory, copied, over=over)


def attach_to_process(
    hub: str, daemon_pid: int, pid: int, mounts: Sequence[MountPlan], *, root: str = "/", over: bool = False
) -> list[str]:
    """The same in the mount namespace of process `pid`, under the directory that it calls `root`. Forks."""
    with copies(hub, daemon_pid, mounts) as copied:
        places: list[str] = visit(pid, lambda directory: place_all(directory, copied, over=over), root)
        return places


def place_all(directory: RootDirectory, copied: Copied, *, over: bool) -> list[str]:
    """Put every copy at its target, all or nothing; the places. Raises as `attach_session` does."""
    attached: list[str] = []
    try:
        for plan, tree in zip(copied.mounts, copied.trees, strict=True):
            attached.append(_place(directory, plan, tree, copied.connection, over=over))
    except BaseException as error:
        take_off(directory.proc.mounts, attached)
        directory.remove_created()
        if isinstance(error, OSError):
            raise Unavailable(f"cannot attach to {directory.path}: {error}; choose another root") from error
        raise
    return attached


def _place(directory: RootDirectory, plan: MountPlan, tree: int, connection: Mount, *, over: bool) -> str:
    """Put one copy at its target; returns where that is in the namespace that we are in."""
    shown = directory.shown(plan.target)
    as_directory = is_directory(tree)
    target = directory.mount_point(plan.target, directory=as_directory)
    try:
        point = directory.proc.path_of(target)
        present = top_mount(directory.proc.mounts(), point)
        if present is None or not present.is_ours or present.id != directory.proc.mount_id(target):
            require_kind(target, shown, directory=as_directory)
            if not over:
                require_empty(target, shown, directory=as_directory)
            _move(tree, target, shown)
            return point
        if present.device != connection.device and liveness_of(target) is not Liveness.DEAD:
            raise Conflict(f"another engramfs daemon is attached at {shown}; detach that one first")
        _replace(directory, plan, tree, target, point)
        return point
    finally:
        os.close(target)


def _replace(directory: RootDirectory, plan: MountPlan, tree: int, present: int, point: str) -> None:
    try:
        syscalls.move_mount(tree, present, beneath=True)
    except OSError:  # an older kernel, or a place that propagates to others: first off, then on
        unmount(point)
        bare = directory.mount_point(plan.target, directory=is_directory(tree))
        try:
            _move(tree, bare, directory.shown(plan.target))
        finally:
            os.close(bare)
    else:
        unmount(point)


def _move(tree: int, target: int, shown: str) -> None:
    try:
        syscalls.move_mount(tree, target)
    except OSError as error:
        do = "run as root" if error.errno == errno.EPERM else "choose another root"
        raise Unavailable(f"cannot attach {shown}: {error.strerror}; {do}") from error
