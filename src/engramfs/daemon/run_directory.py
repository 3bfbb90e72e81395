"""The run directory: what a daemon keeps while it runs, and which keeper holds it.

    <run>/fs            the hub, a mount point
    <run>/control       the control socket
    <run>/sessions/     one JSON file for each session
    <run>/keeper.lock   held by the one keeper; holds its pid
    <run>/attaching     there while the keeper attaches the sessions of an earlier mount
    <run>/failures      what went wrong lately, for the next worker to say as well
    <run>/unserved      why no worker serves, there while that is so

It is 0700: nobody else reaches the hub, whatever the modes inside.
"""

import contextlib
import fcntl
import os

from engramfs.errors import Busy, Refused, Unavailable

ATTACHING = "attaching"
_UNSERVED = "unserved"


class RunDirectory:
    """A run directory, created when missing and held until `close`.

    Raises `Busy` naming the pid of the keeper that holds it, `Refused` when it is someone else's,
    `Unavailable` when it cannot be made. `path` is free of symbolic links.
    """

    def __init__(self, path: str) -> None:
        try:
            os.makedirs(path, mode=0o700, exist_ok=True)
            self.path = os.path.realpath(path)
            _make_private(self.path)
            for name in ("fs", "sessions"):
                _make(os.path.join(self.path, name))
            self._lock = _lock(self.path)
        except OSError as error:
            do = "choose another place with --run"
            raise Unavailable(f"cannot use {error.filename or path}: {error.strerror}; {do}") from error

    @property
    def hub(self) -> str:
        return os.path.join(self.path, "fs")

    @property
    def control(self) -> str:
        return os.path.join(self.path, "control")

    def has_sessions(self) -> bool:
        return any(name.endswith(".json") for name in os.listdir(os.path.join(self.path, "sessions")))

    def clear_sessions(self) -> None:
        """Drop the sessions of an earlier mount, which are not to come back."""
        for name in os.listdir(os.path.join(self.path, "sessions")):
            os.unlink(os.path.join(self.path, "sessions", name))

    def is_attaching(self) -> bool:
        """Whether the sessions of an earlier mount are still to be attached."""
        return os.path.exists(os.path.join(self.path, ATTACHING))

    def set_attaching(self, is_so: bool) -> None:
        """Tell `up` to wait for the sessions of an earlier mount, or not to."""
        path = os.path.join(self.path, ATTACHING)
        if is_so:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def say_why_nobody_serves(self, why: str) -> None:
        """Tell `status`; empty when somebody does. Where it cannot be written, the log says it alone."""
        path = os.path.join(self.path, _UNSERVED)
        with contextlib.suppress(OSError):
            if not why:
                os.unlink(path)
                return
            with open(f"{path}.new", "w", encoding="utf-8", errors="replace") as file:
                file.write(why)
            os.rename(f"{path}.new", path)  # nobody reads half of it

    def close(self) -> None:
        self.set_attaching(False)
        self.say_why_nobody_serves("")
        os.ftruncate(self._lock, 0)
        os.close(self._lock)


def why_nobody_serves(run: str) -> str:
    """What a keeper waits for before it starts the next worker; empty while one serves, or none is kept."""
    try:
        with open(os.path.join(run, _UNSERVED), encoding="utf-8", errors="replace") as file:
            return file.read() if keeper_of(run) is not None else ""
    except OSError:
        return ""


def keeper_of(run: str) -> int | None:
    """The pid of the keeper that holds the run directory `run`, or None."""
    try:
        descriptor = os.open(os.path.join(run, "keeper.lock"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.pread(descriptor, 20, 0) or b"0") or None
    finally:
        os.close(descriptor)
    return None


def _make_private(path: str) -> None:
    found = os.stat(path)
    if found.st_uid != os.geteuid():
        raise Refused(f"{path} belongs to uid {found.st_uid}; choose another place with --run")
    if found.st_mode & 0o077:
        os.chmod(path, 0o700)


def _make(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        # Not looked at: the hub may still carry the mount of a dead daemon.
        return


def _lock(path: str) -> int:
    descriptor = os.open(os.path.join(path, "keeper.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise Busy(f"a daemon runs already in {path} (pid {pid}); engramfs down stops it") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor
