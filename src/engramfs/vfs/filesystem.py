"""All stores and views of one worker, found by inode number, and the task that seals batches.

View numbers come from `ViewNumbers`. A worker that took a mount over is asked for inodes of views that it
has not made yet: `find` makes them from their keys.
"""

import math
import os
import time
from functools import partial

import msgspec
import structlog
import trio

from engramfs.errors import Archived, NotFound, Stale, StorageError
from engramfs.history import catalog, forks
from engramfs.history.approval import Approved, Decided
from engramfs.history.commit import Commit
from engramfs.model.author import Author
from engramfs.model.entry import NODE_BITS, NODE_MASK
from engramfs.model.store import Store
from engramfs.model.version import Version
from engramfs.vfs.ask_view import AskView
from engramfs.vfs.attributes import LONG, Space, inode_number
from engramfs.vfs.fork import Fork
from engramfs.vfs.hidden_views import HiddenViews
from engramfs.vfs.live_store import LiveStore
from engramfs.vfs.live_view import LiveView
from engramfs.vfs.pinned_view import PinnedView
from engramfs.vfs.resources import Resources
from engramfs.vfs.synthetic import SyntheticView
from engramfs.vfs.view import View
from engramfs.vfs.view_numbers import Key, ViewNumbers
from engramfs.vfs.writable_view import WritableView

_COMPACT = 16 << 20  # bytes of journal from which on it is worth rewriting
replace = msgspec.structs.replace
log = structlog.get_logger("engramfs.filesystem")


class Filesystem:
    """The registry. `hub` is the root of the mount."""

    def __init__(
        self, resources: Resources, numbers: ViewNumbers | None = None, *, resumed: bool = False
    ) -> None:
        self.resources = resources
        self.stores: dict[int, LiveStore] = {}
        self.views: dict[int, View] = {}
        self.hub = SyntheticView(0, 0, 0, timeout=1.0)
        self.views[0] = self.hub
        self._numbers = numbers or ViewNumbers()
        self._hidden = HiddenViews(resources, self._numbers, self.views, self.stores, self._add)
        self._resumed = self._replaying = resumed
        self._unused: set[int] = set()  # forks that ended without a version
        self._changed = trio.Event()
        self._compact_at = self._next_compaction(0)

    # Finding

    def find(self, inode: int) -> tuple[View, int]:
        """The view of an inode number and the node id in it. Raises `Stale` when the view has ended."""
        view = self.views.get(inode >> NODE_BITS) or self._revive(inode >> NODE_BITS)
        return view, inode & NODE_MASK

    def _revive(self, number: int) -> View:
        """A view that an earlier worker showed, made again. Raises `Stale`."""
        key = self._numbers.key(number) if self._resumed else None
        try:
            match key:
                case ("live", int(store), int(uid), int(gid)):
                    return self.live_view(self._name_of(store), uid, gid)
                case ("pinned", int(store), int(version), int(uid), int(gid)):
                    return self.pinned_view(self._name_of(store), version, uid, gid)
                case None:
                    raise Stale
                case _:
                    view = self._hidden.revive(key, lambda each: self.find(each << NODE_BITS)[0])
        except NotFound:
            raise Stale from None
        if view is None:
            raise Stale
        return view

    def _name_of(self, store: int) -> str:
        with self.resources.engine.reading() as reader:
            return catalog.get(reader, store).name

    def looked_up(self, inode: int) -> None:
        """The kernel was told an inode number once more."""
        view = self.views.get(inode >> NODE_BITS)
        if view is not None:
            view.looked_up(inode & NODE_MASK)

    def forget(self, inode: int, count: int) -> None:
        """The kernel forgot `count` of those times."""
        view = self.views.get(inode >> NODE_BITS)
        if view is None:
            return
        view.forget(inode & NODE_MASK, count)
        if view.is_ephemeral and not view.lookups and not view.unknown_below:
            self.end(view)

    def space(self) -> Space:
        """What `statfs` shows: of one session, the writable store with the least room; of several, the disk.

        pyfuse3 does not say which inode a `statfs` is about, and one actor must not read off how much
        another keeps.
        """
        writable = self.writable_views()
        if len({view.author.session for view in writable}) == 1:
            return min((view.space() for view in writable), key=lambda space: space.free)
        disk = os.statvfs(self.resources.spool_path)
        return Space(
            total=disk.f_blocks * disk.f_frsize,
            free=disk.f_bavail * disk.f_frsize,
            files=disk.f_files - disk.f_ffree,
            free_files=disk.f_favail,
        )

    def writable_views(self) -> list[WritableView]:
        return [view for view in self.views.values() if isinstance(view, WritableView)]

    def unmade_views(self) -> list[tuple[int, Key]]:
        """The numbers and keys of views that an earlier worker showed and that nobody asked for since."""
        return [(number, key) for number, key in self._numbers.items() if number not in self.views]

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

    def store_numbered(self, identifier: int) -> LiveStore:
        """The live store, or fork, of that id. Raises `NotFound`."""
        known = self.stores.get(identifier)
        if known is not None:
            return known
        with self.resources.engine.reading() as reader:
            store = catalog.get(reader, identifier)
        return self.fork(identifier) if store.base else self.store(store.name)

    def fork(self, identifier: int) -> Fork:
        """The fork of that id, over its live store. Raises `NotFound`."""
        known = self.stores.get(identifier)
        if isinstance(known, Fork):
            return known
        with self.resources.engine.reading() as reader:
            store = forks.as_base(reader, catalog.get(reader, identifier))
            head = catalog.head(reader, identifier)
        below = self.store_numbered(store.base)
        fork = self.stores[identifier] = Fork(self.resources, store, head, self._on_change, below)
        return fork

    def describe(self, store: Store) -> None:
        """A store's limits, description or archived flag are new."""
        live = self.stores.get(store.id)
        if live is not None:
            live.describe(store)
        for fork in self._forks_of(store):
            fork.describe(replace(fork.store, limits=store.limits, archived=store.archived))

    def _forks_of(self, store: Store) -> list[Fork]:
        return [
            live for live in self.stores.values() if isinstance(live, Fork) and live.store.base == store.id
        ]

    def drop_store(self, store: Store) -> None:
        """A store was deleted: its views are stale from now on, and those of its forks."""
        for fork in self._forks_of(store):
            self.drop_store(fork.store)
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
        number = self._numbers.of(("live", store.store.id, uid, gid))
        view = self.views.get(number)
        if not isinstance(view, LiveView):
            view = LiveView(number, uid, gid, store)
            self._register(view, store.store)
        return view

    def pinned_view(self, name: str, version: int, uid: int = 0, gid: int = 0) -> PinnedView:
        """The read-only view of a store at a version; shared likewise."""
        with self.resources.engine.reading() as reader:
            store = catalog.named(reader, name)
        number = self._numbers.of(("pinned", store.id, version, uid, gid))
        view = self.views.get(number)
        if not isinstance(view, PinnedView):
            view = PinnedView(number, uid, gid, self.resources, store, version)
            self._register(view, store)
        return view

    def writable_view(self, name: str, author: Author, uid: int, gid: int, path: str = "") -> WritableView:
        """A view of a session's own, attached at `path` of it. Raises `Archived`."""
        store = self.store(name)
        if store.store.archived:
            raise Archived(f"store {name} is archived; attach it read_only, or open it again with store set")
        number = self._numbers.of(("writable", author.session or "", name, path))
        if number in self.views:
            number = self._numbers.of(("writable", author.session or "", name, path, len(self.views)))
        view = WritableView(number, uid, gid, store, author)
        self._register(view, store.store)
        return view

    def ask_view(self, fork: int, author: Author, uid: int, gid: int, path: str = "") -> AskView:
        """The view of a session's own fork. Raises `Archived` and `NotFound`."""
        store = self.fork(fork)
        if store.store.archived:
            raise Archived(f"store {store.store.name} is archived; attach it read_only")
        number = self._numbers.of(("ask", author.session or "", fork, path))
        view = AskView(number, uid, gid, store, author)
        self._register(view, store.below.store)
        return view

    def synthetic_view(self, session: str, uid: int, gid: int) -> SyntheticView:
        """Directories of a session: the parents of its mount points."""
        view = SyntheticView(self._numbers.of(("layout", session)), uid, gid, timeout=LONG)
        self._add(view)
        return view

    def replayed(self) -> None:
        """All that an earlier worker recorded is in the trees: nodes that come now are new to the kernel."""
        for store in self.stores.values():
            store.replayed()
        self._replaying = False
        for view in self.views.values():
            if isinstance(view, LiveView):
                view.unknown_below = view.store.tree.next_node

    def end(self, view: View) -> None:
        """A view ends: what is still open through it answers ESTALE."""
        for number in (view.number, *self._below(view)):
            self.views.pop(number, None)
            self._numbers.end(number)
        if isinstance(view, LiveView):
            view.close()
            self._on_change(view.store)

    def revoke(self, view: View) -> None:
        """End a view, and let the kernel drop every page and attribute that it holds of it."""
        held = {view.number: view.held()}
        for number in self._below(view):
            below = self.views.get(number)
            unknown = below is None or below.unknown_below
            held[number] = view.every_node() if unknown or below is None else below.held()
        self.end(view)
        for number, nodes in held.items():
            for node in nodes:
                self.resources.invalidator.inode_changed(inode_number(number, node), content=True)

    def _below(self, view: View) -> list[int]:
        """The numbers of `.versions` of a view, and of what was entered there."""
        return [] if view.is_ephemeral else self._numbers.below(view.number)

    def _add(self, view: View) -> None:
        if self._resumed:
            view.unknown_below = 1 << NODE_BITS
            if isinstance(view, LiveView) and not self._replaying:
                view.unknown_below = view.store.tree.next_node
        self.views[view.number] = view

    def _register(self, view: LiveView | PinnedView, store: Store) -> None:
        self._add(view)
        view.versions = lambda: self._hidden.versions(view, store)

    def waiting_view(self, name: str) -> View:
        """All that waits for a store, for people. Raises `NotFound`."""
        with self.resources.engine.reading() as reader:
            return self._hidden.waiting(catalog.named(reader, name))

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
            self._let_forks_go()
            waiting = [due for store in self.stores.values() if (due := store.due()) is not None]
            with trio.move_on_after(max(0.0, min(waiting) - time.monotonic()) if waiting else math.inf):
                await self._changed.wait()

    def _let_forks_go(self) -> None:
        """Drop forks whose session has ended, once the log has all of them."""
        for fork in [live for live in self.stores.values() if isinstance(live, Fork)]:
            if fork.is_idle and not fork.views:
                del self.stores[fork.store.id]
                fork.close()
                if not fork.head.number:
                    self._unused.add(fork.store.id)

    def drop_unused_forks(self) -> None:
        """From the log: those without a version that no session has. A worker died when it opened one."""
        with self.resources.engine.reading() as reader:
            known = {identifier for identifier, _ in forks.every(reader)}
        self._unused |= known - self.stores.keys()

    def _drop_unused(self) -> None:
        """No journal record names the forks any more that ended without a version: the log loses them too."""
        unused, self._unused = self._unused, set()
        for identifier in unused - self.stores.keys():
            drop = partial(forks.drop_if_unused, identifier=identifier)
            self.resources.writer.submit(drop, lambda _: None)

    def trim_journal(self) -> None:
        """Drop what every store has in the log."""
        journal = self.resources.journal
        try:
            if all(store.is_idle for store in self.stores.values()):
                journal.clear()
                self._drop_unused()
            elif journal.size > self._compact_at:
                self._compact()
        except StorageError as error:  # the journal is as it was
            self.resources.failed("", error.message)

    def compact_journal(self) -> None:
        """Leave nothing in the journal but what some store needs yet."""
        if self.resources.journal.records:
            self._compact()

    def _compact(self) -> None:
        journal = self.resources.journal
        try:
            for store in self.stores.values():
                store.restate()
            needed = {store.store.id: store.oldest_needed() for store in self.stores.values()}
            journal.compact(lambda record: record.position >= needed.get(record.store, math.inf))
        finally:
            self._compact_at = self._next_compaction(journal.size)

    def unsealed_records(self) -> int:
        """How many journal records the log does not have; fewer than there are in the file, perhaps."""
        return sum(store.accounting.unsealed(is_idle=store.is_idle) for store in self.stores.values())

    def _next_compaction(self, size: int) -> int:
        """The size at which the journal is worth rewriting again, when `size` bytes of it are needed."""
        allowed = self.resources.journal.max_bytes
        return min(max(_COMPACT, size * 2), (size + allowed) // 2)

    async def seal_all(self) -> None:
        """Seal every store, with what found no room when it was closed, and wait for the log to have it."""
        await self.resources.failed_closes.try_again()
        for store in list(self.stores.values()):
            await store.sealed()
            while store.offers and not self.resources.writer.trouble:
                with trio.move_on_after(0.1):
                    await store.offers[0].wait()
        self.trim_journal()

    def settle(self, decided: Decided) -> None:
        """A person decided on what is pending: the live trees show what became of it."""
        if isinstance(decided, Approved):
            self.absorb(decided.commit, decided.version)
        fork = self.stores.get(decided.pending.fork)
        if isinstance(fork, Fork):
            fork.settle(decided.names)

    def absorb(self, commit: Commit, version: Version | None) -> None:
        """A commit that came another way than through a view is in the log."""
        store = self.stores.get(commit.store)
        if store is not None:
            store.absorb(commit, version)


def _store_of(view: LiveView | PinnedView) -> Store:
    return view.store.store if isinstance(view, LiveView) else view.store
