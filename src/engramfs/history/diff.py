"""What differs between two trees.

Both trees are walked together, a directory at a time, so the cost is that of listing the directories that
both have, whatever the number of versions between them. Contents are compared by digest, not read.
"""

from collections.abc import Iterable, Iterator

import msgspec

from engramfs.history.tree import Tree, resolve
from engramfs.model.entry import Entry, Kind


class Difference(msgspec.Struct, frozen=True):
    """A path that is not the same in both trees; None where it is not."""

    path: bytes
    old: Entry | None
    new: Entry | None
    from_path: bytes | None = None  # where `old` was, if elsewhere: see `with_renames`

    @property
    def hides_path(self) -> bool:
        """Whether the change that made it lost its path: people do not get to see `path` of it."""
        entry = self.new if self.new is not None else self.old
        return entry is not None and entry.is_redacted

    @property
    def hides_from_path(self) -> bool:
        return self.hides_path or (self.old is not None and self.old.is_redacted)


def differences(old: Tree, new: Tree, path: bytes = b"") -> Iterator[Difference]:
    """What is not the same at and below `path`, by path, a directory before what is in it.

    Times, node ids and numbers of links are no difference.
    """
    yield from compare(old, new, path, resolve(old, path), resolve(new, path))


def with_renames(found: Iterable[Difference]) -> list[Difference]:
    """`found` with what went in one place and came in another as one difference.

    Of a directory that was renamed, what is in it is left out unless it changed as well. Makes sense for two
    trees of one store, where a node is the same thing in both.
    """
    listed = list(found)
    gone = {one.old.node: one for one in listed if one.old is not None and one.new is None}
    came = {one.new.node: one for one in listed if one.new is not None and one.old is None}
    moved = {one.path: gone[node].path for node, one in came.items() if node in gone}
    if not moved:
        return listed
    explained = set(moved.values())
    return [
        renamed
        for one in listed
        if (renamed := _renamed(one, moved, gone)) is not None
        and (one.path not in explained or one.new is not None)
    ]


def _renamed(one: Difference, moved: dict[bytes, bytes], gone: dict[int, Difference]) -> Difference | None:
    """What is to be said of `one`; None when the rename of the directory above says it."""
    source = moved.get(one.path) if one.old is None else None
    if source is None or one.new is None:
        return one
    old = gone[one.new.node].old
    above, _, name = one.path.rpartition(b"/")
    source_above, _, source_name = source.rpartition(b"/")
    if name == source_name and moved.get(above) == source_above and same(old, one.new):
        return None
    return Difference(one.path, old, one.new, source)


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


def compare(
    old: Tree, new: Tree, path: bytes, before: Entry | None, after: Entry | None
) -> Iterator[Difference]:
    """`differences` at and below `path`, which is `before` in one tree and `after` in the other."""
    waiting = [(path, before, after)]
    while waiting:
        where, before, after = waiting.pop()
        if not same(before, after):
            yield Difference(where, before, after)
        old_children, new_children = _children(old, before), _children(new, after)
        for name in sorted(old_children.keys() | new_children.keys(), reverse=True):
            one, other = old_children.get(name), new_children.get(name)
            if is_directory(one) or is_directory(other) or not same(one, other):
                waiting.append((where + b"/" + name if where else name, one, other))


def is_directory(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is Kind.DIRECTORY


def _children(tree: Tree, entry: Entry | None) -> dict[bytes, Entry]:
    return dict(tree.children(entry.node)) if entry is not None and is_directory(entry) else {}
