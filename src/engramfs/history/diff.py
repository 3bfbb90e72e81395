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
    is_implied: bool = False  # by the rename of the directory above

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

    Makes sense for two trees of one store. What is one node in both is the same thing, and so is a file that
    was saved anew: another node, the same origin. Of a directory that was renamed, what is in it is implied
    unless it changed as well.
    """
    listed = list(found)
    gone = [one for one in listed if one.old is not None and one.new is None]
    came = [one for one in listed if one.new is not None and one.old is None]
    moved = _moved(gone, came)
    if not moved:
        return listed
    explained = {one.path for one in moved.values()}
    return [_renamed(one, moved) for one in listed if one.path not in explained or one.new is not None]


def _moved(gone: list[Difference], came: list[Difference]) -> dict[bytes, Difference]:
    """What went from elsewhere, by the path at which it came."""
    moved: dict[bytes, Difference] = {}
    by_node = {one.old.node: one for one in gone if one.old is not None}
    for one in came:
        if one.new is not None and one.new.node in by_node:
            moved[one.path] = by_node.pop(one.new.node)
    by_origin = {one.old.origin: one for one in by_node.values() if one.old is not None and _is_file(one.old)}
    for one in came:
        if (
            one.new is not None
            and _is_file(one.new)
            and one.path not in moved
            and one.new.origin in by_origin
        ):
            moved[one.path] = by_origin.pop(one.new.origin)
    return moved


def _is_file(entry: Entry) -> bool:
    return entry.kind is Kind.FILE and entry.origin != 0


def _renamed(one: Difference, moved: dict[bytes, Difference]) -> Difference:
    """`one` with where it was, if it was elsewhere."""
    source = moved.get(one.path)
    if source is None:
        return one
    above, _, name = one.path.rpartition(b"/")
    source_above, _, source_name = source.path.rpartition(b"/")
    stays_in = above in moved and moved[above].path == source_above and name == source_name
    return Difference(one.path, source.old, one.new, source.path, stays_in and same(source.old, one.new))


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
