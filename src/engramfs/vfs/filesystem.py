"""All stores and views of one worker, found by inode number, and the task that seals batches.

View numbers: 0 is the hub. Those below `EPHEMERAL` are given to attachments, those above to `.versions`
and what is entered there, which goes again when the kernel has forgotten it.
"""

import math
import os
import time

import structlog
import trio

from engramfs.errors import Archived, Stale
from engramfs.history import catalog
from engramfs.history.commit import Commit
from engramfs.model.author import Author
from engramfs.model.entry import NODE_BITS
from engramfs.model.store import Store
from engramfs.model.version import Version
from engramfs.vfs.attributes import LONG, Space
from engramfs.vfs.live_store import LiveStore
from engramfs.vfs.live_view import LiveView
from engramfs.vfs.pinned_view import EphemeralPinnedView, PinnedView
from engramfs.vfs.resources import Resources
from engramfs.vfs.synthetic import SyntheticView
from engramfs.vfs.versions_view import VersionsView, ViewStatus
from engramfs.vfs.view import View
from engramfs.vfs.writable_view import WritableView

EPHEMERAL = 1 << 19
_LAST = (1 << 20) - 1
_COMPACT = 16 << 20  # bytes of journal from which on it is worth rewriting
_NODE = (1 << NODE_BITS) - 1
log = structlog.get_logger("engramfs.filesystem")


class Filesystem:
    """The registry. `hub` is the root of the mount."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self.stores: dict[int, LiveStore] = {}
        self.views: dict[int, View] = {}
        self.hub = SyntheticView(0, 0, 0, timeout=1.0)
        self.views[0] = self.hub
        self._shared: dict[tuple[object, ...], View] = {}
        self._next_number = 1
        self._next_ephemeral = EPHEMERAL
        self._changed = trio.Event()
        self._compact_at = _COMPACT

    # Finding

    def find(self, inode: int) -> tuple[View, int]:
        """The view of an inode number and the node id in it. Raises `Stale` when the view has ended."""
        view = self.views.get(inode >> NODE_BITS)
        if view is None:
            raise Stale
        return view, inode & _NODE

    def looked_up(self, inode: int) -> None:
        """The kernel was told an inode number once more."""
        view = self.views.get(inode >> NODE_BITS)
        if view is not None:
            view.looked_up(inode & _NODE)

    def forget(self, inode: int, count: int) -> None:
        """The kernel forgot `count` of those times."""
        view = self.views.get(inode >> NODE_BITS)
        if view is None:
            return
        view.forget(inode & _NODE, count)
        if view.is_ephemeral and not view.lookups:
            self.end(view)

    def space(self) -> Space:
        """What `statfs` shows: of one session, the writable store with the least room; of several, the disk.

        pyfuse3 does not say which inode a `statfs` is about, and one actor must not read off how much
        another keeps.
        """
        writable = [view for view in self.views.values() if isinstance(view, WritableView)]
        if len({view.author.session for view in writable}) == 1:
            return min((view.space() for view in writable), key=lambda space: space.free)
        disk = os.statvfs(self.resources.spool_path)
        return Space(
            total=disk.f_blocks * disk.f_frsize,
            free=disk.f_bavail * disk.f_frsize,
            files=disk.f_files - disk.f_ffree,
            free_files=disk.f_favail,
        )

    # Stores

    def store(self, name: str) -> LiveStore:
        """The live store of that name. Raises `NotFound`."""
        with self.resources.engine.reading() as reader:
            store = catalog.named(reader, name)
            known = self.stores.get(store.id)
            if known is not None:
                return known
            head = catalog.head(reader, store.id)
        live = self.stores[store.id] = LiveStore(self.resources, store, head, self._on_change)
        return live

    def describe(self, store: Store) -> None:
        """A store's limits, description or archived flag are new."""
        live = self.stores.get(store.id)
        if live is not None:
            live.store = store
            live.tree.store = store

    def drop_store(self, store: Store) -> None:
        """A store was deleted: its views are stale from now on."""
        live = self.stores.pop(store.id, None)
        if live is not None:
            live.batch = None
        for view in list(self.views.values()):
            if isinstance(view, LiveView | PinnedView) and _store_of(view).id == store.id:
                self.end(view)

    # Views

    def live_view(self, name: str, uid: int = 0, gid: int = 0) -> LiveView:
        """The read-only view of a store's head; sessions with the same uid and gid share it."""
        store = self.store(name)
        key = ("live", store.store.id, uid, gid)
        view = self._shared.get(key)
        if not isinstance(view, LiveView):
            view = LiveView(self._number(), uid, gid, store)
            self._shared[key] = self._register(view)
        return view

    def pinned_view(self, name: str, version: int, uid: int = 0, gid: int = 0) -> PinnedView:
        """The read-only view of a store at a version; shared likewise."""
        with self.resources.engine.reading() as reader:
            store = catalog.named(reader, name)
        key = ("pinned", store.id, version, uid, gid)
        view = self._shared.get(key)
        if not isinstance(view, PinnedView):
            view = PinnedView(self._number(), uid, gid, self.resources, store, version)
            self._shared[key] = self._register(view)
        return view

    def writable_view(self, name: str, author: Author, uid: int, gid: int) -> WritableView:
        """A view of a session's own. Raises `Archived`."""
        store = self.store(name)
        if store.store.archived:
            raise Archived(f"store {name} is archived; attach it read_only, or open it again with store set")
        view = WritableView(self._number(), uid, gid, store, author)
        self._register(view)
        return view

    def synthetic_view(self, uid: int, gid: int) -> SyntheticView:
        """Directories of a session: the parents of its mount points."""
        view = SyntheticView(self._number(), uid, gid, timeout=LONG)
        self.views[view.number] = view
        return view

    def end(self, view: View) -> None:
        """A view ends: what is still open through it answers ESTALE."""
        self.views.pop(view.number, None)
        for key in [key for key, shared in self._shared.items() if shared is view]:
            del self._shared[key]
        if isinstance(view, LiveView):
            view.close()

    def _register(self, view: LiveView | PinnedView) -> View:
        self.views[view.number] = view
        inner: list[View] = []

        def versions() -> View:
            if not inner or inner[0].number not in self.views:
                inner[:] = [self._versions_view(view, _store_of(view))]
            return inner[0]

        view.versions = versions
        return view

    def _versions_view(self, above: View, store: Store) -> View:
        entered: dict[int, View] = {}

        def enter(number: int) -> View:
            known = entered.get(number)
            if known is None or known.number not in self.views:
                known = EphemeralPinnedView(
                    self._ephemeral(), above.uid, above.gid, self.resources, store, number
                )
                self.views[known.number] = entered[number] = known
            return known

        view = VersionsView(
            self._ephemeral(), above, self.resources, store, enter, lambda: self._status(above, store)
        )
        self.views[view.number] = view
        return view

    def _status(self, view: View, store: Store) -> str:
        live = self.stores.get(store.id)
        author = view.author if isinstance(view, WritableView) else None
        with self.resources.engine.reading() as reader:
            head = catalog.head(reader, store.id).number
        return ViewStatus(
            store=store.name,
            access=view.access.value,
            head=head,
            shown=f"version {view.version}" if isinstance(view, PinnedView) else "live",
            session=(author.session or "") if author is not None else "shared",
            unsealed=len(live.batch.names) if live is not None and live.batch is not None else 0,
            recent=tuple(live.recent) if live is not None else (),
        ).text()

    def _number(self) -> int:
        while self._next_number in self.views:
            self._next_number = self._next_number % (EPHEMERAL - 1) + 1
        number = self._next_number
        self._next_number = self._next_number % (EPHEMERAL - 1) + 1
        return number

    def _ephemeral(self) -> int:
        while self._next_ephemeral in self.views:
            self._next_ephemeral = self._next_ephemeral + 1 if self._next_ephemeral < _LAST else EPHEMERAL
        number = self._next_ephemeral
        self._next_ephemeral = number + 1 if number < _LAST else EPHEMERAL
        return number

    # Sealing

    def _on_change(self, _store: LiveStore) -> None:
        self._changed.set()

    async def seal_when_due(self) -> None:
        """Cut batches that became quiet or old, and trim the journal. Until cancelled."""
        while True:
            self._changed = trio.Event()
            now = time.monotonic()
            for store in self.stores.values():
                due = store.due()
                if due is not None and due <= now:
                    store.cut()
            self.trim_journal()
            waiting = [due for store in self.stores.values() if (due := store.due()) is not None]
            with trio.move_on_after(max(0.0, min(waiting) - time.monotonic()) if waiting else math.inf):
                await self._changed.wait()

    def trim_journal(self) -> None:
        """Drop what every store has in the log."""
        journal = self.resources.journal
        if all(store.is_idle for store in self.stores.values()):
            journal.clear()
        elif journal.size > self._compact_at:
            for store in self.stores.values():
                store.restate()
            needed = {store.store.id: store.oldest_needed() for store in self.stores.values()}
            journal.compact(lambda record: record.position >= needed.get(record.store, record.position + 1))
            self._compact_at = max(_COMPACT, journal.size * 2)

    async def seal_all(self) -> None:
        """Seal every store and wait until all of it is in the log."""
        for store in list(self.stores.values()):
            await store.sealed()
        self.trim_journal()

    def absorb(self, commit: Commit, version: Version | None) -> None:
        """A commit that came another way than through a view is in the log."""
        store = self.stores.get(commit.store)
        if store is not None:
            store.absorb(commit, version)


def _store_of(view: LiveView | PinnedView) -> Store:
    return view.store.store if isinstance(view, LiveView) else view.store
