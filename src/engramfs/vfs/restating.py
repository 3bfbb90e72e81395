"""What only the journal knows, written down anew, so that its older records can go.

Transient names, files that were never closed, what lies below a transient directory and messages that wait
are in no version, however long they live. Each cut is followed by records of their present state. So
everything before a cut is in the log or said again after it: a replay never begins in the middle of what is
recorded already, and an editor that is open for a week does not keep a week of records.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from engramfs.model.author import SYSTEM
from engramfs.model.entry import Kind
from engramfs.model.operation import Link, Note, Update
from engramfs.storage.journal import Journal, Record
from engramfs.vfs.messages import WaitingMessages
from engramfs.vfs.node import Node, Place
from engramfs.vfs.store_tree import StoreTree

replace = msgspec.structs.replace


class Stated(NamedTuple):
    """What was written down."""

    first: int  # position of the first record
    nodes: list[Node]  # whose content the records only name: it has to become a blob


def restate(
    journal: Journal, tree: StoreTree, places: Iterable[Place], messages: WaitingMessages, *, inline: bool
) -> Stated:
    """Append the `messages`, and the state of `places`, parents first; contents too when `inline`.

    Raises `Full`.
    """
    first, nodes = journal.position + 1, []
    for author, text in messages.items():
        _append(journal, Record(0, tree.store.id, author, 0, Note(text)))
    for place in sorted(places, key=lambda place: (_depth(tree, place), place)):
        node = _at(tree, place)
        if node is None:
            continue
        link = Link(place.parent, place.name, node.entry)
        _append(journal, Record(0, tree.store.id, SYSTEM, place.view, link, closed=node.born))
        if node.entry.kind is Kind.FILE and node.born and node.content is not None:
            content = node.content if inline else None
            update = Update(node.entry)
            _append(journal, Record(0, tree.store.id, SYSTEM, place.view, update, content, closed=True))
            nodes.append(node)
    return Stated(first, [] if inline else nodes)


def _append(journal: Journal, record: Record) -> None:
    journal.append(replace(record, position=journal.position + 1))


def _at(tree: StoreTree, place: Place) -> Node | None:
    directory = tree.nodes.get(place.parent)
    return tree.find(directory, place.name, place.view) if directory is not None else None


def _depth(tree: StoreTree, place: Place) -> int:
    return tree.path(place.parent, place.name).count(b"/")
