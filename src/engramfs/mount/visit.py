"""Work in the mount namespace of another process: done by a child, which enters it and stays there.

The child goes on step by step, each time it is told to, so that several places can be brought to the same
point before any of them goes further. It is a fork: for callers with one thread.
"""

import errno
import os
import pickle
import struct
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, NoReturn

from engramfs.errors import EngramError, NotFound, Unavailable
from engramfs.mount import syscalls
from engramfs.mount.target import RootDirectory

Steps = Callable[[RootDirectory], Generator[None, None, Any]]
_GO = b"g"
_LENGTH = struct.Struct("=I")


class Visit:
    """Runs `steps` in a root directory of another namespace: up to the next `yield` with each `step`.

    The directory is that of process `pid`, or `root` as that process names it.

    Raises `NotFound` when there is no such process, `Unavailable` when it may not be entered. Use `with`, or
    `close` it: a child that is told nothing more ends.
    """

    def __init__(self, pid: int, steps: Steps, root: str = "/") -> None:
        directory, namespace = _open_process(pid, root)
        owner = owner_of(pid)
        theirs_in, self._go = os.pipe()
        self._answers, theirs_out = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(self._go)
            os.close(self._answers)
            name = f"/proc/{pid}/root{root.rstrip('/')}"
            sandbox = _Sandbox(name, directory, namespace, owner)
            _serve(sandbox, steps, theirs_in, theirs_out)
        for descriptor in (directory, namespace, theirs_in, theirs_out):
            os.close(descriptor)

    def step(self) -> Any:
        """Let the child go on; the result of the steps if that was the last. Raises what they raise."""
        os.write(self._go, _GO)
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        answer = pickle.loads(self._read(length))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _read(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            part = os.read(self._answers, size - len(received))
            if not part:
                raise EngramError("a process that attaches mounts ended too early; see dmesg")
            received += part
        return received

    def close(self) -> None:
        if self._child:
            os.close(self._go)
            os.close(self._answers)
            os.waitpid(self._child, 0)
            self._child = 0

    def __enter__(self) -> "Visit":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def visit(pid: int, work: Callable[[RootDirectory], Any], root: str = "/") -> Any:
    """The result of `work` in the same directory. Raises what it raises."""

    def steps(directory: RootDirectory) -> Generator[None, None, Any]:
        yield from ()
        return work(directory)

    with Visit(pid, steps, root) as visit:
        return visit.step()


def _open_process(pid: int, root: str) -> tuple[int, int]:
    """Descriptors of a directory as a process names it, and of the mount namespace of that process."""
    try:
        top = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
            flags = os.O_PATH | os.O_DIRECTORY
            return syscalls.openat2(top, root, flags, syscalls.RESOLVE_IN_ROOT), namespace
        finally:
            os.close(top)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ESRCH):
            raise NotFound(f"there is no process {pid}, or no {root} in it") from error
        raise Unavailable(f"cannot enter process {pid}: {error.strerror}; run as root") from error


def owner_of(pid: int) -> tuple[int, int]:
    """Our names of uid and gid 0 in the user namespace of a process, or of the first that it knows."""
    return _first_id(pid, "uid"), _first_id(pid, "gid")


def _first_id(pid: int, what: str) -> int:
    try:
        with open(f"/proc/{pid}/{what}_map", encoding="ascii") as lines:
            ranges = sorted([int(number) for number in line.split()] for line in lines)
    except OSError:
        return 0
    return ranges[0][1] if ranges else 0


class _Sandbox(NamedTuple):
    """What the child enters: descriptors of a root directory and a mount namespace; who it is there."""

    name: str
    root: int
    namespace: int
    owner: tuple[int, int]


def _serve(sandbox: _Sandbox, steps: Steps, go: int, answers: int) -> NoReturn:
    try:
        with RootDirectory(sandbox.name, sandbox.root) as directory:  # opens /proc while it is there
            running: Generator[None, None, Any] | None = None
            while os.read(go, 1):
                try:
                    if running is None:
                        _enter(sandbox)
                        running = steps(directory)
                    next(running)
                    _answer(answers, None)
                except StopIteration as stop:
                    _answer(answers, stop.value)
                except Exception as error:
                    _answer(answers, error)
    finally:
        os._exit(0)


def _enter(sandbox: _Sandbox) -> None:
    """Move into the mount namespace. What is made there belongs to root of the sandbox."""
    try:
        syscalls.setns(sandbox.namespace, syscalls.CLONE_NEWNS)
    except OSError as error:
        raise Unavailable(
            f"cannot enter {sandbox.name}: {error.strerror}; run as root (CAP_SYS_ADMIN)"
        ) from error
    if sandbox.owner != (0, 0):
        syscalls.set_filesystem_ids(*sandbox.owner)


def _answer(descriptor: int, value: object) -> None:
    message = pickle.dumps(value)
    os.write(descriptor, _LENGTH.pack(len(message)) + message)
