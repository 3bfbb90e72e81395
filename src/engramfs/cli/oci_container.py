"""A container as an OCI runtime describes it to a hook: the state on stdin, `config.json` beside it."""

import os
from typing import TypeVar

import msgspec

from engramfs.errors import NotFound, Refused, UsageError

_Read = TypeVar("_Read", bound=msgspec.Struct)


class _State(msgspec.Struct, frozen=True):
    """`pid` is left out, or 0, where there is no process."""

    id: str
    status: str
    bundle: str
    pid: int = 0
    annotations: dict[str, str] | None = None


class _User(msgspec.Struct, frozen=True):
    uid: int = 0
    gid: int = 0


class _Process(msgspec.Struct, frozen=True):
    user: _User = _User()


class _Root(msgspec.Struct, frozen=True):
    path: str = "rootfs"


class _Configuration(msgspec.Struct, frozen=True):
    root: _Root = _Root()
    process: _Process = _Process()
    annotations: dict[str, str] | None = None


class Container:
    """`annotations` are those of the state, and of the configuration beside them."""

    def __init__(self, state: _State, configuration: _Configuration) -> None:
        self.id = state.id
        self.stopped = state.status == "stopped"
        self.annotations = {**(configuration.annotations or {}), **(state.annotations or {})}
        self._pid = state.pid
        self._user = configuration.process.user
        self._rootfs = os.path.realpath(os.path.join(state.bundle, configuration.root.path))

    def first_process(self) -> int:
        """The first process of the container, by the pid that /proc here knows. Raises `NotFound`."""
        parent, its_own_name = _parent()
        pid = parent if self._pid in (0, its_own_name) else self._pid
        if not os.path.exists(f"/proc/{pid}"):
            raise NotFound(f"container {self.id} has no process {pid}; use the hook createRuntime")
        return pid

    def root_of(self, pid: int) -> str:
        """What is or will be the container's root directory, as its first process names it by now."""
        entered = os.path.samestat(os.stat(f"/proc/{pid}/root/"), os.stat(self._rootfs))
        return "/" if entered else self._rootfs

    def owner(self, pid: int) -> tuple[int, int]:
        """The uid and gid, here, of the user as whom the container runs. Raises `Refused`."""
        return _outside(pid, "uid", self._user.uid), _outside(pid, "gid", self._user.gid)


def read_container(state: bytes) -> Container:
    """The container whose state a runtime gave. Raises `UsageError`.

    Once it has stopped, its bundle may be gone.
    """
    found = _decode(state, _State, "the container state on stdin")
    path = os.path.join(found.bundle, "config.json")
    try:
        with open(path, "rb") as file:
            configuration = _decode(file.read(), _Configuration, path)
    except OSError as error:
        if found.status != "stopped":
            raise UsageError(f"cannot read {path}: {error.strerror}; is this an OCI hook?") from error
        configuration = _Configuration()
    return Container(found, configuration)


def _decode(text: bytes, kind: type[_Read], what: str) -> _Read:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{what} is not what an OCI runtime gives a hook: {error}") from error


def _parent() -> tuple[int, int]:
    """Our parent's pid as /proc here has it, and as the parent does: it may be in another namespace."""
    parent = int(_status("self", "PPid")[0])
    return parent, int(_status(parent, "NSpid")[-1])


def _status(pid: int | str, key: str) -> list[str]:
    with open(f"/proc/{pid}/status") as lines:
        return next(line.split()[1:] for line in lines if line.startswith(f"{key}:"))


def _outside(pid: int, what: str, identifier: int) -> int:
    """What is `identifier` in the user namespace of a process, by our name."""
    with open(f"/proc/{pid}/{what}_map") as lines:
        for line in lines:
            inside, outside, count = map(int, line.split())
            if inside <= identifier < inside + count:
                return outside + identifier - inside
    raise Refused(f"the user namespace of process {pid} does not know its own {what} {identifier}; map it")
