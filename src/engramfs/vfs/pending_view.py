"""`.versions/pending`: what waits, each as the whole tree that it would make.

    <number>/     the tree with that pending version

A session sees there what it offered itself, and nobody else does: what waits for a person is not read by
other agents meanwhile. In the hub, `pending/<store>/` has all of it, for people. What is open is listed;
what was decided can still be entered, while what it was made from is kept.
"""

import stat
import time
from collections.abc import Callable

from engramfs.errors import IsDirectory, NoEntry, NotFound, ReadOnly
from engramfs.history import catalog, pending
from engramfs.history.offered import require_base
from engramfs.model.entry import ROOT_NODE
from engramfs.model.pending import Pending
from engramfs.model.store import Store
from engramfs.storage.protocol import Reader
from engramfs.vfs.attributes import BLOCK, Attributes, Listed, Opened
from engramfs.vfs.resources import Resources
from engramfs.vfs.view import View, in_order

_NUMBER = 1 << 34  # node id of number n, in listings: _NUMBER + n


class PendingView(View):
    """What waits for `store`; with `owner` only what that fork owner offered. `enter` gives a tree's view."""

    def __init__(
        self,
        number: int,
        uid: int,
        gid: int,
        resources: Resources,
        store: Store,
        owner: str | None,
        enter: Callable[[Pending], View],
    ) -> None:
        super().__init__(number, uid, gid)
        self._resources = resources
        self._store = store
        self._owner = owner
        self._enter = enter
        self._opened = time.time_ns()

    def enter(self, number: int) -> View:
        """The tree of a pending version. Raises `NotFound`."""
        with self._resources.engine.reading() as reader:
            offered = pending.get(reader, self._store, number)
            if not self._is_shown(reader, offered):
                raise NotFound(f"pending {number} is another session's")
            require_base(reader, self._store, offered)
        return self._enter(offered)

    def _is_shown(self, reader: Reader, offered: Pending) -> bool:
        return self._owner is None or catalog.get(reader, offered.fork).owner == self._owner

    def lookup(self, parent: int, name: bytes) -> Attributes:
        if parent == ROOT_NODE and name.isdigit() and name == str(int(name)).encode():
            try:
                return self.enter(int(name)).attributes(ROOT_NODE)
            except NotFound:
                raise NoEntry from None
        raise NoEntry

    def attributes(self, node: int) -> Attributes:
        if node != ROOT_NODE:
            raise NoEntry
        return self.made_up(node, stat.S_IFDIR | 0o555, BLOCK, self._opened)

    def listing(self, node: int) -> list[Listed]:
        with self._resources.engine.reading() as reader:
            waiting = pending.waiting(reader, self._store.id)
            numbers = [each.number for _, each in waiting if self._is_shown(reader, each)]
        return in_order((str(number).encode(), _NUMBER + number) for number in numbers)

    def listed(self, parent: int, item: Listed) -> Attributes | None:
        return self.enter(int(item.name)).attributes(ROOT_NODE)

    def open(self, node: int, *, write: bool, truncate: bool) -> Opened:
        if write or truncate:
            raise ReadOnly
        raise IsDirectory


class EphemeralPendingView(PendingView):
    """That of one session's view: it goes when the kernel has forgotten all of it."""

    is_ephemeral = True
