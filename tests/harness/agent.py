"""Runs in a private mount namespace and does what it is asked: one call of a function after the other.

Requests and answers are pickles behind their length, on the descriptors 0 and 1. A request is the dotted name
of a function and its arguments; the answer is what it returned or raised. Functions of this module are
named without a module. Run as a script, by `inside`; imports nothing but the standard library.
"""

import contextlib
import ctypes
import hashlib
import importlib
import os
import pickle
import stat
import subprocess
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

Path = str | bytes


def read(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def write(path: Path, content: bytes, mode: str = "wb") -> None:
    """Open, write, close. `mode` is that of open()."""
    with open(path, mode, buffering=0) as file:
        view = memoryview(content)
        while view:
            view = view[file.write(view) :]


def names(path: Path) -> list[Any]:
    return sorted(os.listdir(path))


def tree(path: Path) -> dict[bytes, tuple[Any, ...]]:
    """Everything below a directory: path → (kind, permission bits, size, content or target, links)."""
    found: dict[bytes, tuple[Any, ...]] = {}
    top = os.fsencode(path)
    for directory, subdirectories, files in os.walk(top):
        for name in subdirectories + files:
            place = os.path.join(directory, name)
            shown = os.lstat(place)
            mode = stat.S_IMODE(shown.st_mode)
            relative = os.path.relpath(place, top)
            if stat.S_ISLNK(shown.st_mode):
                found[relative] = ("link", 0o777, shown.st_size, os.readlink(place), shown.st_nlink)
            elif stat.S_ISDIR(shown.st_mode):
                found[relative] = ("directory", mode, 0, b"", 0)
            else:
                found[relative] = ("file", mode, shown.st_size, read(place), shown.st_nlink)
    return found


def digests(path: Path) -> dict[bytes, str]:
    """path → SHA-256 of every file below a directory."""
    return {
        where: hashlib.sha256(entry[3]).hexdigest()
        for where, entry in tree(path).items()
        if entry[0] == "file"
    }


def write_files(directory: str, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        write(os.path.join(directory, name), content)


def make_files(directory: str, names: list[str]) -> None:
    """Empty files."""
    for name in names:
        os.mknod(os.path.join(directory, name))


Outcome = tuple[bool, Any]  # (True, result), or (False, errno)


def _outcome(function: Callable[..., Any], *arguments: object) -> Outcome:
    try:
        return True, function(*arguments)
    except OSError as error:
        return False, error.errno


def in_each(roots: list[bytes], name: str, *arguments: object) -> list[Outcome]:
    """Call a function once for each root; a path that begins with `@/` lies below the root."""

    def below(root: bytes, argument: object) -> object:
        is_path = isinstance(argument, bytes) and argument.startswith(b"@/")
        return root + argument[1:] if isinstance(argument, bytes) and is_path else argument

    function = _find(name)
    return [_outcome(function, *(below(root, argument) for argument in arguments)) for root in roots]


def on_each(descriptors: list[int], name: str, *arguments: object) -> list[Outcome]:
    """Call a function once for each descriptor."""
    return [_outcome(_find(name), descriptor, *arguments) for descriptor in descriptors]


def exchange(path: bytes, other: bytes) -> None:
    """renameat2(2) with RENAME_EXCHANGE."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, path, -100, other, 2):
        raise OSError(ctypes.get_errno(), "renameat2")


def content_of(descriptor: int) -> tuple[int, bytes]:
    """Inode number and content of what is open, be it for writing alone."""
    return os.fstat(descriptor).st_ino, read(f"/proc/self/fd/{descriptor}")


def run(
    command: list[str], timeout: float, user: int | None, cwd: str | None, environment: dict[str, str]
) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and stderr of a command; it and its children are killed after `timeout` seconds."""
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        user=user,
        group=user,
        extra_groups=[] if user is not None else None,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, 9)
        out, err = child.communicate()
        err += b"\n(killed: it took too long)"
    return child.returncode, out, err


_started: dict[int, subprocess.Popen[bytes]] = {}


def start(command: list[str], user: int | None, environment: dict[str, str], output: str) -> int:
    """Start a command in the background, its output in the file `output`; its pid."""
    with open(output, "wb") as file:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            user=user,
            group=user,
            extra_groups=[] if user is not None else None,
            env={**os.environ, **environment},
        )
    _started[child.pid] = child
    return child.pid


def ended(pid: int, timeout: float) -> int | None:
    """The exit code of what `start` started, or None when it has not ended after `timeout` seconds."""
    try:
        return _started[pid].wait(timeout)
    except subprocess.TimeoutExpired:
        return None


def _find(name: str) -> Callable[..., Any]:
    module, _, function = name.rpartition(".")
    names = vars(importlib.import_module(module)) if module else globals()
    found: Callable[..., Any] = names[function]
    return found


def _receive(stream: BinaryIO) -> Any:
    length = stream.read(8)
    if len(length) < 8:
        return None
    return pickle.loads(stream.read(int.from_bytes(length, "big")))


def main() -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a function prints is no answer
    while (request := _receive(requests)) is not None:
        name, arguments, keywords = request
        try:
            answer = (True, _find(name)(*arguments, **keywords))
        except Exception as error:
            answer = (False, error)
        payload = pickle.dumps(answer)
        answers.write(len(payload).to_bytes(8, "big") + payload)
        answers.flush()


if __name__ == "__main__":
    main()
