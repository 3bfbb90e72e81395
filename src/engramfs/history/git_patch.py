"""A difference as git writes it: `git apply` and `patch -p1` make the new tree of the old with it.

Of modes it keeps what git keeps, and directories come and go with what is in them.
"""

import hashlib
from collections.abc import Iterator

from engramfs.history.diff import Difference
from engramfs.history.git.edits import mode
from engramfs.history.git_binary import git_binary
from engramfs.history.lines import is_binary
from engramfs.history.patch import named, unified
from engramfs.model.entry import Entry, Kind

_NOTHING = "0" * 40
_EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"  # the empty file to git; without it `patch` removes none


def git_patch(
    difference: Difference, old: bytes | None, new: bytes | None, *, binary: bool = False
) -> Iterator[str]:
    """The lines for one difference, whose contents are `old` and `new`; none where git sees no difference.

    With `binary` they have contents too that are no text, for `git apply`; otherwise only that these differ.
    """
    before, after = _kept(difference.old), _kept(difference.new)
    path, source = difference.path, difference.from_path
    if before is not None and after is not None and _is_in_two_steps(before, after, source):
        yield from git_patch(
            Difference(path if source is None else source, before, None), old, None, binary=binary
        )
        yield from git_patch(Difference(path, None, after), None, new, binary=binary)
        return
    if before is None and after is None:
        return
    lines = [*_modes(before, after), *_renaming(path, source)]
    if binary and old != new and (is_binary(old or b"") or is_binary(new or b"")):
        # Of a file that is not there the id is all zeros; the mode is said already where it came or went.
        ended = f" {mode(after).decode()}" if before and after and mode(before) == mode(after) else ""
        lines += [f"index {_git_id(old)}..{_git_id(new)}{ended}", *git_binary(old or b"", new or b"")]
    else:
        lines += unified(old, new, path, source)
    if lines and before is not None and before.kind is Kind.SYMLINK and after is not None:
        # It says what is changed; without it `patch` takes a symlink for a file, and refuses.
        lines.insert(0, f"index {_git_id(old)}..{_git_id(new)} {mode(after).decode()}")
    if lines:
        old_name, new_name = _one_word(b"a/" + (path if source is None else source)), _one_word(b"b/" + path)
        yield f"diff --git {old_name} {new_name}"
        yield from lines


def _git_id(content: bytes | None) -> str:
    if content is None:
        return _NOTHING
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _is_in_two_steps(before: Entry, after: Entry, source: bytes | None) -> bool:
    """Whether one goes and the other comes; `patch` does not rename symlinks."""
    return before.kind is not after.kind or (before.kind is Kind.SYMLINK and source is not None)


def _kept(entry: Entry | None) -> Entry | None:
    return None if entry is None or entry.kind is Kind.DIRECTORY else entry


def _modes(before: Entry | None, after: Entry | None) -> Iterator[str]:
    if before is None and after is not None:
        yield f"new file mode {mode(after).decode()}"
        if after.size == 0:
            yield f"index {_NOTHING}..{_EMPTY}"
    elif before is not None and after is None:
        yield f"deleted file mode {mode(before).decode()}"
        if before.size == 0:
            yield f"index {_EMPTY}..{_NOTHING}"
    elif before is not None and after is not None and mode(before) != mode(after):
        yield f"old mode {mode(before).decode()}"
        yield f"new mode {mode(after).decode()}"


def _renaming(path: bytes, source: bytes | None) -> Iterator[str]:
    if source is not None:
        yield f"rename from {named(source)}"
        yield f"rename to {named(path)}"


def _one_word(path: bytes) -> str:
    name = named(path)
    return f'"{name}"' if " " in name and not name.startswith('"') else name
