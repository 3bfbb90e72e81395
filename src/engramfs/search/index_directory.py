"""Where the index is, and whose turn it is to write it.

    <state>/search/lock          held by the process that writes the index
    <state>/search/current       the number of the generation that is read
    <state>/search/<number>/keywords/     the keyword index
    <state>/search/<number>/vectors       the vectors of its passages

A generation is made when there is none, when it is of another format or damaged, and when terms that are gone
must not stay in its files. It is made beside the one that is read, which is removed afterwards. Whoever still
reads that one goes on: the files are mapped.

Everything here is derived from the log, so whatever is doubtful is made anew.
"""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator

import msgspec

from engramfs.errors import StorageError
from engramfs.search.failures import IndexUnwritable
from engramfs.search.keyword_schema import FORMAT

_RETRY = 0.02  # seconds


class Current(msgspec.Struct, frozen=True):
    """The content of the file `current`."""

    format: int
    generation: int


class IndexDirectory:
    def __init__(self, state: str) -> None:
        self.path = os.path.join(state, "search")

    def current(self) -> int | None:
        """The generation that is read; None when there is none of this format."""
        try:
            with open(os.path.join(self.path, "current"), "rb") as file:
                found = msgspec.json.decode(file.read(), type=Current)
        except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
            return None
        except OSError as error:
            raise StorageError(f"{error.filename} cannot be read: {error.strerror}; is it yours?") from error
        return found.generation if found.format == FORMAT else None

    def keywords(self, generation: int) -> str:
        return os.path.join(self.path, str(generation), "keywords")

    def vectors(self, generation: int) -> str:
        return os.path.join(self.path, str(generation), "vectors")

    @contextlib.contextmanager
    def locked(self, patience: float) -> Iterator[bool]:
        """Whether the index may be written, having waited for at most `patience` seconds."""
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            descriptor = os.open(
                os.path.join(self.path, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise IndexUnwritable(f"cannot write {error.filename}: {error.strerror}; is it yours?") from error
        try:
            yield _acquire(descriptor, time.monotonic() + patience)
        finally:
            os.close(descriptor)

    def begin(self) -> int:
        """A number for a new generation, with an empty directory. Only for who holds the lock."""
        taken = [int(name) for name in os.listdir(self.path) if name.isdecimal()]
        generation = max([self.current() or 0, *taken]) + 1
        os.mkdir(os.path.join(self.path, str(generation)), 0o700)
        return generation

    def publish(self, generation: int) -> None:
        """Make `generation` the one that is read, and remove all others. Only for who holds the lock."""
        temporary = os.path.join(self.path, "current.new")
        with open(temporary, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(msgspec.json.encode(Current(FORMAT, generation)))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, os.path.join(self.path, "current"))
        self.remove_others(generation)

    def remove_others(self, generation: int) -> None:
        """Also what a process left behind that was killed. Only for who holds the lock."""
        for name in os.listdir(self.path):
            if name.isdecimal() and name != str(generation):
                shutil.rmtree(os.path.join(self.path, name))


def _acquire(descriptor: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_RETRY)
