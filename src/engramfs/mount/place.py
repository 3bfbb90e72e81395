"""Where a session is attached: a root directory of a mount namespace, perhaps for one process alone.

A process is named by its pid and the moment it started, since pids are given out again.
"""

import os
from dataclasses import dataclass

from engramfs.errors import NotFound, Unavailable


@dataclass(frozen=True)
class Place:
    """`root` is as seen from inside; `pid` is the process whose end is the sandbox's end, if there is one.

    `namespace` is the inode number of the mount namespace; 0 when it is not made yet.
    """

    root: str
    namespace: int
    pid: int | None = None
    started: int = 0  # clock ticks from the machine's start to that of the process

    def is_same(self, other: "Place") -> bool:
        """Whether both name one root directory."""
        return (self.root, self.namespace, self.pid) == (other.root, other.namespace, other.pid)


def here(root: str) -> Place:
    """The directory `root` in the mount namespace of this process."""
    return Place(os.path.realpath(root), namespace_of("self"))


def of_process(pid: int) -> Place:
    """The root directory of process `pid`. Raises `NotFound` and `Unavailable`."""
    try:
        root = os.readlink(f"/proc/{pid}/root")
        return Place(root, namespace_of(pid), pid, start_of(pid))
    except (FileNotFoundError, ProcessLookupError):
        raise NotFound(f"there is no process {pid}; give the pid of a running sandbox") from None
    except PermissionError as error:
        raise Unavailable(f"cannot look into process {pid}: {error.strerror}; run as root") from error


def namespace_of(pid: int | str) -> int:
    """The mount namespace of a process. Raises `OSError`."""
    return os.stat(f"/proc/{pid}/ns/mnt").st_ino


def start_of(pid: int) -> int:
    """When a process started. Raises `OSError`."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        after_name = file.read().rpartition(b")")[2].split()
    return int(after_name[19])


def lives(pid: int | None, started: int) -> bool:
    """Whether the process is there, and no zombie."""
    if pid is None:
        return False
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            after_name = file.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return int(after_name[19]) == started and after_name[0] not in (b"Z", b"X")
