"""A session's tree in a root directory: bind mounts of places in the hub, all or nothing.

The copies are taken in the daemon's mount namespace, all before anything is changed, and put into the
caller's. A mount that engramfs
left or put at a target before is replaced without a moment in which the place is bare: the new one goes
beneath the old one, which is then taken off (Linux 6.5; before, bare for a moment).

Needs root. Blocking: a hanging worker blocks the caller; the keeper calls this from a child process.
"""

import errno
import os
import threading
from collections.abc import Callable, Sequence

import msgspec

from engramfs.errors import Conflict, EngramError, NoDaemon, NotFound, Unavailable
from engramfs.mount import syscalls
from engramfs.mount.hub import unmount
from engramfs.mount.liveness import Liveness, liveness
from engramfs.mount.mountinfo import Mount, mount_id, read_mounts, top_mount
from engramfs.mount.target import RootDirectory, is_directory, require_empty

_BENEATH_HUB = syscalls.RESOLVE_BENEATH | syscalls.RESOLVE_NO_SYMLINKS


class MountPlan(msgspec.Struct, frozen=True):
    """One bind mount: `source`, relative to the hub, at `target`, absolute within the root directory."""

    source: str
    target: str
    read_only: bool


def attach_session(hub: str, daemon_pid: int, root: str, mounts: Sequence[MountPlan]) -> list[str]:
    """Attach `mounts` in their order (parents first) under `root`; returns the places, for `detach`.

    `hub` is the hub's path as the daemon `daemon_pid` sees it. Every mount is nosuid and nodev.
    Raises `Conflict` naming a target that is in use, `NoDaemon`, `NotFound` for a source or root that
    is not there, `Unavailable` without privilege; then nothing stays attached.
    """
    connection = _find_hub(hub, daemon_pid)
    trees: list[int] = []
    attached: list[str] = []
    with RootDirectory(root) as directory:
        try:
            _in_namespace_of(daemon_pid, lambda: _copy_all(hub, mounts, trees))
            for plan, tree in zip(mounts, trees, strict=True):
                attached.append(_place(directory, plan, tree, connection))
        except BaseException as error:
            detach(attached)
            directory.remove_created()
            if isinstance(error, OSError):
                raise Unavailable(f"cannot attach to {root}: {error}; choose another root") from error
            raise
        finally:
            for tree in trees:
                os.close(tree)
    return attached


def detach(paths: Sequence[str]) -> None:
    """Take off engramfs mounts, the last attached first, lazily. Passes over what is gone or not ours."""
    for path in reversed(paths):
        mount = top_mount(read_mounts(), path)
        if mount is None or not mount.is_ours:
            continue
        try:
            unmount(path)
        except OSError as error:
            # Beneath a dead mount nothing can be reached; taking that one off takes this one with it.
            if error.errno != errno.ENOTCONN:
                raise


def _find_hub(hub: str, daemon_pid: int) -> Mount:
    try:
        mount = top_mount(read_mounts(daemon_pid), hub)
    except FileNotFoundError as error:
        raise NoDaemon(f"no process {daemon_pid}: the daemon is gone; start it with engramfs up") from error
    if mount is None or not mount.is_ours:
        raise NoDaemon(f"nothing of engramfs is mounted at {hub}; start the daemon with engramfs up")
    return mount


def _in_namespace_of(pid: int, work: Callable[[], None]) -> None:
    """Run `work` in the mount namespace of `pid`: here, or in a thread that moves there alone."""
    if os.stat(f"/proc/{pid}/ns/mnt").st_ino == os.stat("/proc/self/ns/mnt").st_ino:
        work()
        return
    failures: list[BaseException] = []

    def moved() -> None:
        try:
            namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
            try:
                syscalls.unshare(syscalls.CLONE_FS)  # a thread that shares its root cannot change it
                syscalls.setns(namespace, syscalls.CLONE_NEWNS)
            finally:
                os.close(namespace)
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=moved, name="engramfs-copy-mounts")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def _copy_all(hub: str, mounts: Sequence[MountPlan], trees: list[int]) -> None:
    top = os.open(hub, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        trees.extend(_copy(top, plan) for plan in mounts)  # those before a failure are kept, to be closed
    finally:
        os.close(top)


def _copy(hub: int, plan: MountPlan) -> int:
    """A detached, private copy of one place in the hub, with its flags set."""
    flags = syscalls.MOUNT_ATTR_NOSUID | syscalls.MOUNT_ATTR_NODEV
    if plan.read_only:
        flags |= syscalls.MOUNT_ATTR_RDONLY
    try:
        source = syscalls.openat2(hub, plan.source, os.O_PATH, _BENEATH_HUB)
        try:
            tree = syscalls.open_tree(source, "")
        finally:
            os.close(source)
    except OSError as error:
        raise _why_no_copy(plan, error) from error
    try:
        syscalls.mount_setattr(tree, flags, propagation=syscalls.MS_PRIVATE)
    except BaseException:
        os.close(tree)
        raise
    return tree


def _why_no_copy(plan: MountPlan, error: OSError) -> EngramError:
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR | errno.ELOOP | errno.EXDEV:
            return NotFound(f"the daemon serves no {plan.source}, which belongs at {plan.target}")
        case errno.ENOTCONN:
            return NoDaemon("the daemon's mount is dead; start it again with engramfs up")
        case errno.ENOSYS:
            return Unavailable("attaching needs Linux 5.12 or later (open_tree, mount_setattr, openat2)")
        case errno.EPERM | errno.EACCES:
            return Unavailable(f"cannot attach {plan.target}: not permitted; run as root (CAP_SYS_ADMIN)")
    return Unavailable(f"cannot attach {plan.target}: {error.strerror}")


def _place(directory: RootDirectory, plan: MountPlan, tree: int, connection: Mount) -> str:
    """Put one copy at its target; returns where that is in the caller's namespace."""
    shown = directory.shown(plan.target)
    as_directory = is_directory(tree)
    target = directory.mount_point(plan.target, directory=as_directory)
    try:
        point = os.readlink(f"/proc/self/fd/{target}")
        present = top_mount(read_mounts(), point)
        if present is None or not present.is_ours or present.id != mount_id(target):
            require_empty(target, shown, directory=as_directory)
            _move(tree, target, shown)
            return point
        if present.device != connection.device and liveness(point) is not Liveness.DEAD:
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
