"""What looks like a secret does not become the file, where the store refuses that: nothing of it is kept.

Neither the log nor the journal gets it, nor a pending version. The file is what it was before: one that was
created by the opening that wrote it, and that nothing else became of, is no more once it is closed. It stays
where it was renamed meanwhile, since another file may have been replaced by it.

A name, a symbolic link's target, an extended attribute or a message that looks like one is refused before
anything is recorded.
"""

import time
from typing import TYPE_CHECKING, NoReturn

import trio

from engramfs.errors import HoldsSecret
from engramfs.history import hygiene
from engramfs.model.entry import EMPTY_DIGEST
from engramfs.model.names import printable
from engramfs.model.operation import Unlink, Update
from engramfs.vfs.fork import Fork
from engramfs.vfs.node import Node
from engramfs.vfs.open_file import OpenFile
from engramfs.vfs.spool import Spool

if TYPE_CHECKING:
    from engramfs.vfs.writable_view import WritableView


class RefusedSecrets:
    """Those of one writable view. What is checked is about to be recorded."""

    def __init__(self, view: "WritableView") -> None:
        self._view = view
        self._store = view.store

    @property
    def _is_on(self) -> bool:
        store = self._store.below if isinstance(self._store, Fork) else self._store
        return store.store.secrets == "refuse"

    def check(self, file: OpenFile, spool: Spool, digest: bytes, content: bytes) -> None:
        """Of a content in memory. Raises `HoldsSecret`."""
        if self._is_on and digest != file.node.entry.digest:
            self._refuse_if(hygiene.objection(content), file, spool)

    async def check_large(self, file: OpenFile, spool: Spool) -> None:
        """Of one in the spool; in a thread. Raises `HoldsSecret`."""
        if self._is_on:
            beginning = spool.read(0, hygiene.LOOKED_AT)
            objection = await trio.to_thread.run_sync(hygiene.objection, beginning)
            self._refuse_if(objection, file, spool)

    def check_name(self, parent: int, name: bytes) -> None:
        """Of a name that is to be new. Raises `HoldsSecret`, as the following do."""
        if self._is_on:
            path = self._store.tree.path(parent, name)
            objection = hygiene.name_objection(path)
            if objection is not None:
                self._refuse(objection.to_name(path))

    def check_target(self, parent: int, name: bytes, target: bytes) -> None:
        """Where a symbolic link leads; empty of what is none."""
        if target and self._is_on and (objection := hygiene.objection(target)) is not None:
            self._refuse(objection.to_target(printable(self._store.tree.path(parent, name))))

    def check_attribute(self, node: Node, name: bytes, value: bytes) -> None:
        """An extended attribute."""
        if self._is_on and (objection := hygiene.attribute_objection(name, value)) is not None:
            self._refuse(objection.to_attribute(printable(self._store.tree.path_of(node)) or "the root"))

    def check_message(self, text: str) -> None:
        """What is said of the next version."""
        if self._is_on:
            try:
                hygiene.check_message(text)
            except HoldsSecret as error:
                self._refuse(error)

    def _refuse(self, error: HoldsSecret) -> NoReturn:
        self._store.remember(error.message)
        raise error

    def take_back(self, file: OpenFile) -> None:
        """Nobody has `file` open any more: if all that was to be in it was refused, its name goes."""
        node = file.node
        if not file.is_refused:
            return
        if node.entry.digest == EMPTY_DIGEST and node.places == file.created_as:
            for place in node.places:
                unlinked = Unlink(place.parent, place.name, time.time_ns())
                self._store.record(self._view.number, self._view.author, unlinked)
                self._view.changed(unlinked)  # the kernel knows nothing of it
        elif node.places and not node.born:
            stays = Update(node.entry)
            self._store.record(self._view.number, self._view.author, stays, content=node.content, closed=True)

    def _refuse_if(self, objection: hygiene.Objection | None, file: OpenFile, spool: Spool) -> None:
        if objection is None:
            return
        self._store.dirty.discard(spool)
        spool.refuse()
        file.is_refused = True
        self._view.pages_are_void(file.node.id)
        self._refuse(objection.to(printable(self._store.tree.path_of(file.node))))
