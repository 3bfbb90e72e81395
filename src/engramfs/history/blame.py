"""Who wrote each line of a file, and in which version.

Going back from the newest content, the lines that an older one has as well are passed on to it, and the
others are its own. Each content is read once, and nothing is compared once every line has been found.
"""

from collections.abc import Iterator

import msgspec

from engramfs.errors import NotFound, Redacted, UsageError
from engramfs.history.kept import find_kept, is_partial, path_tree_at
from engramfs.history.lineage import lineage
from engramfs.history.lines import is_binary, matches, split_lines
from engramfs.history.log import find_version
from engramfs.history.tree import resolve
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable
from engramfs.model.shell_words import path_word
from engramfs.model.store import Store
from engramfs.model.version import Version
from engramfs.storage import blobs
from engramfs.storage.protocol import Reader


class BlamedLine(msgspec.Struct, frozen=True):
    """A line with its end, and the version that wrote it; `version` is None when it is not kept any more."""

    number: int
    version: Version | None
    content: bytes


def blame(reader: Reader, store: Store, path: bytes, number: int) -> list[BlamedLine]:
    """Every line of `path` as of version `number`.

    Raises `NotFound` when it is not there, `Redacted` when its content is not, `UsageError` for what is no
    text file.
    """
    entry = resolve(path_tree_at(reader, store, number, path), path)
    if entry is None:
        shows = f"engramfs log {store.name} {path_word(path)} shows which versions have it"
        raise NotFound(f"there is no {printable(path)} in {store.name}@{number}; {shows}")
    if entry.is_redacted:
        raise Redacted(f"what {printable(path)} held in {store.name}@{number} was redacted; it has no lines")
    if entry.kind is not Kind.FILE:
        raise UsageError(f"{printable(path)} in {store.name}@{number} is not a file and has no lines")
    content = blobs.read(reader, entry.digest, entry.size)
    if is_binary(content):
        raise UsageError(f"{printable(path)} in {store.name}@{number} is binary and has no lines")
    lines = split_lines(content)
    numbers = _numbers(reader, lines, _contents(reader, store, path, number))
    known = {one: find_version(reader, store.id, one) for one in set(numbers)}
    return [BlamedLine(one, known[one], line) for one, line in zip(numbers, lines, strict=True)]


def _contents(reader: Reader, store: Store, path: bytes, newest: int) -> Iterator[tuple[int, Entry]]:
    """Each content that can be read, newest first, with the version that brought it."""
    if is_partial(reader, store, newest):  # of what was before nothing is sure to be kept
        kept = find_kept(reader, store, newest, path)
        if kept is not None:
            yield kept.number or newest, kept.entry
        return
    known: tuple[int, Entry] | None = None
    for step in lineage(reader, store, path, newest):
        if step.went or step.entry.kind is not Kind.FILE or step.entry.is_redacted:
            continue
        if known is not None and step.entry.digest != known[1].digest:
            yield known
        known = step.number, step.entry
    if known is not None:
        yield known


def _numbers(reader: Reader, lines: list[bytes], contents: Iterator[tuple[int, Entry]]) -> list[int]:
    """For each line the version that wrote it."""
    found = [0] * len(lines)
    newer, waiting = lines, list(range(len(lines)))  # of each line of `newer`: which line it became
    number, _ = next(contents, (0, None))
    for older_number, entry in contents:
        older = split_lines(blobs.read(reader, entry.digest, entry.size))
        passed_on = [-1] * len(older)
        for start, there, length in matches(older, newer):
            passed_on[start : start + length] = waiting[there : there + length]
            waiting[there : there + length] = [-1] * length
        for line in waiting:
            if line >= 0:
                found[line] = number
        newer, waiting, number = older, passed_on, older_number
        if all(line < 0 for line in waiting):
            return found
    for line in waiting:
        if line >= 0:
            found[line] = number
    return found
