"""A program that saves files, and says of each what it was promised.

    python writer.py DIRECTORY REPORT           until SIGTERM or the first error
    python writer.py DIRECTORY REPORT STEPS     so many steps, whatever fails, reading back after each

Some files are synced, some are only closed. REPORT gets a JSON array a line: [event, path, digest], where
event is "try" (before the first call that may make it so), "closed", "moved" (a rename or a removal),
"synced" or "read", and digest is the SHA-256 of the content that the path has then, or null when the name
is gone. ["failed", error, null] stands for a call that failed. Standard library only.
"""

import contextlib
import hashlib
import json
import os
import random
import signal
import sys
from types import FrameType

LIMIT = 24 << 20  # bytes to write at most
SIZES = (10, 4_000, 70_000)  # within a record of the journal, and beyond


class Writer:
    def __init__(self, directory: str, report: str) -> None:
        self._directory = directory
        self._report = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._log = b""
        self._last = ""
        self._wanted: bytes | None = None  # what `_last`, the path of the present step, is to have
        self.written = 0
        with contextlib.suppress(OSError):  # this call may be the one that is to fail
            os.mkdir(directory)
        os.makedirs(directory, exist_ok=True)

    def say(self, event: str, name: str, content: bytes | None) -> None:
        digest = hashlib.sha256(content).hexdigest() if content is not None else None
        os.write(self._report, json.dumps([event, name, digest]).encode() + b"\n")

    def _try(self, name: str, content: bytes | None) -> None:
        self._last, self._wanted = name, content
        self.say("try", name, content)

    def step(self) -> None:
        random.choice([self.save, self.save, self.save_atomically, self.append, self.remove])()

    def _new_content(self) -> bytes:
        return os.urandom(random.choice(SIZES))

    def _write(self, name: str, content: bytes, flags: int, *, sync: bool) -> None:
        descriptor = os.open(f"{self._directory}/{name}", flags | os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            self.written += len(content)
            while content:
                content = content[os.write(descriptor, content) :]
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _sync_directory(self) -> None:
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def save(self) -> None:
        name, content, sync = f"file{random.randrange(30)}", self._new_content(), random.random() < 0.5
        self._try(name, content)
        self._write(name, content, os.O_TRUNC, sync=sync)
        self.say("synced" if sync else "closed", name, content)

    def save_atomically(self) -> None:
        name, content, sync = f"file{random.randrange(30)}", self._new_content(), random.random() < 0.5
        self._try(name, content)
        self._write(f".tmp-{name}", content, os.O_TRUNC, sync=sync)
        os.rename(f"{self._directory}/.tmp-{name}", f"{self._directory}/{name}")
        self.say("moved", name, content)
        if sync:
            self._sync_directory()
            self.say("synced", name, content)

    def append(self) -> None:
        line, sync = b"%08d\n" % len(self._log), random.random() < 0.5
        self._log += line
        self._try("log", self._log)
        self._write("log", line, os.O_APPEND, sync=sync)
        self.say("synced" if sync else "closed", "log", self._log)

    def remove(self) -> None:
        name, sync = f"file{random.randrange(30)}", random.random() < 0.5
        self._try(name, None)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self._directory}/{name}")
        self.say("moved", name, None)
        if sync:
            self._sync_directory()
            self.say("synced", name, None)

    def fail(self, error: OSError) -> None:
        self.say("failed", error.strerror or str(error), None)

    def step_whatever_fails(self) -> None:
        """After a failed call the path may have what it had, what it was to have, or the part that fitted."""
        before = self._log
        try:
            self.step()
        except OSError as error:
            self.fail(error)
            self._see_what_a_failure_left(before)
        name = self._last
        with contextlib.suppress(OSError):
            self.say("read", name, self._read(name))

    def _see_what_a_failure_left(self, log: bytes) -> None:
        with contextlib.suppress(OSError):
            found = self._read(self._last)
            if self._last == "log":
                self._log = found if found is not None and found.startswith(log) else log
            if found is not None and self._wanted is not None and self._wanted.startswith(found):
                self.say("try", self._last, found)

    def _read(self, name: str) -> bytes | None:
        try:
            with open(f"{self._directory}/{name}", "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None


def main(directory: str, report: str, steps: str = "") -> None:
    stopping: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        stopping.append(number)

    signal.signal(signal.SIGTERM, stop)
    writer = Writer(directory, report)
    for _ in range(int(steps or 0)):
        writer.step_whatever_fails()
    try:
        while not steps and not stopping and writer.written < LIMIT:
            writer.step()
    except OSError as error:
        writer.fail(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
