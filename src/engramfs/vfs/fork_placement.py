"""`engramfs.history.placement` for a live fork: over what is in memory, sealed or not, of it and below."""

from typing import TYPE_CHECKING

from engramfs.errors import NoEntry
from engramfs.history.changes import Name
from engramfs.history.placement import Placement
from engramfs.model.entry import Entry
from engramfs.storage.protocol import Reader
from engramfs.vfs.cut import entry_of
from engramfs.vfs.store_tree import StoreTree

if TYPE_CHECKING:
    from engramfs.vfs.fork_tree import LiveForkTree


def placement(tree: "LiveForkTree", reader: Reader) -> Placement:
    return Placement(LiveOwnNames(tree, reader), LiveBelow(tree.below))


class LiveOwnNames:
    """Those that are shown, and the hidden ones."""

    def __init__(self, tree: "LiveForkTree", reader: Reader) -> None:
        self._tree = tree
        self._recorded = tree.recorded(reader)

    def has(self, name: Name) -> bool:
        return name in self._tree.own or name in self._tree.hidden

    def entry(self, name: Name) -> Entry | None:
        tree, (parent, last) = self._tree, name
        if name in tree.hidden:
            return tree.hidden[name]
        directory = tree.nodes.get(parent)
        if directory is None or directory.children is None:
            return self._recorded.own_entry(parent, last)
        node = directory.children.get(last)
        return entry_of(node) if node is not None else None

    def places(self, node: int) -> list[Name]:
        """What is shown is newer than what is hidden."""
        tree, known = self._tree, self._tree.nodes.get(node)
        names = set(self._recorded.own_places(node))
        names.update(name for name, entry in tree.hidden.items() if entry is not None and entry.node == node)
        names.update(
            (place.parent, place.name) for place in (known.places if known else ()) if not place.view
        )
        found = [name for name in names if self.has(name) and self._stands_for(name, node)]
        return sorted(found, key=lambda name: (name not in tree.hidden, self._recorded.given(*name), name))

    def _stands_for(self, name: Name, node: int) -> bool:
        entry = self.entry(name)
        return entry is not None and entry.node == node


class LiveBelow:
    def __init__(self, tree: StoreTree) -> None:
        self._tree = tree

    def lookup(self, parent: int, name: bytes) -> Entry | None:
        try:
            directory = self._tree.node(parent)
        except NoEntry:  # one that the fork made
            return None
        node = self._tree.children(directory).get(name) if directory.is_directory else None
        return entry_of(node) if node is not None else None

    def place(self, directory: int) -> Name | None:
        try:
            places = self._tree.node(directory).places
        except NoEntry:
            return None
        return next(((place.parent, place.name) for place in places if not place.view), None)
