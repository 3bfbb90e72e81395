"""What differs between two contents, as text for people.

Lines are text without line ends; bytes that are not UTF-8 come back by `model.names.raw`. A content of None
means that there is no such file. Only the lines around changes are looked at closely: see `lines`.
"""

import difflib
from collections.abc import Iterator, Sequence

import msgspec

from engramfs.history.git.paths import quoted
from engramfs.history.lines import is_binary, matches, split_lines
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable
from engramfs.storage import blobs
from engramfs.storage.protocol import Reader

_CONTEXT = 3  # equal lines around a change
_QUOTES = set('"\\')


class Counts(msgspec.Struct, frozen=True):
    """How many lines came and went; none of a binary content."""

    added: int
    removed: int
    binary: bool = False


def content_of(reader: Reader, entry: Entry | None) -> bytes | None:
    """What is compared of an entry: a file's content, a symlink's target, nothing of a directory."""
    if entry is None or entry.kind is Kind.DIRECTORY:
        return None
    if entry.kind is Kind.SYMLINK:
        return entry.target
    return blobs.read(reader, entry.digest, entry.size)


def unified(
    old: bytes | None, new: bytes | None, path: bytes, from_path: bytes | None = None
) -> Iterator[str]:
    """A unified diff of two contents, line by line; of binary ones only that they differ.

    `from_path` is what the old one was called, if not `path`.
    """
    before, after = old or b"", new or b""
    if before == after and (old is None) == (new is None):
        return
    from_file = "/dev/null" if old is None else named(b"a/" + (path if from_path is None else from_path))
    to_file = "/dev/null" if new is None else named(b"b/" + path)
    if is_binary(before) or is_binary(after):
        yield f"Binary files {from_file} and {to_file} differ"
        return
    old_lines, new_lines = split_lines(before), split_lines(after)
    for number, group in enumerate(_Aligned(old_lines, new_lines).get_grouped_opcodes(_CONTEXT)):
        if number == 0:
            yield f"--- {_ended(from_file)}"
            yield f"+++ {_ended(to_file)}"
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from _marked(" ", old_lines[old_start:old_end])
                continue
            yield from _marked("-", old_lines[old_start:old_end])
            yield from _marked("+", new_lines[new_start:new_end])


def named(path: bytes) -> str:
    """A path as git writes it into a patch: in quotes when something in it would not print."""
    shown = printable(path)
    return shown if shown.isprintable() and not _QUOTES & set(shown) else quoted(path).decode()


def _ended(name: str) -> str:
    """A name with blanks needs an end, or `patch` takes the first blank for it."""
    return f"{name}\t" if " " in name else name


def count(old: bytes | None, new: bytes | None) -> Counts:
    """The lines that `unified` would show as added and removed."""
    before, after = old or b"", new or b""
    if is_binary(before) or is_binary(after):
        return Counts(0, 0, binary=before != after)
    old_lines, new_lines = split_lines(before), split_lines(after)
    kept = sum(match.length for match in matches(old_lines, new_lines))
    return Counts(len(new_lines) - kept, len(old_lines) - kept)


class _Aligned(difflib.SequenceMatcher[bytes]):
    """difflib's grouping of changes, over the matches that `lines` finds."""

    def __init__(self, old: Sequence[bytes], new: Sequence[bytes]) -> None:
        super().__init__(None, [b""], [])
        self.a, self.b = old, new

    def get_matching_blocks(self) -> list[difflib.Match]:
        found = [difflib.Match(*match) for match in matches(self.a, self.b)]
        return [*found, difflib.Match(len(self.a), len(self.b), 0)]


def _range(start: int, end: int) -> str:
    """As `diff -u` counts lines: from one, and before the line that follows when there is none."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, lines: Sequence[bytes]) -> Iterator[str]:
    for line in lines:
        yield mark + printable(line.removesuffix(b"\n"))
        if not line.endswith(b"\n"):
            yield "\\ No newline at end of file"
