"""Every session's mounts again, after the hub was mounted afresh.

    python -m engramfs.mount.reattach RUN

A process of its own, because it touches the mounted filesystem, which the keeper must not. It reads
`RUN/sessions/*.json` and attaches from `RUN/fs` in its own mount namespace, which is the keeper's. What fails
is said in one line for each session, and the others go on; the exit code is then 1.
"""

import os
import sys

import msgspec

from engramfs.errors import EngramError
from engramfs.mount.attach import attach_session
from engramfs.mount.copying import MountPlan
from engramfs.mount.place import Place, lives, namespace_of


class AttachedSession(msgspec.Struct, frozen=True):
    """What a session's file says about its mounts: the same in each of its places."""

    id: str
    places: tuple[Place, ...] = ()
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
    """Attach every session in the root directories that it had here; a line for each that failed."""
    sessions, failures = read_sessions(run)
    own = namespace_of("self")
    for session in sessions:
        for place in session.places:
            if place.namespace != own or not _is_there(place):
                continue
            try:
                attach_session(os.path.join(run, "fs"), os.getpid(), place.root, session.mounts)
            except (EngramError, OSError) as error:
                failures.append(f"session {session.id} is not attached: {error}")
    return failures


def _is_there(place: Place) -> bool:
    return place.pid is None or lives(place.pid, place.started)


def main() -> int:
    failures = reattach(os.path.realpath(sys.argv[1]))
    for line in failures:
        print(f"engramfs: {line}", file=sys.stderr)  # noqa: T201
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
