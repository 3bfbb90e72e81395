"""What is done in a directory, the same for every contender. Each returns seconds an operation.

No two contents are equal, so that nobody gains by noticing that they are.
"""

import contextlib
import itertools
import os
import select
import subprocess
import time
from collections.abc import Iterator

from tests.bench.rounds import each

SIZE = 4096  # bytes of a small file
LARGE = 64 << 20
FILES = 100  # that the small work goes round
GREP_DIRECTORIES, GREP_FILES = 20, 50
_PIECE = 1 << 20
_LINE = b"2026-01-01T00:00:00Z learned something that is worth a line of its own\n"
_PROSE = b"The quick brown fox jumps over the lazy dog, and nobody wonders why.\n" * 60
_serial = itertools.count()


def new_content() -> bytes:
    """4 KiB of text that was never written before."""
    return (b"%020d\n" % next(_serial) + _PROSE)[:SIZE]


def write(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


def populate(directory: str) -> None:
    """The files that are read: small ones, a tree for grep, and a large one."""
    os.mkdir(f"{directory}/small")
    for number in range(FILES):
        write(f"{directory}/small/{number:03}", new_content())
    os.mkdir(f"{directory}/tree")
    for above in range(GREP_DIRECTORIES):
        os.mkdir(f"{directory}/tree/{above:02}")
        for number in range(GREP_FILES):
            write(f"{directory}/tree/{above:02}/{number:02}.md", new_content())
    with open(f"{directory}/large", "wb") as file:
        for _ in range(LARGE // _PIECE):
            file.write(os.urandom(_PIECE))


class FileWork:
    """The work in one directory that was populated. Small files are named relative to a descriptor."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._turns = itertools.count()
        self._small = [f"{number:03}" for number in range(FILES)]
        self._buffer = bytearray(_PIECE)

    # Reading

    def open_read_close(self) -> float:
        with _opened(f"{self.directory}/small") as small:

            def once(number: int) -> None:
                descriptor = os.open(self._small[number % FILES], os.O_RDONLY, dir_fd=small)
                os.read(descriptor, SIZE)
                os.close(descriptor)

            return each(300, once)

    def grep(self) -> float:
        begun = time.perf_counter()
        process = subprocess.Popen(
            ["grep", "-r", "no such thing", f"{self.directory}/tree"], stdout=subprocess.DEVNULL
        )
        _await_end(process)
        seconds = time.perf_counter() - begun
        if process.returncode != 1:
            raise RuntimeError(f"grep ended with {process.returncode} in {self.directory}")
        return seconds

    def stat(self) -> float:
        with _opened(f"{self.directory}/small") as small:
            return each(5000, lambda number: os.stat(self._small[number % FILES], dir_fd=small))

    def look_up_missing(self) -> float:
        with _opened(f"{self.directory}/small") as small:

            def once(_: int) -> None:
                with contextlib.suppress(FileNotFoundError):
                    os.stat("missing", dir_fd=small)

            return each(5000, once)

    def read_large(self) -> float:
        with open(f"{self.directory}/large", "rb", buffering=0) as file:
            begun = time.perf_counter()
            count = 0
            while piece := file.readinto(self._buffer):
                count += piece
            seconds = time.perf_counter() - begun
        if count != LARGE:
            raise RuntimeError(f"{count} bytes were read instead of {LARGE}")
        return seconds

    # Writing. Each turn has a directory of its own.

    def create_write_close(self) -> float:
        with _opened(self._new_directory()) as new:

            def once(number: int) -> None:
                _create(f"{number}.md", new)

            return each(100, once)

    def append_line(self) -> float:
        path = self._new_directory()
        write(f"{path}/log.md", new_content())
        with _opened(path) as new:

            def once(_: int) -> None:
                descriptor = os.open("log.md", os.O_WRONLY | os.O_APPEND, dir_fd=new)
                os.write(descriptor, _LINE)
                os.close(descriptor)

            return each(100, once)

    def save_atomically(self) -> float:
        path = self._new_directory()
        write(f"{path}/notes.md", new_content())
        with _opened(path) as new:

            def once(_: int) -> None:
                _create("notes.md.tmp", new)
                os.rename("notes.md.tmp", "notes.md", src_dir_fd=new, dst_dir_fd=new)

            return each(100, once)

    def _new_directory(self) -> str:
        path = f"{self.directory}/new-{next(self._turns)}"
        os.mkdir(path)
        return path


def _create(name: str, directory: int) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=directory)
    os.write(descriptor, new_content())
    os.close(descriptor)


def _await_end(process: "subprocess.Popen[bytes]", limit: float = 60) -> None:
    """Wait for the moment of its end: `Popen.wait` with a limit sleeps in steps of up to 50 ms."""
    descriptor = os.pidfd_open(process.pid)
    try:
        if not select.select([descriptor], [], [], limit)[0]:
            process.kill()
        process.wait()
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[int]:
    """A descriptor of a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
