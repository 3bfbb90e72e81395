"""Mount points beneath a root directory: resolved as a process chrooted there would, made when missing.

A sandbox may have put symbolic links anywhere in its root directory. `openat2(RESOLVE_IN_ROOT)` keeps
every step inside; what exists and holds something is never covered.
"""

import os
import stat

from engramfs.errors import Conflict, NotFound, Unavailable, UsageError
from engramfs.mount import syscalls
from engramfs.mount.mountinfo import Proc

_INSIDE = syscalls.RESOLVE_IN_ROOT | syscalls.RESOLVE_NO_MAGICLINKS


class RootDirectory:
    """An open root directory. Paths given to its methods are absolute within it.

    With a descriptor, that one is the directory and is closed with it; `path` is then how people name it.

    `created` lists what `mount_point` made, as (directory descriptor, name, is directory), so that
    `remove_created` can take it back. Close it, or use `with`.
    """

    def __init__(self, path: str, descriptor: int | None = None) -> None:
        self._descriptor = _open_root(path) if descriptor is None else descriptor
        self.path = path
        self.proc = Proc()
        self._created: list[tuple[int, str, bool]] = []

    def open(self, path: str) -> int:
        """An O_PATH descriptor of what is at `path`, inside. Raises `OSError`."""
        return syscalls.openat2(self._descriptor, path.lstrip("/") or ".", os.O_PATH, _INSIDE)

    def mount_point(self, path: str, *, directory: bool) -> int:
        """The same as `open`; a missing directory (or file) and its parents are created.

        Raises `Conflict` naming what is in the way, `Unavailable` when nothing can be created here.
        """
        if not path.startswith("/") or ".." in path.split("/"):
            raise UsageError(f"{path!r} is no place to attach to; give an absolute path without '..'")
        try:
            return self.open(path)
        except FileNotFoundError:
            pass
        except NotADirectoryError as error:
            raise Conflict(f"{self.shown(path)}: a part of the path is a file; move it away") from error
        above, name = os.path.split(path.rstrip("/"))
        parent = self.mount_point(above, directory=True)
        try:
            self._create(parent, name, path, directory)
        except BaseException:
            os.close(parent)
            raise
        self._created.append((parent, name, directory))
        return self.open(path)

    def _create(self, parent: int, name: str, path: str, directory: bool) -> None:
        try:
            if directory:
                os.mkdir(name, 0o755, dir_fd=parent)
            else:
                flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
                os.close(os.open(name, flags, 0o644, dir_fd=parent))
        except FileExistsError as error:
            do = "remove it or choose another root"
            raise Conflict(f"{self.shown(path)} is a symbolic link to nothing; {do}") from error
        except OSError as error:
            do = "create it beforehand or choose another root"
            raise Unavailable(
                f"cannot create the mount point {self.shown(path)}: {error.strerror}; {do}"
            ) from error

    def shown(self, path: str) -> str:
        """`path` as a person outside names it."""
        return os.path.join(self.path, path.lstrip("/"))

    def remove_created(self) -> None:
        """Remove the mount points that were made, newest first; one in use by now is left."""
        for parent, name, directory in reversed(self._created):
            try:
                os.rmdir(name, dir_fd=parent) if directory else os.unlink(name, dir_fd=parent)
            except OSError:
                continue

    def close(self) -> None:
        for parent, _, _ in self._created:
            os.close(parent)
        os.close(self._descriptor)
        self.proc.close()

    def __enter__(self) -> "RootDirectory":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _open_root(path: str) -> int:
    try:
        return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise NotFound(f"{path}: {error.strerror}; give an existing directory as the root") from error


def is_directory(descriptor: int) -> bool:
    """Whether an open (O_PATH) descriptor is a directory."""
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def require_kind(descriptor: int, shown: str, *, directory: bool) -> None:
    """Raise `Conflict` for a file where a directory is to be mounted, or the other way round."""
    if is_directory(descriptor) is not directory:
        wanted = "a directory" if directory else "a file"
        raise Conflict(f"{shown} is not {wanted}; move it away or choose another root")


def require_empty(descriptor: int, shown: str, *, directory: bool) -> None:
    """Raise `Conflict` when the mount point holds something that a mount would hide.

    Directories in it that are empty are nothing: mount points made beforehand look like that.
    """
    if _holds_something(descriptor) if directory else os.fstat(descriptor).st_size:
        raise Conflict(f"{shown} exists and is not empty; move it away, or cover it with --over")


def _holds_something(directory: int, depth: int = 8) -> bool:
    listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        with os.scandir(listing) as entries:
            for entry in entries:
                if not depth or not entry.is_dir(follow_symlinks=False):
                    return True
                flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
                below = os.open(entry.name, flags, dir_fd=listing)
                try:
                    if _holds_something(below, depth - 1):
                        return True
                finally:
                    os.close(below)
        return False
    finally:
        os.close(listing)
