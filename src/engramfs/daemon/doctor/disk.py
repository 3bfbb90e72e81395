"""The disk under the state directory, and what it can promise."""

import errno
import os
import statistics
import tempfile
import time
from collections.abc import Iterator

from engramfs.daemon.doctor.finding import Finding, note, ok, problem
from engramfs.daemon.doctor.installation import Installation
from engramfs.model.quantities import format_size
from engramfs.mount.mountinfo import Mount, read_mounts

_MIB = 1 << 20
_LOW = 0.05  # of the disk
_FEW_INODES = 1000  # each open, dirty file takes one
_ROUNDS = 7
_TOO_QUICK = 20e-6  # seconds; the fastest disks with their caches protected take longer
_SLOW = 0.05  # seconds

_IN_MEMORY = {"tmpfs", "ramfs"}
_REMOTE = {"nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "glusterfs", "lustre", "virtiofs"}
_UNSAFE = {"volatile", "fsync=volatile", "nobarrier", "barrier=0", "nologreplay"}


def _existing(path: str) -> str:
    """`path`, or the nearest directory above it that is there."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def mount_of(path: str) -> Mount:
    """The mount that `path`, an existing directory, is on."""
    path, device = os.path.realpath(path), os.stat(path).st_dev
    above = [
        mount
        for mount in read_mounts()
        if mount.point == "/" or path == mount.point or path.startswith(f"{mount.point}/")
    ]
    exact = [mount for mount in above if mount.device == (os.major(device), os.minor(device))]
    return max(exact or above, key=lambda mount: (len(mount.point), mount.id))


def check_filesystem(installation: Installation) -> Iterator[Finding]:
    state = installation.locations.state
    mount = mount_of(_existing(state))
    where = f"{state} is on {mount.kind} ({mount.point})"
    unsafe = sorted(_UNSAFE & (mount.options | mount.super_options))
    elsewhere = "choose another place with --state, or mount a disk there"
    if "ro" in mount.options | mount.super_options:
        yield problem(f"{where}, read-only", "no store can be written", f"remount it, or {elsewhere}")
    elif mount.kind in _REMOTE or mount.kind.startswith("fuse"):
        yield problem(
            where,
            "the log is mapped into memory and locked, which is only safe on a disk of this machine",
            elsewhere,
        )
    elif unsafe:
        yield problem(
            f"{where} with {', '.join(unsafe)}",
            "fsync does not reach the disk, so a loss of power may damage every store",
            f"mount it without, or {elsewhere}",
        )
    elif mount.kind in _IN_MEMORY:
        yield note(where, "it is in memory: every store is gone after a restart of the machine", elsewhere)
    elif mount.kind == "overlay":
        yield note(
            where,
            "it survives what it should, but goes with the container that it is a layer of",
            "mount a volume there",
        )
    else:
        yield ok(where)


def check_space(installation: Installation) -> Iterator[Finding]:
    """The journal may grow up to its allowance, and every sealed version needs room in the log."""
    place = _existing(installation.locations.state)
    found = os.statvfs(place)
    free, size = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    needed = int(installation.config.journal.max_bytes)
    room = f"{format_size(free)} of {format_size(size)} are free under {place}"
    do = "free some, or move the state to a larger disk (engramfs backup, then --state)"
    if free < needed:
        yield problem(
            room,
            f"writes fail with ENOSPC when it is full; the journal alone may take {format_size(needed)}",
            do,
        )
    elif free < size * _LOW:
        yield note(room, "when it is full, writes fail with ENOSPC", do)
    else:
        yield ok(room)
    if found.f_files and found.f_favail < _FEW_INODES:
        yield problem(
            f"{found.f_favail:,} inodes are free under {place}",
            "each file that is open for writing takes one; without, opening fails with ENOSPC",
            "remove small files there, or use a filesystem with more inodes",
        )


def check_sync(installation: Installation) -> Iterator[Finding]:
    if "eatmydata" in os.environ.get("LD_PRELOAD", ""):
        yield problem(
            "LD_PRELOAD has libeatmydata",
            "fsync does nothing, so a loss of power may damage every store",
            "unset LD_PRELOAD where the daemon is started",
        )
        return
    state = installation.locations.state
    if not os.path.isdir(state) or mount_of(state).kind in _IN_MEMORY:
        return
    try:
        took = _time_of_sync(state)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            return  # which other checks say
        raise
    shown = f"fsync in {state} takes {took * 1000:.3g} ms"
    if took < _TOO_QUICK:
        yield note(
            shown,
            "no disk is so quick: something may answer before the disk has it, so a loss of power loses data",
            "look for a cache without battery: cache=unsafe of a virtual machine, a volatile layer",
        )
    elif took > _SLOW:
        yield note(
            shown, "each version waits for one, and so does every fsync of an agent", "use a faster disk"
        )
    else:
        yield ok(shown)


def _time_of_sync(directory: str) -> float:
    """Seconds, the median of a few, in a file without a name."""
    times = []
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(_ROUNDS):
            os.pwrite(file.fileno(), os.urandom(4096), 0)
            start = time.monotonic()
            os.fsync(file.fileno())
            times.append(time.monotonic() - start)
    return statistics.median(times)
