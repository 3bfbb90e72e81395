"""The one call that an earlier worker may have done and not answered: the kernel asks for it again.

Calls on names are done and answered one at a time, so at most one was done without an answer: the last
one in the journal. It comes back before anything new, so only the first such call after a takeover can be
it, and only if the same thread of the same process makes it. When it was answered after all (the worker
died right after that), nothing comes back, and the first call is somebody's new one; then it is not taken
for the old one unless it is the same call of the same thread, on a tree that looks as if it was done.
"""

from engramfs.model.operation import Link, Note, Operation, Rename, Unlink, Update
from engramfs.storage.journal import Record
from engramfs.vfs.node import Node
from engramfs.vfs.store_tree import StoreTree


class Repeated:
    """`expect` at a takeover, `calling` before each call on a name, `operation` to recognise it."""

    def __init__(self) -> None:
        self._record: Record | None = None
        self._caller = 0
        self._is_first = True

    def expect(self, record: Record, caller: int) -> None:
        """`record` may have had no answer; `caller` is the thread id that the kernel gave for it."""
        self._record, self._caller = record, caller

    def calling(self, caller: int) -> None:
        """A call on a name begins."""
        if self._record is not None:
            if not self._is_first or caller != self._caller:
                self._record = None
            self._is_first = False

    def operation(self, store: int, view: int) -> Operation | None:
        """What was done already, if the present call may be that one and came through this view."""
        record = self._record
        if record is None or (record.store, record.view) != (store, view):
            return None
        return record.operation


class DoneBefore:
    """Whether the present call through one view is the one that was done, and the tree still shows it."""

    def __init__(self, repeated: Repeated, tree: StoreTree, view: int) -> None:
        self._repeated = repeated
        self._tree = tree
        self._view = view

    def _operation(self) -> Operation | None:
        return self._repeated.operation(self._tree.store.id, self._view)

    def _found(self, parent: int, name: bytes) -> Node | None:
        return self._tree.find(self._tree.node(parent), name, self._view)

    def linked(self, parent: int, name: bytes) -> Node | None:
        """What was linked there."""
        done = self._operation()
        if not isinstance(done, Link) or (done.parent, done.name) != (parent, name):
            return None
        found = self._found(parent, name)
        return found if found is not None and found.id == done.entry.node else None

    def unlinked(self, parent: int, name: bytes) -> bool:
        done = self._operation()
        same = isinstance(done, Unlink) and (done.parent, done.name) == (parent, name)
        return same and self._found(parent, name) is None

    def renamed(self, parent: int, name: bytes, new_parent: int, new_name: bytes) -> bool:
        done = self._operation()
        if not isinstance(done, Rename) or (done.parent, done.name) != (parent, name):
            return False
        if (done.new_parent, done.new_name) != (new_parent, new_name):
            return False
        found = self._found(new_parent, new_name)
        return found is not None and found.id == done.node

    def updated(self, node: int) -> bool:
        done = self._operation()
        return isinstance(done, Update) and done.entry.node == node

    def noted(self) -> bool:
        return isinstance(self._operation(), Note)
