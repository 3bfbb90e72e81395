"""A file, directory or symlink of a live tree, in memory."""

from typing import TYPE_CHECKING, NamedTuple

from engramfs.model.entry import Entry, Kind

if TYPE_CHECKING:
    from engramfs.vfs.cut import Cut


class Place(NamedTuple):
    """One name of a node. `view` is 0, or the number of the view in which a transient name lives."""

    parent: int
    name: bytes
    view: int = 0


def content_size(entry: Entry) -> int:
    """Bytes that count as used: those of files alone."""
    return entry.size if entry.kind is Kind.FILE else 0


class Node:
    """Identity and present state; `entry` is replaced whole when something changes.

    Invariants: `children` is None until the directory was read from the log; a directory with changes
    that are not sealed yet stays loaded. `places` has every name of a directory or of a file with one
    name; of a file with more, all of them once `StoreTree.all_places` was called.
    """

    __slots__ = (
        "born",
        "children",
        "content",
        "entry",
        "former",
        "last_cut",
        "places",
        "revision",
        "sealed_size",
    )

    def __init__(self, entry: Entry, *, born: bool = True, sealed: bool = False) -> None:
        self.entry = entry
        self.places: tuple[Place, ...] = ()
        self.former: Place | None = None  # the last name that it lost
        self.children: dict[bytes, Node] | None = None
        self.content: bytes | None = None  # what `entry.digest` names, while it is no blob yet
        self.born = born  # False from create() to the first close(): not to be recorded yet
        self.sealed_size = content_size(entry) if sealed else -1  # in the log's count; -1: not in the log
        self.last_cut: Cut | None = None  # the cut that last took a content of this node
        self.revision = 0  # of `children`

    @property
    def id(self) -> int:
        return self.entry.node

    @property
    def is_directory(self) -> bool:
        return self.entry.kind is Kind.DIRECTORY

    def links_in(self, view: int) -> int:
        """How many names the node has as `view` sees it. A directory has one link, as on btrfs."""
        if self.is_directory:
            return 1 if self.places or self.entry.node == 1 else 0
        return sum(1 for place in self.places if place.view in (0, view))

    def add(self, place: Place) -> None:
        if place not in self.places:
            self.places = (*self.places, place)

    def drop(self, place: Place) -> None:
        if place in self.places:
            self.places = tuple(other for other in self.places if other != place)
            self.former = place
