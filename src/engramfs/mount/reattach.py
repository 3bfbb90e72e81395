"""Every session's mounts again, after the hub was mounted afresh.

    python -m engramfs.mount.reattach RUN

A process of its own, because it touches the mounted filesystem, which the keeper must not. It reads
`RUN/sessions/*.json` and attaches from `RUN/fs` in its own mount namespace. What fails is said in one
line for each session, and the others go on; the exit code is then 1.
"""

import os
import sys

import msgspec

from engramfs.errors import EngramError
from engramfs.mount.attach import MountPlan, attach_session


class AttachedSession(msgspec.Struct, frozen=True):
    """What a session's file says about its mounts. A session that is attached nowhere has no root."""

    id: str
    root: str | None = None
    mounts: tuple[MountPlan, ...] = ()


def read_sessions(run: str) -> tuple[list[AttachedSession], list[str]]:
    """The sessions in `run`, and a line for each file that cannot be read."""
    sessions: list[AttachedSession] = []
    failures: list[str] = []
    folder = os.path.join(run, "sessions")
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".json") or name.startswith("."):
            continue
        path = os.path.join(folder, name)
        try:
            with open(path, "rb") as file:
                sessions.append(msgspec.json.decode(file.read(), type=AttachedSession))
        except (OSError, msgspec.MsgspecError) as error:
            failures.append(f"{path}: {error}")
    return sessions, failures


def reattach(run: str) -> list[str]:
    """Attach every session that has a root; a line for each one that failed."""
    sessions, failures = read_sessions(run)
    for session in sessions:
        if session.root is None or not session.mounts:
            continue
        try:
            attach_session(os.path.join(run, "fs"), os.getpid(), session.root, session.mounts)
        except (EngramError, OSError) as error:
            failures.append(f"session {session.id} is not attached: {error}")
    return failures


def main() -> int:
    failures = reattach(os.path.realpath(sys.argv[1]))
    for line in failures:
        print(f"engramfs: {line}", file=sys.stderr)  # noqa: T201
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
