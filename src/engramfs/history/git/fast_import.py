"""The stream to `git fast-import`: commits, one after another, with the contents of their files in line.

Contents pass through in parts, and nothing is kept of them here. Until the stream is ended properly, no
branch moves: an export that is cut short leaves the repository as it was.
"""

import tempfile
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import IO

from engramfs.history.git import edits
from engramfs.history.git.edits import Edits
from engramfs.history.git.paths import quoted
from engramfs.history.git.program import Git, failed
from engramfs.model.entry import Entry, Kind

Contents = Callable[[bytes, Entry], Iterator[bytes]]  # of a path, in parts

_STREAMED = "8m"  # larger files are packed by git as they come


class FastImport:
    """A running import that moves `branch`, a full name of a ref, when its `with` block ends well.

    `contents` reads files. Raises `Unavailable` with git's own words when git fails.
    """

    def __init__(self, git: Git, branch: bytes, contents: Contents) -> None:
        self._git = git
        self._branch = branch
        self._contents = contents
        self.bytes = 0

    def __enter__(self) -> "FastImport":
        self._complaints: IO[bytes] = tempfile.TemporaryFile()
        try:
            self._process = self._git.start(
                "fast-import",
                "--quiet",
                "--done",
                "--force",
                f"--big-file-threshold={_STREAMED}",
                stdin=-1,
                stderr=self._complaints,
            )
        except BaseException:
            self._complaints.close()
            raise
        assert self._process.stdin is not None
        self._stream = self._process.stdin
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        broken: BrokenPipeError | None = error if isinstance(error, BrokenPipeError) else None
        try:
            if kind is None:
                self._stream.write(b"done\n")
            self._stream.close()
        except BrokenPipeError as raised:
            broken = raised
        with self._complaints as complaints:
            code = self._process.wait()
            complaints.seek(0)
            complaint = complaints.read()
        if broken is not None or (kind is None and code != 0):
            raise failed("fast-import", self._git.directory, complaint, code) from error

    def begin_at(self, commit: bytes | None) -> None:
        """Let the first commit follow `commit`, or nothing."""
        self._stream.write(b"reset %s\n" % self._branch)
        if commit is not None:
            self._stream.write(b"from %s\n\n" % commit)

    def commit(self, who: bytes, seconds: int, message: bytes, changed: Edits) -> None:
        """One commit, on top of the last."""
        when = b"%s %d +0000" % (who, max(seconds, 0))
        self._stream.write(b"commit %s\nauthor %s\ncommitter %s\n" % (self._branch, when, when))
        self._data(len(message), [message])
        if changed.afresh:
            self._stream.write(b"deleteall\n")
        for path in changed.removed:
            self._stream.write(b"D %s\n" % quoted(path))
        for path, entry in changed.written:
            self._stream.write(b"M %s inline %s\n" % (edits.mode(entry), quoted(path)))
            if entry.kind is Kind.SYMLINK:
                self._data(len(entry.target), [entry.target])
            else:
                self._data(entry.size, self._contents(path, entry))

    def _data(self, size: int, parts: "Iterator[bytes] | list[bytes]") -> None:
        self._stream.write(b"data %d\n" % size)
        for part in parts:
            self._stream.write(part)
            self.bytes += len(part)
        self._stream.write(b"\n")
