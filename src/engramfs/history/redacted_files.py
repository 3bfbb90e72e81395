"""Which files of an old tree have no content any more, and what the head has for them.

A file whose old content was redacted is not lost because its directory is restored: it gets its old name
back, with what it holds now. A name that the redaction took out as well is in no tree, so it is not known
here. Functions take trees of one transaction.
"""

from collections.abc import Iterator

from engramfs.history.tree import Tree, walk
from engramfs.model.entry import Entry, Kind

Placed = list[tuple[bytes, Entry]]  # (path, entry)


def redacted_paths(tree: Tree, path: bytes = b"") -> list[bytes]:
    """The files at and below `path` whose content was taken out."""
    return [where for where, entry in walk(tree, path) if entry.is_redacted]


class Present:
    """What the head has, at and below one path, for the redacted files among `old`."""

    def __init__(self, head: Tree, path: bytes, old: Placed) -> None:
        self._head = head
        self._known = {entry.node for _, entry in old}  # each goes back to where it was, if it is there still
        self._found: dict[bytes, Entry] = {}
        redacted = [(where, entry) for where, entry in old if entry.is_redacted]
        if redacted:
            self._find(redacted, path, {entry.node for _, entry in old if not entry.is_redacted})

    def of(self, where: bytes) -> Iterator[tuple[bytes, Entry]]:
        """What stands for the redacted file at `where`: itself as it is now, else what has its name now."""
        if where in self._found:
            yield where, self._found[where]
            return
        taken = self._known | {entry.node for entry in self._found.values()}
        there = list(walk(self._head, where))
        if not any(entry.node in taken for _, entry in there):
            yield from there

    def _find(self, redacted: Placed, path: bytes, readable: set[int]) -> None:
        files = {where: entry for where, entry in walk(self._head, path) if entry.kind is Kind.FILE}
        free = {entry.node: entry for entry in files.values() if entry.node not in readable}
        for where, entry in redacted:
            here = files.get(where)
            if here is not None and here.node in free and _is_same_file(here, entry):
                self._found[where] = here
        for entry in self._found.values():
            free.pop(entry.node, None)
        for where, entry in redacted:
            if where not in self._found and (now := self._elsewhere(entry, free)) is not None:
                self._found[where] = free.pop(now.node)

    def _elsewhere(self, entry: Entry, free: dict[int, Entry]) -> Entry | None:
        """The same file under another name; one that was saved anew is another node of the same origin."""
        saved_anew = (one for one in free.values() if one.node not in self._known)
        return free.get(entry.node) or next((one for one in saved_anew if _is_same_file(one, entry)), None)


def _is_same_file(one: Entry, other: Entry) -> bool:
    return one.node == other.node or (one.origin != 0 and one.origin == other.origin)
