"""The git repository whose commits become versions."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import IO

from engramfs.errors import NotFound, Unavailable
from engramfs.history.git import signature
from engramfs.history.git.program import Git, failed
from engramfs.history.git.signature import Signature
from engramfs.history.plain_directory import RESERVED
from engramfs.model.names import printable

# Files that moved are found by how alike they are, like `git log -M` does. Of more than so many files that
# came or went in one commit, only those that are equal: looking costs the square of their number.
_RENAMES = ("-M", "-l1000")


class Source:
    """The first-parent history of `ref` in the repository at `directory`: its `commits`, newest first.

    Raises `NotFound` when there is no such repository or ref, and `Unavailable`.
    """

    def __init__(self, directory: bytes, ref: str) -> None:
        self.git = Git(directory)
        shown = printable(directory)
        try:
            self.git.run("rev-parse", "--git-dir")
        except (Unavailable, FileNotFoundError) as error:
            why = (
                f" ({error.message})" if isinstance(error, Unavailable) and "dubious" in error.message else ""
            )
            raise NotFound(f"{shown} is no git repository{why}; name the directory that has .git") from error
        tip = self.git.ask("rev-parse", "--quiet", "--verify", "--end-of-options", f"{ref}^{{commit}}")
        if tip is None:
            raise NotFound(f"there is no commit {ref} in {shown}; name a branch with --ref")
        self.tip = tip.decode()
        self.commits = self._listed("--first-parent", self.tip)
        self._parents: str | None = None  # of one commit, as git reads its grafts

    def _listed(self, *arguments: str) -> list[str]:
        return self.git.run("rev-list", *arguments).decode().split()

    @cached_property
    def first_parents(self) -> frozenset[str]:
        """All of `commits`, as they are in the repository."""
        return frozenset(self.commits)

    @cached_property
    def object_format(self) -> str:
        """How git names what it holds: `sha1` or `sha256`."""
        return self.git.run("rev-parse", "--show-object-format").decode()

    def has(self, commit: str) -> bool:
        """Whether the history, merges included, holds a commit."""
        return self.git.ask("merge-base", "--is-ancestor", commit, self.tip) is not None

    def saying(self, line: str, *, first_parent: bool = False) -> list[str]:
        """The commits, newest first and merges included, whose messages hold `line` somewhere."""
        along = ["--first-parent"] if first_parent else []
        return self._listed(*along, "--fixed-strings", f"--grep={line}", self.tip)

    def message(self, commit: str) -> bytes:
        return self.git.run("cat-file", "commit", commit).partition(b"\n\n")[2]

    def tree(self, commit: str) -> dict[bytes, tuple[bytes, bytes]]:
        """The mode and the id of each path in a commit."""
        listed = self.git.run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")
        paths = (line.partition(b"\t") for line in listed if line)
        return {path: (about[:6], about.split(b" ")[2]) for about, _, path in paths}

    def tree_id(self, commit: str) -> bytes:
        return self.git.run("rev-parse", f"{commit}^{{tree}}")

    def committer(self, commit: str) -> Signature | None:
        head = self.git.run("cat-file", "commit", commit).partition(b"\n\n")[0].split(b"\n")
        lines = (line.removeprefix(b"committer ") for line in head if line.startswith(b"committer "))
        return signature.read(next(lines, b""))

    def follow(self, commit: str) -> None:
        """Let the history go along `commit`, which it has: where a merge brought it, that comes first."""
        if commit in self.first_parents:
            return
        later = set(self._listed("--ancestry-path", f"^{commit}", self.tip))
        merge = [one for one in self.commits if one in later][-1]
        _, *parents = self._listed("--parents", "--max-count=1", merge)
        self._parents = " ".join([merge, commit, *(one for one in parents if one != commit)])
        newer = self.commits[: self.commits.index(merge) + 1]
        self.commits = [*newer, *self._listed("--first-parent", commit)]

    @contextmanager
    def stream(self, after: str | None) -> Iterator[IO[bytes]]:
        """The commits after the commit `after` (None: all), as `fast_export.commits` reads them.

        Whoever reads may be another process. Raises `Unavailable` with git's own words when git failed,
        rather than what the block made of that.
        """
        arguments = ["--use-done-feature", "--show-original-ids", "--first-parent", "--reencode=yes"]
        arguments += self._renames()
        arguments += ["--reference-excluded-parents", *([f"^{after}"] if after else []), self.tip]
        with self._grafted() as git, tempfile.TemporaryFile() as complaints:
            process = git.start("fast-export", *arguments, stdout=-1, stderr=complaints)
            assert process.stdout is not None
            try:
                yield process.stdout
            except BaseException as error:
                if (code := _ended(process)) > 0:
                    complaints.seek(0)
                    raise failed("fast-export", self.git.directory, complaints.read(), code) from error
                raise
            finally:
                process.stdout.close()
                process.wait()

    @contextmanager
    def _grafted(self) -> Iterator[Git]:
        """Git that sees the history as `follow` has it; the repository stays as it is."""
        if self._parents is None:
            yield self.git
            return
        with tempfile.NamedTemporaryFile("w") as grafts:
            grafts.write(f"{self._parents}\n")
            grafts.flush()
            git = Git(self.git.directory, GIT_GRAFT_FILE=grafts.name)
            if git.run("rev-list", "--first-parent", self.tip).decode().split() != self.commits:
                raise Unavailable(
                    "this git cannot show a merge from its other side; git rebase instead of a merge, and "
                    "import again"
                )
            yield git

    def _renames(self) -> tuple[str, ...]:
        """How renames are found. A rename from what no store keeps would be a file without content here."""
        root = b":(top,literal)" + RESERVED
        has_reserved = self.git.run("rev-list", "-1", "--first-parent", self.tip, "--", root)
        return () if has_reserved else _RENAMES


def _ended(process: "subprocess.Popen[bytes]") -> int:
    """Its exit code; negative when it had to be stopped, since nobody reads on."""
    try:
        return process.wait(timeout=0.5)
    except subprocess.TimeoutExpired:
        process.terminate()
        return -1
