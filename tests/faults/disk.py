"""A disk whose power can be cut: a filesystem in a file, mounted in one mount namespace.

A cut is the shutdown that ext4 and xfs have for this purpose: from that moment nothing more reaches the
file, neither what is in the page cache nor what waits in the filesystem's own journal. A sync that is
under way at that moment may say yes to what is not there (ext4 and xfs both do, to any program), which no
power failure does; so only what was reported before a cut was promised.
"""

import fcntl
import os
import shutil
import struct

import pytest

from ..harness.inside import Inside

MIB = 1 << 20
_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN, XFS_IOC_GOINGDOWN
_NOTHING_MORE = 2  # not even the journal of the filesystem


class Disk:
    """A new filesystem of `kind` and `size` bytes in the file `image`, mounted at `point`."""

    def __init__(self, inside: Inside, image: str, point: str, kind: str = "ext4", size: int = 320 * MIB):
        if shutil.which(f"mkfs.{kind}") is None:
            pytest.skip(f"mkfs.{kind} is not installed")
        self._inside = inside
        self.image = image
        self.point = point
        force = "-F" if kind == "ext4" else "-f"
        inside.shell(f"truncate -s {size} {image}; mkfs.{kind} -q {force} {image}; mkdir {point}")
        self.mount()

    def mount(self) -> None:
        """What the filesystem's journal holds is replayed."""
        self._inside.shell(f"mount -o loop {self.image} {self.point}")

    @property
    def seen_from_outside(self) -> str:
        """Where processes of other mount namespaces find what is mounted."""
        return f"/proc/{self._inside.pid}/root{self.point}"

    def cut(self) -> None:
        descriptor = os.open(self.seen_from_outside, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _NOTHING_MORE))
        finally:
            os.close(descriptor)

    def unmount(self) -> None:
        self._inside.shell(f"umount {self.point}")

    def remount(self, option: str) -> None:
        self._inside.shell(f"mount -o remount,{option} {self.point}")


class RefusingDisk(Disk):
    """An ext4 that can refuse to write where it has not written before, with what a kernel makes of that.

    Its file is on a tmpfs and has holes where the filesystem is free; while the tmpfs is full these cannot
    be filled. The sync that meets this fails, the kernel forgets the pages, and the next sync succeeds.
    """

    def __init__(self, inside: Inside, directory: str, point: str) -> None:
        self._below = f"{directory}/below"
        inside.shell(f"mkdir {self._below}; mount -t tmpfs -o size=100m below {self._below}")
        super().__init__(inside, f"{self._below}/image", point, size=64 * MIB)
        inside.shell(f"fallocate -l {64 * MIB} {self.image}")

    def refuse(self) -> None:
        self._inside.shell(f"sync -f {self.point}; fstrim {self.point}")
        self._inside.run("dd", "if=/dev/zero", f"of={self._below}/ballast", "bs=64k")

    def accept(self) -> None:
        self._inside.shell(f"rm {self._below}/ballast")
