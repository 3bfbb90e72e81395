"""Whether a rename makes sense: everything that is checked before it is recorded."""

from engramfs.errors import (
    CrossesViews,
    EntryExists,
    InvalidArgument,
    IsDirectory,
    NoEntry,
    NotDirectory,
    NotEmpty,
)
from engramfs.vfs.node import Node
from engramfs.vfs.store_tree import StoreTree

NOREPLACE, EXCHANGE = 1, 2  # flags of renameat2(2)


def check_flags(flags: int) -> None:
    """Raises `InvalidArgument` for flags that nobody knows here."""
    if flags & ~(NOREPLACE | EXCHANGE):
        raise InvalidArgument


def check_rename(
    tree: StoreTree, view: int, moved: Node, source: Node, target: Node, replaced: Node | None, flags: int
) -> None:
    """`moved` leaves the directory `source` for `target`, where `replaced` has the name now.

    Raises what rename(2) says of it.
    """
    _check_place(tree, moved, target)
    if flags & EXCHANGE:
        if replaced is None:
            raise NoEntry
        _check_place(tree, replaced, source)
    elif replaced is not None and replaced is not moved:
        if flags & NOREPLACE:
            raise EntryExists
        _check_replaced(tree, view, moved, replaced)


def _check_replaced(tree: StoreTree, view: int, moved: Node, replaced: Node) -> None:
    if replaced.is_directory and not moved.is_directory:
        raise IsDirectory
    if moved.is_directory and not replaced.is_directory:
        raise NotDirectory
    if replaced.is_directory and not tree.is_empty(replaced, view):
        raise NotEmpty


def _check_place(tree: StoreTree, node: Node, directory: Node) -> None:
    """A directory goes neither below itself nor, if versions have it, below a transient one.

    All of it would leave the log. As between filesystems: mv(1) copies then.
    """
    if not node.is_directory:
        return
    if _lies_below(tree, directory, node):
        raise InvalidArgument
    if tree.is_reachable(node) and not tree.is_reachable(directory):
        raise CrossesViews


def _lies_below(tree: StoreTree, node: Node | None, above: Node) -> bool:
    while node is not None and node is not tree.root:
        if node is above:
            return True
        node = tree.nodes.get(node.places[0].parent) if node.places else None
    return False
