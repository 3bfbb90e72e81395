"""The stream to `git fast-import`: commits, one after another, with the contents of their files in line.

Contents pass through in parts, and nothing is kept of them here. Until the stream is ended properly, no
branch moves: an export that is cut short leaves the repository as it was. Git is asked one thing: which id a
commit has.
"""

import tempfile
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import IO

from engramfs.history.git import edits
from engramfs.history.git.edits import Edits
from engramfs.history.git.paths import quoted
from engramfs.history.git.program import Git, failed
from engramfs.history.git.signature import Signature
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
        self._mark = 0  # of the newest commit; 0: there is none
        self._newest: str | None = None  # its id, once git was asked

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
                stdout=-1,
                stderr=self._complaints,
            )
        except BaseException:
            self._complaints.close()
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stream, self._answers = self._process.stdin, self._process.stdout
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
            self._answers.close()
            code = self._process.wait()
            complaints.seek(0)
            complaint = complaints.read()
        if broken is not None or (kind is None and code != 0):
            raise failed("fast-import", self._git.directory, complaint, code) from error

    def begin_at(self, commit: bytes | None) -> None:
        """Let the first commit follow `commit`, or nothing."""
        self._newest = commit.decode() if commit is not None else None
        self._reset(commit)

    def _reset(self, commit: bytes | None) -> None:
        self._stream.write(b"reset %s\n" % self._branch)
        if commit is not None:
            self._stream.write(b"from %s\n\n" % commit)

    def newest(self) -> str | None:
        """The id of the last commit, or of the one that this began at."""
        if self._newest is None and self._mark:
            self._newest = self._id_of(self._mark)
        return self._newest

    def _id_of(self, mark: int) -> str:
        self._stream.write(b"get-mark :%d\n" % mark)
        self._stream.flush()
        answer = self._answers.readline()
        if not answer.endswith(b"\n"):
            raise BrokenPipeError("git fast-import ended")
        return answer[:-1].decode()

    def commit_again(
        self, identifier: str, author: Signature, committer: Signature, message: bytes, changed: Edits
    ) -> bool:
        """A commit on top of the last, if that makes the one that has this id; else nothing, and False."""
        before, mark, size = self.newest(), self._mark, self.bytes
        self.commit(author, committer, message, changed)
        if self.newest() == identifier:
            return True
        self._newest, self._mark, self.bytes = before, mark, size
        begun_at = before.encode() if before is not None else None
        self._reset(b":%d" % mark if mark else begun_at)
        return False

    def commit(self, author: Signature, committer: Signature, message: bytes, changed: Edits) -> None:
        """One commit, on top of the last."""
        self._mark += 1
        self._newest = None
        head = (self._branch, self._mark, author.line(), committer.line())
        self._stream.write(b"commit %s\nmark :%d\nauthor %s\ncommitter %s\n" % head)
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
