"""What happened to names, told to people: created, modified, deleted, renamed.

Pure: a batch that is sealed and an approval both describe their version with it.
"""

from collections.abc import Callable, Sequence

import msgspec

from engramfs.model.entry import Entry, Kind
from engramfs.model.version import Change, ChangeKind

Name = tuple[int, bytes]  # (parent node id, name)


class Pair(msgspec.Struct, frozen=True):
    """A name, before and after."""

    name: Name
    old: Entry | None
    new: Entry | None

    @property
    def is_recorded(self) -> bool:
        """Whether a version has to know of it: anything but times."""
        return self.new is None or not self.new.same_but_for_times(self.old)

    @property
    def is_change(self) -> bool:
        """Whether people want to read of it: not of a link more or less elsewhere, nor of the same bytes."""
        return self.new is not None and not self.new.looks_like(self.old)


def changes_of(pairs: Sequence[Pair], path: Callable[[Name], bytes]) -> list[Change]:
    """The changes that `pairs` make together; `path` gives the path of a name."""
    moved_away = {
        pair.old.node: pair.name
        for pair in pairs
        if pair.old is not None and (pair.new is None or pair.new.node != pair.old.node)
    }
    saved_elsewhere = _saved_elsewhere(pairs, moved_away)
    changes: list[Change] = []
    explained: set[Name] = set()
    for pair in pairs:
        if pair.new is None or not pair.is_change:
            continue
        source = moved_away.get(pair.new.node)
        if source is None and pair.old is None:
            source = saved_elsewhere.get(pair.new.origin)
        same_file = pair.old is not None and pair.old.origin == pair.new.origin
        if source is not None and not same_file and source != pair.name:
            explained.add(source)
            changes.append(change_of(ChangeKind.RENAMED, path(pair.name), pair.new, from_path=path(source)))
        elif pair.old is None:
            changes.append(change_of(ChangeKind.CREATED, path(pair.name), pair.new))
        else:
            changes.append(
                change_of(ChangeKind.MODIFIED, path(pair.name), pair.new, from_digest=pair.old.digest)
            )
    changes.extend(
        change_of(ChangeKind.DELETED, path(pair.name), pair.old)
        for pair in pairs
        if pair.old is not None and pair.new is None and pair.name not in explained
    )
    return changes


def _saved_elsewhere(pairs: Sequence[Pair], moved_away: dict[int, Name]) -> dict[int, Name]:
    """Where files were that went, by their origin: one that comes was saved anew, and then renamed."""
    by_node = {moved_away.get(pair.new.node) for pair in pairs if pair.new is not None}
    return {
        pair.old.origin: pair.name
        for pair in pairs
        if pair.old is not None
        and pair.new is None
        and pair.old.kind is Kind.FILE
        and pair.old.origin
        and pair.name not in by_node
    }


def change_of(
    op: ChangeKind, path: bytes, entry: Entry, *, from_path: bytes | None = None, from_digest: bytes = b""
) -> Change:
    """A change to `path`, where `entry` is what stands there afterwards, or of a deletion before."""
    return Change(
        op=op,
        path=path,
        kind=entry.kind,
        mode=entry.mode,
        size=entry.size,
        digest=entry.digest,
        origin=entry.origin,
        from_path=from_path,
        from_digest=from_digest,
    )
