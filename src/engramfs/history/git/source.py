"""The git repository whose commits become versions."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from engramfs.errors import NotFound, Unavailable
from engramfs.history.git.program import Git, failed
from engramfs.history.plain_directory import RESERVED
from engramfs.model.names import printable

# Files that moved are found by how alike they are, like `git log -M` does. Of more than so many files that
# came or went in one commit, only those that are equal: looking costs the square of their number.
_RENAMES = ("-M", "-l1000")


class Source:
    """The first-parent history of `ref` in the repository at `directory`.

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
        self.commits = self.git.run("rev-list", "--first-parent", self.tip).decode().split()  # newest first

    @contextmanager
    def stream(self, after: str | None) -> Iterator[IO[bytes]]:
        """The commits after the commit `after` (None: all), as `fast_export.commits` reads them.

        Whoever reads may be another process. Raises `Unavailable` with git's own words when git failed,
        rather than what the block made of that.
        """
        arguments = ["--use-done-feature", "--show-original-ids", "--first-parent", "--reencode=yes"]
        arguments += self._renames()
        arguments += ["--reference-excluded-parents", *([f"^{after}"] if after else []), self.tip]
        with tempfile.TemporaryFile() as complaints:
            process = self.git.start("fast-export", *arguments, stdout=-1, stderr=complaints)
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
