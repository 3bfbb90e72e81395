"""What the system allows a daemon."""

import os
import resource
from collections.abc import Iterator

from engramfs.daemon.doctor.finding import Finding, note, ok, problem
from engramfs.daemon.doctor.installation import Installation
from engramfs.model.quantities import format_size
from engramfs.mount.mountinfo import read_mounts
from engramfs.storage.lmdb_engine import MAP_SIZE, SLACK
from engramfs.storage.process_limits import LIFT_ADDRESS_SPACE, LIFT_FILE_SIZE, limit_of

_ENOUGH = 4096  # descriptors
_FEW = 512
_BESIDE_MAP = 2 << 30  # bytes of address space for everything but the log
_MOST_MOUNTS = "/proc/sys/fs/mount-max"
_FULL = 0.8


def check_open_files(installation: Installation) -> Iterator[Finding]:
    """A worker has a descriptor for each file that is open for writing, whoever opened it."""
    limit = _limit(installation, resource.RLIMIT_NOFILE)
    do = _do(installation, "raise it", "ulimit -n 65536, or LimitNOFILE=65536 in the unit")
    meaning = "each file that an agent has open for writing takes one; beyond that, opening fails with EMFILE"
    if limit is None:
        yield ok(f"{_whose(installation)} may have any number of files open")
    elif limit < _FEW:
        yield problem(f"{_whose(installation)} may have {limit} files open", meaning, do)
    elif limit < _ENOUGH:
        yield note(f"{_whose(installation)} may have {limit} files open", meaning, do)
    else:
        yield ok(f"{_whose(installation)} may have {limit:,} files open")


def check_file_size(installation: Installation) -> Iterator[Finding]:
    """The log and the journal grow."""
    limit = _limit(installation, resource.RLIMIT_FSIZE)
    if limit is None:
        yield ok(f"{_whose(installation)} may write files of any size")
        return
    path = os.path.join(installation.locations.state, "log", "data.mdb")
    needed = (os.path.getsize(path) if installation.has_state else 0) + SLACK
    yield (problem if limit < max(needed, int(installation.config.journal.max_bytes)) else note)(
        f"{_whose(installation)} may write files of {format_size(limit)} at most (RLIMIT_FSIZE)",
        "when the log or the journal is as large, writes fail with ENOSPC, and no daemon starts",
        _do(installation, "lift it", LIFT_FILE_SIZE),
    )


def check_address_space(installation: Installation) -> Iterator[Finding]:
    """The log is mapped into memory whole, with room to grow."""
    limit = _limit(installation, resource.RLIMIT_AS)
    if limit is None:
        yield ok(f"{_whose(installation)} may map files of any size")
        return
    yield (problem if limit < MAP_SIZE + _BESIDE_MAP else note)(
        f"{_whose(installation)} has {format_size(limit)} of address space (RLIMIT_AS)",
        f"the log is mapped with {format_size(MAP_SIZE)} of room at first; without, nothing can open it",
        _do(installation, "lift it", LIFT_ADDRESS_SPACE),
    )


def _whose(installation: Installation) -> str:
    return "the worker" if installation.worker is not None else "a daemon started from here"


def _do(installation: Installation, verb: str, how: str) -> str:
    """A worker has the limits of its keeper, so a restart changes none."""
    then = "; then engramfs down and engramfs up" if installation.worker is not None else ""
    return f"{verb}: {how}{then}"


def _limit(installation: Installation, which: int) -> int | None:
    return limit_of(which, installation.worker or 0)


def check_mounts(_installation: Installation) -> Iterator[Finding]:
    with open(_MOST_MOUNTS) as file:
        most = int(file.read())
    count = len(read_mounts())
    if count > most * _FULL:
        yield problem(
            f"{count:,} of {most:,} mounts are in use here",
            "a session has about eight; beyond the limit, attaching fails with ENOSPC",
            "close sessions (engramfs session list), or raise the sysctl fs.mount-max",
        )
    else:
        yield ok(f"{count:,} of {most:,} mounts are in use")
