"""The limits of a process that look like a lack of disk or memory, told apart from it in messages.

RLIMIT_FSIZE   how large a file may become by its writes: EFBIG
RLIMIT_AS      how much address space it has, mapped files included: ENOMEM
"""

import errno
import resource

from engramfs.errors import Full
from engramfs.model.quantities import format_size

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
LIFT_FILE_SIZE = "ulimit -f unlimited, or LimitFSIZE=infinity in the unit"
LIFT_ADDRESS_SPACE = "ulimit -v unlimited, or LimitAS=infinity in the unit"


def limit_of(which: int, process: int = 0) -> int | None:
    """A limit of `process`, of our own by default, in bytes; None when there is none."""
    soft, _ = resource.prlimit(process, which)
    return None if soft == resource.RLIM_INFINITY else soft


def no_room(what: str, number: int | None, then: str) -> Full:
    """What to raise when `what` could not be written, by the errno; `then` says what comes after the cure."""
    limit = limit_of(resource.RLIMIT_FSIZE)
    if number == errno.EFBIG and limit is not None:
        most = f"this process may write files of {format_size(limit)} at most (RLIMIT_FSIZE)"
        return Full(f"no space left for {what}: {most}; lift it: {LIFT_FILE_SIZE}, then start engramfs again")
    return Full(f"no space left for {what}; free some{then}")


def no_address_space(what: str) -> str:
    """Why `what` could not be mapped into memory, and what to do."""
    limit = limit_of(resource.RLIMIT_AS)
    if limit is None:
        return f"no memory for {what}; free some, or see vm.overcommit_memory"
    most = f"this process has {format_size(limit)} of address space (RLIMIT_AS)"
    return f"no room in memory for {what}: {most}; lift it: {LIFT_ADDRESS_SPACE}"
