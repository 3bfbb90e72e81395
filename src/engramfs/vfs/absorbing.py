"""A commit that came another way than a batch (an import, a restore, a tool): the live tree takes it over.

What an agent changed since is newer, so it stays, and its version will be flagged `concurrent`. Nothing here
awaits.
"""

import time
from typing import TYPE_CHECKING

from engramfs.history.commit import Commit, RowChange
from engramfs.model.operation import Link, Operation, Unlink, Update
from engramfs.model.version import Version
from engramfs.storage import keys
from engramfs.vfs.cut import Cut
from engramfs.vfs.node import Node, content_size

if TYPE_CHECKING:
    from engramfs.vfs.live_store import LiveStore


def absorb(live: "LiveStore", commit: Commit, version: Version | None) -> None:
    """Let the tree of `live` be what `commit` made of the log, and the other views hear of it."""
    open_names = live.batch.names if live.batch is not None else {}
    cut = Cut(commit, [])
    for row in commit.rows:
        if (row.parent, row.name) in open_names:
            assert live.batch is not None
            live.batch.flags.add("concurrent")
            continue
        _absorb_row(live, row)
        node = live.tree.nodes.get(row.entry.node) if row.entry is not None else None
        if node is not None:
            node.last_cut = cut
    cut.is_written(version.number if version is not None else 0)
    live.tree.next_node_at_least(commit.next_node)


def _absorb_row(live: "LiveStore", row: RowChange) -> None:
    directory = live.tree.nodes.get(row.parent)
    if row.parent == keys.NO_PARENT and row.entry is not None:
        live.tree.apply(Update(row.entry), 0)
        live.tell(Update(row.entry), 0)
        return
    if directory is None or directory.children is None:
        return
    before = directory.children.get(row.name)
    operation = _operation(row, before)
    live.tree.apply(operation, 0)
    _settle(live, row, before)
    live.tell(operation, 0)
    if isinstance(operation, Link):
        # The kernel may still hold the node of an open, deleted file.
        live.tell(Update(operation.entry), 0)


def _operation(row: RowChange, before: Node | None) -> Operation:
    if row.entry is None:
        return Unlink(row.parent, row.name, time.time_ns())
    if before is not None and before.id == row.entry.node:
        return Update(row.entry)
    return Link(row.parent, row.name, row.entry)


def _settle(live: "LiveStore", row: RowChange, before: Node | None) -> None:
    """What the log says of a node now, beside its entry."""
    node = live.tree.nodes.get(row.entry.node) if row.entry is not None else before
    if node is None:
        return
    if row.entry is not None:
        node.sealed_size = content_size(row.entry)
    elif not node.places:
        _went(live, node)
    node.content = None
    node.born = True


def _went(live: "LiveStore", node: Node) -> None:
    node.sealed_size = -1
    if any(view.may_be_open(node.id) for view in live.views):
        live.removed_by[node.id] = 0  # no view's number: who has it open and writes is told so
    elif not node.is_directory and not any(view.holds(node.id) for view in live.views):
        live.let_go(node)
