"""The hub: the one FUSE mount of a daemon. `connection` has what is behind it.

Nothing here reads a `/dev/fuse` descriptor or touches the mounted filesystem. Paths of mount points are
absolute and free of symbolic links, as mountinfo shows them.
"""

import errno
import os
import time

from engramfs.errors import Busy, Refused, Unavailable
from engramfs.mount import syscalls
from engramfs.mount.liveness import Liveness, liveness
from engramfs.mount.mountinfo import FUSE_TYPE, Mount, read_mounts, top_mount

DEVICE = "/dev/fuse"
CONTROL_FILESYSTEM = "/sys/fs/fuse/connections"


def open_fuse() -> int:
    """A new `/dev/fuse` descriptor: a connection that is mounted nowhere yet. Raises `Unavailable`."""
    try:
        return os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(_why_no_device(error)) from error


def _why_no_device(error: OSError) -> str:
    match error.errno:
        case errno.ENOENT | errno.ENODEV | errno.ENXIO:
            do = "load the kernel module (modprobe fuse), or give the container --device /dev/fuse"
        case errno.EACCES | errno.EPERM:
            do = "run as root, or let this user or container open the device"
        case _:
            do = "see dmesg"
    return f"cannot open {DEVICE}: {error.strerror}; {do}"


def mount_hub(descriptor: int, point: str, *, max_read: int | None = None) -> None:
    """Mount the connection behind `descriptor` at the directory `point`, for every uid.

    `max_read` limits one read request, in bytes. Raises `Unavailable` without the privilege.
    """
    options = f"fd={descriptor},rootmode=40000,user_id=0,group_id=0,allow_other"
    if max_read is not None:
        options += f",max_read={max_read}"
    try:
        syscalls.mount("engramfs", point, FUSE_TYPE, syscalls.MS_NOSUID | syscalls.MS_NODEV, options)
    except OSError as error:
        do = "check that the directory exists and is not in use"
        if error.errno in (errno.EPERM, errno.EACCES):
            do = "run as root (in a container: --cap-add SYS_ADMIN), or use `engramfs mount DIR` without root"
        raise Unavailable(f"cannot mount {point}: {os.strerror(error.errno or 0)}; {do}") from error


def mount_new(point: str) -> int:
    """Mount a new connection at `point`; its descriptor. Raises `Unavailable`, and then leaves nothing."""
    descriptor = open_fuse()
    try:
        mount_hub(descriptor, point)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def said_of_hidden(point: str, met: Mount | None) -> str:
    """What is said when whoever opens `point` meets another mount than the hub, or none."""
    what = "was unmounted" if met is None else f"is covered by a mount of {met.kind}"
    do = "engramfs down, then engramfs up"
    return f"{point} {what} while the daemon serves: nothing can be attached; {do}"


def unmount(point: str) -> None:
    """Take off what is mounted at `point`, lazily. Passes over a place with no mount."""
    try:
        syscalls.umount2(point, syscalls.MNT_DETACH | syscalls.UMOUNT_NOFOLLOW)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOENT):
            raise


def abort(point: str) -> bool:
    """End the connection mounted at `point`: every call in flight and to come gives ENOTCONN.

    False when there is none, or the kernel's control filesystem is out of reach; then the connection
    ends when the last copy of its descriptor is closed.
    """
    mount = top_mount(read_mounts(), point)
    return mount is not None and mount.is_ours and abort_connection(mount.minor)


def abort_connection(minor: int) -> bool:
    """End the connection number `minor` (the minor device number of its mounts)."""
    if _write_abort(f"{CONTROL_FILESYSTEM}/{minor}/abort"):
        return True
    try:
        control = syscalls.detached_mount("fusectl")
    except OSError:
        return False
    try:
        return _write_abort(f"{minor}/abort", directory=control)
    finally:
        os.close(control)


def _write_abort(path: str, directory: int | None = None) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return False
    try:
        os.write(descriptor, b"1")
    finally:
        os.close(descriptor)
    return True


def clear_stale(point: str, *, patience: float = 0.0) -> int:
    """Unmount what dead daemons left at `point`; the number of mounts that were there.

    A mount that hangs is aborted first. One that answers is given `patience` seconds to die (its
    keeper may just have been killed), then `Busy` is raised. `Refused` when it is not of engramfs.
    """
    cleared = 0
    deadline = time.monotonic() + patience
    while (mount := top_mount(read_mounts(), point)) is not None:
        if not mount.is_ours:
            raise Refused(f"{point} is a mount point of {mount.kind}; unmount it or choose another --run")
        state = liveness(point)
        if state is Liveness.ANSWERS:
            if time.monotonic() >= deadline:
                raise Busy(f"another engramfs daemon serves {point}; stop it first (engramfs down)")
            time.sleep(0.05)
            continue
        if state is Liveness.HANGS:
            abort_connection(mount.minor)
        unmount(point)
        cleared += 1
    return cleared


def can_resend() -> bool:
    """Whether the kernel repeats the requests that a dead worker had taken (FUSE_NOTIFY_RESEND, 6.9)."""
    release = os.uname().release.split("-")[0].split(".")
    return [int(part) for part in release[:2]] >= [6, 9]
