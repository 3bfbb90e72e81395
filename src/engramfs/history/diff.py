"""What differs between two trees, and between two contents.

Both trees are walked together, a directory at a time, so the cost is that of listing the directories that
both have, whatever the number of versions between them. Contents are compared by digest, not read.
"""

import difflib
from collections.abc import Iterator

import msgspec

from engramfs.history.lines import is_binary
from engramfs.history.tree import Tree, resolve
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable


class Difference(msgspec.Struct, frozen=True):
    """A path that is not the same in both trees; None where it is not."""

    path: bytes
    old: Entry | None
    new: Entry | None


def differences(old: Tree, new: Tree, path: bytes = b"") -> Iterator[Difference]:
    """What is not the same at and below `path`, by path, a directory before what is in it.

    Times, node ids and numbers of links are no difference.
    """
    yield from _compare(old, new, path, resolve(old, path), resolve(new, path))


def same(old: Entry | None, new: Entry | None) -> bool:
    """Whether a person would call the two the same."""
    if old is None or new is None:
        return old is new
    return (
        old.kind is new.kind
        and old.digest == new.digest
        and old.mode == new.mode
        and old.target == new.target
        and old.xattrs == new.xattrs
        and (old.kind is not Kind.FILE or old.size == new.size)
    )


def _compare(
    old: Tree, new: Tree, path: bytes, before: Entry | None, after: Entry | None
) -> Iterator[Difference]:
    waiting = [(path, before, after)]
    while waiting:
        where, before, after = waiting.pop()
        if not same(before, after):
            yield Difference(where, before, after)
        old_children, new_children = _children(old, before), _children(new, after)
        for name in sorted(old_children.keys() | new_children.keys(), reverse=True):
            one, other = old_children.get(name), new_children.get(name)
            if _is_directory(one) or _is_directory(other) or not same(one, other):
                waiting.append((where + b"/" + name if where else name, one, other))


def _is_directory(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is Kind.DIRECTORY


def _children(tree: Tree, entry: Entry | None) -> dict[bytes, Entry]:
    return dict(tree.children(entry.node)) if entry is not None and _is_directory(entry) else {}


def unified(old: bytes | None, new: bytes | None, path: bytes) -> Iterator[str]:
    """A unified diff of two contents, line by line, without line ends. None: there is no such file.

    Bytes that are not UTF-8 come back by `model.names.raw`.
    """
    before, after = old or b"", new or b""
    if before == after and (old is None) == (new is None):
        return
    shown = printable(path)
    from_file = "/dev/null" if old is None else f"a/{shown}"
    to_file = "/dev/null" if new is None else f"b/{shown}"
    if is_binary(before) or is_binary(after):
        yield f"Binary files {from_file} and {to_file} differ"
        return
    old_lines, new_lines = _lines(before), _lines(after)
    lines = difflib.unified_diff(old_lines, new_lines, from_file, to_file, lineterm="")
    for number, text in enumerate(lines):
        is_header = number < 2 or text.startswith("@@")
        yield text.removesuffix("\n")
        if not is_header and not text.endswith("\n"):
            yield "\\ No newline at end of file"


def _lines(content: bytes) -> list[str]:
    """Lines with their ends; only a line feed ends one."""
    lines = printable(content).split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])
