"""What one author changed in one store since its last version: the names to look at when sealing.

A batch holds no copies. It remembers which names were touched; what they stand for is read from the tree
when the batch is sealed, and compared with the log, so that whatever cancels out makes no version.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from engramfs.history.changes import Name
from engramfs.model.author import Author
from engramfs.model.operation import Link, Note, Operation, Rename, Unlink, Update
from engramfs.vfs.node import Node
from engramfs.vfs.store_tree import StoreTree

if TYPE_CHECKING:
    from engramfs.vfs.cut import Cut


class Batch:
    """The open batch of a store; `opened` and `touched` are monotonic seconds."""

    def __init__(self, author: Author, now: float) -> None:
        self.author = author
        self.opened = now
        self.touched = now
        self.names: dict[Name, None] = {}  # in the order in which they were touched first
        self.directories: set[int] = set()  # whose times changed because a name in them did
        self.bytes = 0  # content that is in memory until the batch is sealed
        self.overwrites: list[Cut] = []  # of other authors, by a later close
        self.overwritten: set[int] = set()  # versions likewise, when replayed
        self.flags: set[str] = set()

    def add(self, names: Iterable[Name]) -> None:
        self.names.update(dict.fromkeys(names))


def touched_by(tree: StoreTree, operation: Operation, view: int) -> tuple[list[Name], list[Node]]:
    """The shared names that an operation is about to touch, and the nodes whose number of links may change.

    Called before the operation is applied.
    """
    if isinstance(operation, Note):
        return [], []
    if isinstance(operation, Update):
        node = tree.node(operation.entry.node)
        return [(place.parent, place.name) for place in tree.all_places(node)], []
    names: list[Name] = []
    nodes: list[Node] = []
    for parent, name, comes in _names(tree, operation, view):
        directory = tree.node(parent)
        found = tree.find(directory, name, view)
        if found is not None and not found.is_directory:
            tree.all_places(found)
            nodes.append(found)
        if not tree.is_scratch(directory, name, comes):
            names.append((parent, name))
    if isinstance(operation, Link):
        known = tree.nodes.get(operation.entry.node)
        if known is not None and not known.is_directory:
            tree.all_places(known)
            nodes.append(known)
    return names, nodes


def _names(
    tree: StoreTree, operation: Link | Unlink | Rename, view: int
) -> Iterator[tuple[int, bytes, Node | None]]:
    """(parent, name, the known node that comes there) of each name of an operation."""
    if not isinstance(operation, Rename):
        yield operation.parent, operation.name, None
        return
    target = tree.node(operation.new_parent)
    other = tree.find(target, operation.new_name, view) if operation.exchange else None
    yield operation.parent, operation.name, other
    yield operation.new_parent, operation.new_name, tree.node(operation.node)


def directories_of(operation: Operation) -> set[int]:
    """The directories whose times an operation changes."""
    match operation:
        case Link(parent=parent) | Unlink(parent=parent):
            return {parent}
        case Rename():
            return {operation.parent, operation.new_parent}
        case _:
            return set()
