"""What only the journal knows, written down anew, so that its older records can go.

Transient names, files that were never closed and what lies below a transient directory are in no version,
however long they live. An editor that is open for a week must not keep a week of records: when the
journal has grown, their present state is appended as fresh records.
"""

from collections.abc import Iterable

from engramfs.model.author import Author
from engramfs.model.entry import Kind
from engramfs.model.operation import Link, Operation, Update
from engramfs.storage.journal import Journal, Record
from engramfs.vfs.node import Node, Place
from engramfs.vfs.store_tree import StoreTree


def restate(journal: Journal, tree: StoreTree, author: Author, places: Iterable[Place]) -> int:
    """Append the state of `places`, parents first; the position of the first record. Raises `Full`."""
    first = journal.position + 1
    for place in sorted(places, key=lambda place: (_depth(tree, place), place)):
        node = _at(tree, place)
        if node is None:
            continue
        _append(journal, tree, author, place, Link(place.parent, place.name, node.entry), node)
        if node.entry.kind is Kind.FILE and node.born:
            _append(journal, tree, author, place, Update(node.entry), node)
    return first


def _append(
    journal: Journal, tree: StoreTree, author: Author, place: Place, operation: Operation, node: Node
) -> None:
    content = node.content if isinstance(operation, Update) else None
    position = journal.position + 1
    journal.append(Record(position, tree.store.id, author, place.view, operation, content, closed=node.born))


def _at(tree: StoreTree, place: Place) -> Node | None:
    directory = tree.nodes.get(place.parent)
    return tree.find(directory, place.name, place.view) if directory is not None else None


def _depth(tree: StoreTree, place: Place) -> int:
    return tree.path(place.parent, place.name).count(b"/")
