"""The git repository that a store's history is written to: made when missing, and gone on with.

The branch `main` is that history, and what a person committed on top of it. That is never undone: until the
store has it as well, what is new in the store comes beside it, as the remote branch `engramfs/main`, for the
person to merge.
"""

import os
from collections.abc import Iterator

from engramfs.errors import Conflict, Unavailable, UsageError
from engramfs.history.git.message import Exported, parse
from engramfs.history.git.program import Git
from engramfs.history.unmade_directory import unmade
from engramfs.model.names import printable

BRANCH = b"refs/heads/main"
BESIDE = b"refs/remotes/engramfs/main"
STAGED = b"refs/engramfs/export"  # where commits are until the branch moves
# Files are the bytes that the store has, whatever a `.gitattributes` in the store or the settings of a
# person say about the ends of lines.
_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding\n"


class Destination:
    """A repository that can take commits. Use `open`."""

    def __init__(self, git: Git, shown: str, *, bare: bool) -> None:
        self.git = git
        self.bare = bare
        self.shown = shown
        self.tip = git.ask("rev-parse", "--quiet", "--verify", BRANCH)

    @classmethod
    def open(cls, directory: bytes, *, bare: bool) -> "Destination":
        """The repository in `directory`, made there when it is missing or empty; then `bare` if asked for.

        Raises `Conflict` for what is no repository of one store's history, or has changes that are not
        committed, `NotFound` without a parent directory, `UsageError`, `Unavailable`.
        """
        shown = printable(directory)
        names = _names(directory, shown)
        git = Git(directory)
        if not names:
            _initialize(git, bare=bare)
        elif git.ask("rev-parse", "--git-dir") not in (b".git", b"."):
            raise Conflict(f"{shown} is not empty and no git repository; name a new directory, or empty it")
        is_bare = git.run("rev-parse", "--is-bare-repository") == b"true"
        destination = cls(git, shown, bare=is_bare)
        destination._check()
        return destination

    def _check(self) -> None:
        if self.tip is None and self.git.run("for-each-ref", "--count=1"):
            raise Conflict(f"{self.shown} is a repository without the branch main; export to a new directory")
        if self._is_checked_out() and self.git.run("status", "--porcelain", "--untracked-files=no"):
            raise Conflict(
                f"{self.shown} has changes that are not committed, which an export would undo; "
                "git stash or git checkout them first"
            )

    def _is_checked_out(self) -> bool:
        return not self.bare and self.git.ask("symbolic-ref", "--quiet", "HEAD") == BRANCH

    def exported(self) -> Exported | None:
        """What the last commit says of its version; None when there is no commit, or none of a store's."""
        return parse(self._message(self.tip)) if self.tip is not None else None

    def earlier(self) -> Iterator[Exported]:
        """The versions that the branch has, newest first."""
        for commit in self.git.run("rev-list", "--first-parent", BRANCH).splitlines():
            found = parse(self._message(commit))
            if found is None:
                return
            yield found

    def _message(self, commit: bytes) -> bytes:
        return self.git.run("cat-file", "commit", commit).partition(b"\n\n")[2]

    def beside(self) -> str | None:
        """The commit that an earlier export put beside the branch, if any."""
        found = self.git.ask("rev-parse", "--quiet", "--verify", BESIDE)
        return found.decode() if found is not None else None

    def tree(self, commit: bytes) -> dict[bytes, bytes]:
        """The mode of each path in a commit."""
        listed = self.git.run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")
        return {path: about[:6] for about, _, path in (line.partition(b"\t") for line in listed) if path}

    def advance(self, commit: bytes) -> None:
        """Let the branch end with `commit`, and the working tree, if it shows the branch, show it."""
        if not self._is_checked_out():
            self.git.run("update-ref", BRANCH, commit, self.tip or b"0" * len(commit))
        elif self.tip is None:
            self.git.run("reset", "--quiet", "--hard", commit)
        else:
            try:
                self.git.run("merge", "--quiet", "--ff-only", "--no-stat", commit)
            except Unavailable as error:
                raise Conflict(
                    f"{self.shown} has files in the way that are not committed: {error.message}; "
                    "move them away and export again"
                ) from error
        self.git.run("update-ref", "-d", STAGED)
        self.git.run("update-ref", "-d", BESIDE)
        self.tip = commit

    def put_beside(self, commit: bytes) -> None:
        """Leave the branch alone, and let `commit` be found beside it."""
        self.git.run("update-ref", BESIDE, commit)
        self.git.run("update-ref", "-d", STAGED)


def _names(directory: bytes, shown: str) -> list[bytes]:
    """What is in the directory, which is made when it is missing: private, as the stores are."""
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        if not os.path.isdir(directory):
            raise UsageError(f"{shown} is not a directory") from None
    except FileNotFoundError:
        raise unmade(directory) from None
    except OSError as error:
        raise Unavailable(f"cannot make {shown}: {error.strerror}") from error
    try:
        return os.listdir(directory)
    except OSError as error:
        raise Unavailable(f"cannot read {shown}: {error.strerror}") from error


def _initialize(git: Git, *, bare: bool) -> None:
    git.run("init", "--quiet", "--template=", "--initial-branch=main", *(["--bare"] if bare else []))
    git.run("config", "core.autocrlf", "false")
    info = os.path.join(git.directory, b"info" if bare else b".git/info")
    os.makedirs(info, exist_ok=True)
    with open(os.path.join(info, b"attributes"), "w") as file:
        file.write(_ATTRIBUTES)
