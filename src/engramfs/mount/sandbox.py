"""A mount namespace of its own, in which nothing of engramfs is seen but one session.

    leave()     this process moves into a copy of its mount namespace
    hide(...)   the hub, the mounts of other sessions and the directories of the daemon go out of sight

What is hidden is out of the way of honest programs. A process with CAP_SYS_ADMIN can unmount what hides it.
Two capabilities that lead around mount namespaces are given up for every program that is executed later:
CAP_DAC_READ_SEARCH (open_by_handle_at(2) opens any inode of the filesystem that the kernel remembers, the hub
itself among them) and CAP_SYS_PTRACE (/proc/<pid>/root of the daemon).
"""

import contextlib
import os
from collections.abc import Collection

from engramfs.errors import Unavailable
from engramfs.mount import syscalls
from engramfs.mount.hub import unmount
from engramfs.mount.mountinfo import read_mounts


def leave() -> None:
    """Move this process into a private copy of its mount namespace. Raises `Unavailable`."""
    try:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        syscalls.mount("none", "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    except OSError as error:
        raise Unavailable(
            f"cannot make a mount namespace: {error.strerror}; run as root (CAP_SYS_ADMIN)"
        ) from error


def hide(kept: Collection[str], directories: Collection[str]) -> None:
    """Unmount everything of engramfs but the mounts at `kept`, and cover `directories`.

    The working directory is looked up again, since it may be in what has gone.
    """
    working = os.getcwd()
    for mount in reversed(read_mounts()):
        if mount.is_ours and mount.point not in kept:
            unmount(mount.point)
    for directory in directories:
        _cover(directory)
    try:
        os.chdir(working)
    except OSError:
        os.chdir("/")
    for capability in (syscalls.CAP_DAC_READ_SEARCH, syscalls.CAP_SYS_PTRACE):
        syscalls.drop_capability(capability)


def _cover(directory: str) -> None:
    flags = syscalls.MS_RDONLY | syscalls.MS_NOSUID | syscalls.MS_NODEV
    with contextlib.suppress(FileNotFoundError):
        syscalls.mount("engramfs-hidden", directory, "tmpfs", flags, "size=4k,mode=755")
