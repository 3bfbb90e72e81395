"""Where a fork shows a directory that it moved: at one place, so that none comes to lie below itself.

Both may have moved a directory: the fork one into another, and the store below the other into the one. Then
each lies in the other, and nothing leads to them from the root. The directories that the fork moved into such
a loop are shown where the store below has them, and their rows in the fork are hidden. As the store below has
no loop, none is left. What is hidden waits all the same, and is shown again once there is no loop.

Concurrency. None: callers hold the transaction, or stand on the event loop.
"""

from collections.abc import Iterable
from typing import Protocol

from engramfs.history.changes import Name
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.storage import keys


class OwnNames(Protocol):
    """What a fork says of names, whether it is shown or not."""

    def has(self, name: Name) -> bool: ...

    def entry(self, name: Name) -> Entry | None:
        """What a name that it has stands for."""

    def places(self, node: int) -> Iterable[Name]:
        """The names that stand for `node`, the one that was given last at the end."""


class Below(Protocol):
    """The store below."""

    def lookup(self, parent: int, name: bytes) -> Entry | None: ...

    def place(self, directory: int) -> Name | None: ...


class Placement:
    """Valid as long as neither side changes."""

    def __init__(self, own: OwnNames, below: Below) -> None:
        self._own = own
        self._below = below
        self._shown: dict[int, Name | None] = {}  # directories that both have, by node

    def hides(self, name: Name) -> bool:
        """Whether the fork's row of a name is not shown."""
        if name[0] == keys.NO_PARENT:
            return False
        entry, below = self._own.entry(name), self._below.lookup(*name)
        if entry is not None and entry.kind is Kind.DIRECTORY and self._place(entry.node) not in (None, name):
            return True
        is_other = below is not None and (entry is None or entry.node != below.node)
        return below is not None and is_other and self.is_moved(below) and self._place(below.node) == name

    def shows(self, name: Name, below: Entry) -> bool:
        """Whether what the store below has under a name is shown there, and not elsewhere."""
        return not self.is_moved(below) or self._place(below.node) == name

    def is_moved(self, entry: Entry) -> bool:
        """Whether the fork gave a directory a name."""
        return entry.kind is Kind.DIRECTORY and any(True for _ in self._own.places(entry.node))

    def _place(self, directory: int) -> Name | None:
        """Where a directory is shown; None when the store below does not have it: where the fork does."""
        if directory not in self._shown:
            below = self._below.place(directory)
            is_in_loop = below is not None and self.is_in_loop(directory)
            self._shown[directory] = below if is_in_loop or below is None else self._wanted(directory)
        return self._shown[directory]

    def is_in_loop(self, directory: int) -> bool:
        """Whether no way leads up from a directory, but round and round, if every row of the fork counts."""
        seen: set[int] = set()
        while directory not in (ROOT_NODE, keys.NO_PARENT):
            if directory in seen:
                return True
            seen.add(directory)
            place = self._wanted(directory)
            if place is None:
                return False
            directory = place[0]
        return False

    def _wanted(self, directory: int) -> Name | None:
        """Where a directory is if every row of the fork counts."""
        own = list(self._own.places(directory))
        if own:
            return own[-1]
        below = self._below.place(directory)
        return below if below is not None and not self._own.has(below) else None
