"""What is mounted where: /proc/<pid>/mountinfo as frozen values.

Reading it touches no mounted filesystem, so it never hangs, whoever is dead behind a mount. The
keeper imports this, and stays small: named tuples, not msgspec.
"""

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

FUSE_TYPE = "fuse.engramfs"

_OCTAL = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """One line of mountinfo. `major` and `minor` number the filesystem: all its bind mounts share them."""

    id: int
    parent: int
    major: int
    minor: int
    root: str
    point: str
    options: frozenset[str]
    kind: str
    source: str
    super_options: frozenset[str] = frozenset()  # of the filesystem, for all its mounts

    @property
    def is_ours(self) -> bool:
        """Whether an engramfs worker serves it, or did before it died."""
        return self.kind == FUSE_TYPE

    @property
    def device(self) -> tuple[int, int]:
        return self.major, self.minor


def parse(line: str) -> Mount:
    """One line of mountinfo (see proc(5)). Raises `ValueError` for anything else."""
    fields = line.split(" ")
    separator = fields.index("-", 6)
    major, minor = fields[2].split(":")
    return Mount(
        id=int(fields[0]),
        parent=int(fields[1]),
        major=int(major),
        minor=int(minor),
        root=_unescape(fields[3]),
        point=_unescape(fields[4]),
        options=frozenset(fields[5].split(",")),
        kind=fields[separator + 1],
        source=_unescape(fields[separator + 2]),
        super_options=frozenset(fields[separator + 3].split(",")),
    )


def _unescape(text: str) -> str:
    """Undo the kernel's octal escapes of space, tab, newline and backslash."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def read_mounts(pid: int | None = None) -> list[Mount]:
    """The mounts that process `pid` sees (this process by default)."""
    return _read(os.open(f"/proc/{'self' if pid is None else pid}/mountinfo", os.O_RDONLY | os.O_CLOEXEC))


def _read(descriptor: int) -> list[Mount]:
    with open(descriptor, encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        return [parse(line.rstrip("\n")) for line in lines]


class Proc:
    """What procfs says of this process, also once it has left the mount namespace that has `/proc`."""

    def __init__(self) -> None:
        self._directory = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def mounts(self) -> list[Mount]:
        """The mounts that this process sees now; points are relative to its root."""
        return _read(os.open("self/mountinfo", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._directory))

    def path_of(self, descriptor: int) -> str:
        """Where an open descriptor leads to, relative to the root of this process."""
        return os.readlink(f"self/fd/{descriptor}", dir_fd=self._directory)

    def mount_id(self, descriptor: int) -> int:
        """The id of the mount that an open descriptor is on."""
        info = os.open(f"self/fdinfo/{descriptor}", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._directory)
        with open(info, encoding="ascii") as lines:
            for line in lines:
                if line.startswith("mnt_id:"):
                    return int(line.split()[1])
        raise OSError(f"fdinfo of descriptor {descriptor} names no mount")

    def close(self) -> None:
        os.close(self._directory)


def top_mount(mounts: Iterable[Mount], point: str) -> Mount | None:
    """What a process that opens `point` meets: of the mounts stacked there, the uppermost."""
    stacked = [mount for mount in mounts if mount.point == point]
    covered = {mount.parent for mount in stacked}
    return next((mount for mount in stacked if mount.id not in covered), None)
