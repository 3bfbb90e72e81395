"""The FUSE device, and what mounting without root needs."""

import os
import re
import shutil
import stat
from collections.abc import Iterator

from engramfs.daemon.doctor.finding import Finding, note, ok, problem
from engramfs.daemon.doctor.installation import Installation
from engramfs.errors import Unavailable
from engramfs.mount.hub import DEVICE, open_fuse

FUSE_CONF = "/etc/fuse.conf"
_ALLOWED = re.compile(r"^\s*user_allow_other\s*(#.*)?$", re.MULTILINE)


def check_device(_installation: Installation) -> Iterator[Finding]:
    try:
        os.close(open_fuse())
    except Unavailable as error:
        found, _, do = error.message.partition("; ")
        yield problem(found, "nothing can be mounted; log, show, import and the like work", do)
    else:
        yield ok(f"{DEVICE} can be opened")


def check_fusermount(installation: Installation) -> Iterator[Finding]:
    """Root mounts by itself."""
    if installation.uid == 0:
        return
    program = shutil.which("fusermount3")
    if program is None:
        yield problem(
            "fusermount3 is not installed",
            "without root, engramfs mount DIR cannot mount",
            "as root: apt-get install fuse3",
        )
    elif not os.stat(program).st_mode & stat.S_ISUID:
        yield problem(
            f"{program} is not setuid root",
            "it cannot mount for you, so neither can engramfs mount DIR",
            f"as root: chmod u+s {program}",
        )
    else:
        yield ok(f"{program} mounts for you")


def check_other_users(installation: Installation) -> Iterator[Finding]:
    """What root mounts is for everybody whom the run directory lets in."""
    if installation.uid == 0:
        return
    try:
        with open(FUSE_CONF) as file:
            is_allowed = _ALLOWED.search(file.read()) is not None
    except FileNotFoundError:
        is_allowed = False
    if is_allowed:
        yield ok(f"{FUSE_CONF} lets you share mounts with other users")
    else:
        yield note(
            f"{FUSE_CONF} does not say user_allow_other",
            "what you mount is for you alone: sandboxes that run as another user do not reach it",
            f"run the daemon as root, or, as root, add the line user_allow_other to {FUSE_CONF}",
        )
