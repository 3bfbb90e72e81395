"""What the system allows a daemon."""

import resource
from collections.abc import Iterator

from engramfs.daemon.doctor.finding import Finding, note, ok, problem
from engramfs.daemon.doctor.installation import Installation
from engramfs.mount.mountinfo import read_mounts

_ENOUGH = 4096  # descriptors
_FEW = 512
_MOST_MOUNTS = "/proc/sys/fs/mount-max"
_FULL = 0.8


def check_open_files(installation: Installation) -> Iterator[Finding]:
    """A worker has a descriptor for each file that is open for writing, whoever opened it."""
    whose = "the worker" if installation.worker is not None else "a daemon started from here"
    limit = _worker_limit(installation)
    do = "raise it: ulimit -n 65536, or LimitNOFILE=65536 in the unit; then engramfs restart"
    meaning = "each file that an agent has open for writing takes one; beyond that, opening fails with EMFILE"
    if limit < _FEW:
        yield problem(f"{whose} may have {limit} files open", meaning, do)
    elif limit < _ENOUGH:
        yield note(f"{whose} may have {limit} files open", meaning, do)
    else:
        yield ok(f"{whose} may have {limit:,} files open")


def _worker_limit(installation: Installation) -> int:
    if installation.worker is None:
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return resource.prlimit(installation.worker, resource.RLIMIT_NOFILE)[0]


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
