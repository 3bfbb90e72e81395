"""What the kernel can do."""

import os
import re
from collections.abc import Iterator

from engramfs.daemon.doctor.finding import Finding, note, ok
from engramfs.daemon.doctor.installation import Installation

_RESEND = (6, 9)  # FUSE_NOTIFY_RESEND
_BENEATH = (6, 5)  # MOVE_MOUNT_BENEATH


def check_takeover(_installation: Installation) -> Iterator[Finding]:
    if _version() >= _RESEND:
        yield ok(f"Linux {os.uname().release}: a worker that dies is replaced, and no call is lost")
    else:
        yield note(
            f"Linux {os.uname().release} cannot repeat the calls that a dead worker had taken",
            "when a worker dies, those calls fail with ENOTCONN, and the mounts are made anew",
            "run a kernel of 6.9 or later",
        )


def check_mounting_beneath(_installation: Installation) -> Iterator[Finding]:
    if _version() >= _BENEATH:
        yield ok("one actor's memory takes the place of another's at once")
    else:
        yield note(
            f"Linux {os.uname().release} cannot mount beneath a mount",
            "while a session is switched to another actor, its memory is absent for a moment",
            "run a kernel of 6.5 or later",
        )


def _version() -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return (int(found[1]), int(found[2])) if found else (0, 0)
