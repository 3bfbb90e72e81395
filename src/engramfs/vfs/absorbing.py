"""A commit that came another way than a batch (an import, a restore, a tool): the live tree takes it over.

What an agent changed since is newer, so it stays, and its version will be flagged `concurrent`. A fork takes
over what changes in the store below in the same way, name by name. Nothing here awaits.
"""

import time
from typing import TYPE_CHECKING

from engramfs.history.changes import Name
from engramfs.history.commit import Commit
from engramfs.model.entry import Entry
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
    cut, tree = Cut(commit, []), live.tree
    used, files, whole = tree.used, tree.files, True
    for row in commit.rows:
        name = (row.parent, row.name)
        if name in open_names or live.expected.is_coming(name):
            whole = False
            if live.batch is not None and name in open_names:
                live.batch.flags.add("concurrent")
            continue
        set_name(live, name, row.entry)
        node = live.tree.nodes.get(row.entry.node) if row.entry is not None else None
        if node is not None:
            node.last_cut = cut
    if whole:  # names in directories that are not in memory count too
        tree.used, tree.files = used + commit.used_delta, files + commit.files_delta
    cut.is_written(version.number if version is not None else 0)
    tree.ids.at_least(commit.next_node)


def set_name(live: "LiveStore", name: Name, entry: Entry | None, *, recorded: bool = True) -> None:
    """Let a name stand for `entry` in the tree, as far as it is in memory, and other views hear of it.

    A content that is only in memory is void then, unless the entry is not what is `recorded`.
    """
    parent, last = name
    directory = live.tree.nodes.get(parent)
    if parent == keys.NO_PARENT and entry is not None:
        live.tree.apply(Update(entry), 0)
        live.tell(Update(entry), 0)
        return
    if directory is None or directory.children is None:
        return
    before = directory.children.get(last)
    operation = _operation(name, entry, before)
    live.tree.apply(operation, 0)
    if recorded:
        _settle(live, entry, before)
    if before is not None and not before.places:
        _went(live, before)
    live.tell(operation, 0)
    if isinstance(operation, Link):
        # The kernel may still hold the node of an open, deleted file.
        live.tell(Update(operation.entry), 0)


def _operation(name: Name, entry: Entry | None, before: Node | None) -> Operation:
    if entry is None:
        return Unlink(*name, time.time_ns())
    if before is not None and before.id == entry.node:
        return Update(entry)
    return Link(*name, entry)


def _settle(live: "LiveStore", entry: Entry | None, before: Node | None) -> None:
    """What the log says of a node now, beside its entry."""
    node = live.tree.nodes.get(entry.node) if entry is not None else before
    if node is not None and (entry is not None or not node.places):  # another name may say what it holds
        if entry is not None:
            node.sealed_size = content_size(entry)
        node.content = None
        node.born = True


def _went(live: "LiveStore", node: Node) -> None:
    node.sealed_size = -1
    if node.is_directory:
        return
    if any(view.may_be_open(node.id) for view in live.views):
        live.keep_if_open(node, 0)  # no view's number: who has it open and writes is told so
    elif not any(view.holds(node.id) for view in live.views):
        live.let_go(node)
