"""Copies of places in the hub, taken in the daemon's mount namespace and attached nowhere yet.

All are taken before anything is changed. Needs root; blocks while the worker does.
"""

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from engramfs.errors import EngramError, NoDaemon, NotFound, Unavailable
from engramfs.mount import syscalls
from engramfs.mount.hub import said_of_hidden
from engramfs.mount.mountinfo import Mount, read_mounts, top_mount

_BENEATH_HUB = syscalls.RESOLVE_BENEATH | syscalls.RESOLVE_NO_SYMLINKS


@dataclass(frozen=True)
class MountPlan:
    """One bind mount: `source`, relative to the hub, at `target`, absolute within the root directory."""

    source: str
    target: str
    read_only: bool


@dataclass(frozen=True)
class Copied:
    """Copies of places in the hub that are attached nowhere yet, as descriptors, and the hub's mount."""

    mounts: Sequence[MountPlan]
    trees: list[int]
    connection: Mount


@contextlib.contextmanager
def copies(hub: str, daemon_pid: int, mounts: Sequence[MountPlan]) -> Iterator[Copied]:
    """A copy for each of `mounts`, open as long as the block runs. Raises
    `NoDaemon`, `NotFound` for what the daemon does not serve, `Unavailable` without privilege."""
    trees: list[int] = []
    connection = _find_hub(hub, daemon_pid)
    try:
        try:
            _in_namespace_of(daemon_pid, lambda: _copy_all(hub, mounts, trees))
        except OSError as error:
            raise Unavailable(f"cannot copy mounts of {hub}: {error}; run as root") from error
        yield Copied(mounts, trees, connection)
    finally:
        for tree in trees:
            os.close(tree)


def _find_hub(hub: str, daemon_pid: int) -> Mount:
    try:
        mount = top_mount(read_mounts(daemon_pid), hub)
    except FileNotFoundError as error:
        raise NoDaemon(f"no process {daemon_pid}: the daemon is gone; start it with engramfs up") from error
    if mount is None or not mount.is_ours:
        raise NoDaemon(said_of_hidden(hub, mount))
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
