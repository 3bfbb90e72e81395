"""Mounting without root: fusermount3, which is setuid, mounts and hands the descriptor back.

It sends the `/dev/fuse` descriptor over the unix socket that `_FUSE_COMMFD` names (SCM_RIGHTS).
"""

import os
import shutil
import socket
import subprocess

from engramfs.errors import Busy, Unavailable
from engramfs.mount.liveness import Liveness, liveness
from engramfs.mount.mountinfo import read_mounts, top_mount

_LIMIT = 10.0  # seconds that fusermount3 may take
_OPTIONS = "fsname=engramfs,subtype=engramfs,nosuid,nodev"


def mount_unprivileged(point: str) -> int:
    """Mount at `point`, for the calling user only; returns the `/dev/fuse` descriptor.

    A stale mount of a dead process there is replaced. Raises `Unavailable` when fusermount3 is missing
    or refuses (its own words are in the message), `Busy` when a living engramfs is mounted there.
    """
    program = _fusermount()
    _clear_stale(point)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        environment = {**os.environ, "_FUSE_COMMFD": str(theirs.fileno())}
        _run([program, "-o", _OPTIONS, "--", point], point, environment, theirs.fileno())
        theirs.close()
        ours.settimeout(_LIMIT)
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    if not descriptors:
        raise Unavailable(
            f"{program} mounted {point} but sent no descriptor; is another fusermount3 in PATH?"
        )
    os.set_inheritable(descriptors[0], False)
    return descriptors[0]


def unmount_unprivileged(point: str) -> None:
    """Take off the mount at `point`, lazily. Passes over a place with no mount of engramfs."""
    mounted = top_mount(read_mounts(), point)
    if mounted is not None and mounted.is_ours:
        _run([_fusermount(), "-u", "-z", "--", point], point, dict(os.environ))


def _clear_stale(point: str) -> None:
    while (mounted := top_mount(read_mounts(), point)) is not None and mounted.is_ours:
        if liveness(point) is not Liveness.DEAD:
            raise Busy(f"engramfs is mounted at {point} already; unmount it first (fusermount3 -u {point})")
        unmount_unprivileged(point)


def _fusermount() -> str:
    program = shutil.which("fusermount3")
    if program is None:
        raise Unavailable("fusermount3 is missing; install the package fuse3, or run as root with a daemon")
    return program


def _run(arguments: list[str], point: str, environment: dict[str, str], *descriptors: int) -> None:
    try:
        done = subprocess.run(
            arguments,
            env=environment,
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"fusermount3 did not end within {_LIMIT:.0f} s for {point}; see dmesg") from error
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        cure = "; chmod 666 /dev/fuse, as root" if "failed to open /dev/fuse" in said else ""
        raise Unavailable(f"cannot mount or unmount {point}: {said}{cure}")
