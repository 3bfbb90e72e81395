"""Taking the mounts of sessions off again, lazily: whoever is in one of them stays there until it leaves."""

import errno
import os
from collections.abc import Callable, Sequence

from engramfs.mount.copying import MountPlan
from engramfs.mount.hub import unmount
from engramfs.mount.mountinfo import Mount, read_mounts, top_mount
from engramfs.mount.target import RootDirectory


def detach(paths: Sequence[str]) -> None:
    """Take off engramfs mounts, the last attached first, lazily. Passes over what is gone or not ours."""
    take_off(read_mounts, paths)


def take_off(mounts: Callable[[], list[Mount]], paths: Sequence[str]) -> None:
    """As `detach`; `mounts` says what is mounted where in the namespace that we are in."""
    for path in reversed(paths):
        mount = top_mount(mounts(), path)
        if mount is None or not mount.is_ours:
            continue
        try:
            unmount(path)
        except OSError as error:
            # Beneath a dead mount nothing can be reached; taking that one off takes this one with it.
            if error.errno != errno.ENOTCONN:
                raise


def detach_session(directory: RootDirectory, mounts: Sequence[MountPlan]) -> list[str]:
    """Take off what of `mounts` is under a root directory, the last first; the places where it was.

    A mount of another session that has taken the place is left.
    """
    taken = []
    for plan in reversed(mounts):
        try:
            target = directory.open(plan.target)
        except OSError:
            continue
        point = directory.proc.path_of(target)
        os.close(target)
        while (mount := top_mount(directory.proc.mounts(), point)) is not None and shows(mount, plan):
            unmount(point)
            taken.append(point)
    return taken


def shows(mount: Mount, plan: MountPlan) -> bool:
    """Whether a mount shows the source of `plan`, or another source of the same session."""
    own = plan.source.split("/")[:2]
    found = mount.root.strip("/").split("/")
    same_session = own[0] == "sessions" and found[:2] == own
    return mount.is_ours and (mount.root.strip("/") == plan.source or same_session)
