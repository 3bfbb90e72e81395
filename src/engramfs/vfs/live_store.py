"""One store as this worker serves it: its tree, its open batch, its journal records and its views.

The way of an operation: a view checks that it is allowed and describes it; `record` appends it to the
journal, applies it to the tree, notes it in the batch and tells the other views. Nothing here awaits, so
these four are one step for everybody else.

Batches. One author at a time: an operation of another author cuts the open batch first. A cut is handed
to the log writer; the next batch may be opened and cut meanwhile, since `Base` knows what is coming.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from engramfs.errors import Archived, StorageError
from engramfs.history import commit as commits
from engramfs.history import hygiene
from engramfs.history.changes import Name
from engramfs.history.commit import Commit
from engramfs.model.author import SYSTEM, Author
from engramfs.model.entry import Kind
from engramfs.model.operation import Link, Note, Operation, Rename, Update
from engramfs.model.store import Head, Store
from engramfs.model.version import Version
from engramfs.storage.journal import Record
from engramfs.storage.protocol import Writer
from engramfs.vfs.absorbing import absorb
from engramfs.vfs.accounting import Accounting
from engramfs.vfs.batch import Batch, directories_of, touched_by
from engramfs.vfs.collecting import note_named
from engramfs.vfs.cut import Base, Cut, Cutter, write
from engramfs.vfs.following import Followers
from engramfs.vfs.held_still import HeldStill
from engramfs.vfs.messages import WaitingMessages
from engramfs.vfs.node import Node
from engramfs.vfs.orphans import Orphans
from engramfs.vfs.resources import Resources
from engramfs.vfs.store_tree import StoreTree
from engramfs.vfs.unrecorded import DirtySpools

if TYPE_CHECKING:
    from engramfs.vfs.live_view import LiveView

replace = msgspec.structs.replace


class LiveStore:
    """A store that is open in this worker."""

    def __init__(
        self,
        resources: Resources,
        store: Store,
        head: Head,
        on_change: Callable[["LiveStore"], None],
        tree: StoreTree | None = None,
    ) -> None:
        self.resources = resources
        self.store = store
        self.head = head
        self.tree = tree or StoreTree(resources.engine, store, head, resources.transient)
        self.followers = Followers()
        self.views: set[LiveView] = set()
        self.batch: Batch | None = None
        self.messages = WaitingMessages()  # for versions to come
        self.coming: list[Cut] = []  # handed to the log writer, not written yet
        self.offers: list[trio.Event] = []  # refused contents on their way to be pending
        self.recent = resources.recent(store.name)
        self.dirty = DirtySpools(resources.unrecorded)
        self.removed_by: dict[int, int] = {}  # node that may be open → the view that took its last name
        self.orphans = Orphans(resources.spool_path, store.id)
        self.expected = Base()
        self._on_change = on_change
        self._still: trio.Event | None = None  # set when a commit from outside is done: see `held_still`
        self.accounting = Accounting(resources.journal, self.tree, self.messages, head)
        self._was_cut = False  # while records were replayed

    # Recording

    def record(
        self,
        view: int,
        author: Author,
        operation: Operation,
        *,
        content: bytes | None = None,
        closed: bool = False,
        overwrites: Cut | None = None,
    ) -> None:
        """Acknowledge an operation. Raises `Full` when the journal cannot take it; then nothing changed.

        Raises `HeldStill` while a commit from outside is under way; nothing changed then either.
        """
        if self._still is not None:
            raise HeldStill(self._still)
        if self.store.archived:
            raise Archived(f"store {self.store.name} is archived")
        self._prepare(author, operation, view)
        journal = self.resources.journal
        record = Record(
            position=journal.position + 1,
            store=self.store.id,
            author=author,
            view=view,
            operation=operation,
            content=content,
            closed=closed,
            overwrites=overwrites.number if overwrites is not None else 0,
        )
        journal.append(record)
        note_named(self.resources.in_use, operation)
        self._apply(record)
        if overwrites is not None and self.batch is not None:
            self.batch.overwrites.append(overwrites)
            self.batch.flags.add("concurrent")

    def replay(self, record: Record) -> None:
        """Apply a record of an earlier worker. Its batch is sealed with the flag `recovered`."""
        if isinstance(record.operation, Link):
            self.tree.load(record.operation.entry.node)  # it may be one more name of a file in the log
        self._prepare(record.author, record.operation, record.view, replaying=True)
        self._apply(self._with_content(record))
        if self.batch is not None:
            self.batch.flags.add("recovered")
            if record.overwrites:
                self.batch.overwritten.add(record.overwrites)
                self.batch.flags.add("concurrent")

    def _with_content(self, record: Record) -> Record:
        """A state that was said again left its content to a cut, which may never have reached the log."""
        operation = record.operation
        if record.content is None and isinstance(operation, Update):
            node = self.tree.nodes.get(operation.entry.node)
            if node is not None and node.entry.digest == operation.entry.digest:
                return replace(record, content=node.content)
        return record

    def _prepare(self, author: Author, operation: Operation, view: int, *, replaying: bool = False) -> None:
        """Seal what belongs before an operation: another author's, and what forks made of what it changes."""
        if isinstance(operation, Note):
            return
        if self.batch is not None and author not in (self.batch.author, SYSTEM):  # who states things anew
            self.cut(replaying=replaying)
        if self.followers:
            self.followers.before(touched_by(self.tree, operation, view)[0], replaying=replaying)

    def _apply(self, record: Record) -> None:
        operation, view = record.operation, record.view
        names, nodes = touched_by(self.tree, operation, view)
        self.tree.apply(operation, view)
        self.accounting.position = record.position
        self._settle(record)
        if isinstance(operation, Note):
            self.messages.put(record.author, operation.text)
        for node in nodes:
            self.keep_if_open(node, record.view)
            names.extend((place.parent, place.name) for place in node.places if not place.view)
        if names:
            batch = self._open_batch(record.author)
            batch.add(names)
            if isinstance(operation, Rename) and operation.moved.kind is Kind.DIRECTORY:
                batch.add(self.accounting.deferred)  # its new name may lead to what could not be reached
            batch.directories.update(directories_of(operation))
            batch.bytes += len(record.content) if record.content else 0
        self.tell(operation, view, nodes)
        self.touched(names)

    def keep_if_open(self, node: Node, remover: int) -> None:
        """A file that may be open in some view, and lost its last name to the view `remover`, lives on."""
        if node.places:
            self.orphans.drop(node.id)  # it has a name again
        elif any(each.may_be_open(node.id) for each in self.views):
            self.orphans.keep(node.entry, node.content, born=node.born)
            self.removed_by[node.id] = remover

    def touched(self, names: Iterable[Name]) -> None:
        """These names, and what they stand for, may have changed."""
        self.followers.follow(names)

    def _settle(self, record: Record) -> None:
        """What a record says of a node beside its entry: whether it was closed, and its content."""
        operation = record.operation
        if not isinstance(operation, Link | Update):
            return
        node = self.tree.nodes[operation.entry.node]
        if record.closed:
            node.born = True
        elif isinstance(operation, Link) and node.entry.kind is Kind.FILE and node.sealed_size < 0:
            node.born = False
        if record.closed and isinstance(operation, Update):
            node.content = record.content

    def _open_batch(self, author: Author) -> Batch:
        now = time.monotonic()
        if self.batch is None:
            self.batch = Batch(author, now)
            self._on_change(self)
        self.batch.touched = now
        return self.batch

    def due(self) -> float | None:
        """The monotonic second at which the open batch is to be cut, or None."""
        batch, settings = self.batch, self.resources.settings
        if batch is None:
            return None
        if batch.bytes > settings.max_batch_bytes or len(batch.names) > settings.max_batch_names:
            return batch.opened
        return min(batch.touched + settings.quiet, batch.opened + settings.max_age)

    # Sealing

    def cut(self, *, replaying: bool = False) -> Cut | None:
        """Close the open batch and send it to the log; the cut, or None when there was nothing to write.

        With `replaying` there are records in the journal yet that belong after it: see `replayed`.
        """
        batch = self.batch
        if batch is None:
            return None
        cutter = Cutter(self.resources.engine, self.tree, self.expected, batch)
        cut = self._describe(cutter)
        self.batch = None  # not before: where the log cannot be read, nothing is cut
        self._was_cut |= replaying
        self.accounting.deferred.difference_update(batch.names)
        self.accounting.deferred.update(cutter.deferred)
        if not cut.commit.rows:
            self.accounting.came_to_nothing(is_last=not self.coming)
            self._clean_up(cut)
            return None
        if cut.commit.changes:
            cut.commit = replace(cut.commit, message=self.messages.take(batch.author))
        if replaying:
            self.accounting.for_nothing(cut)
        else:
            self.accounting.up_to_here(cut)
        self._submit(cut)
        return cut

    def _submit(self, cut: Cut) -> None:
        self.expected.expect(cut)
        self.coming.append(cut)
        self.resources.writer.submit(self._writing(cut), partial(self._sealed, cut))

    def account(self) -> None:
        """Let the log account for the journal up to here, though no version may come of it.

        Needed before somebody else changes what a replay would begin with.
        """
        self.cut()
        if self.accounting.is_behind:
            cut = Cut(Commit(self.store.id, SYSTEM, "", time.time_ns(), [], [], self.tree.next_node), [])
            self.accounting.up_to_here(cut)
            self._submit(cut)

    def replayed(self) -> None:
        """Every record was replayed: what was cut meanwhile is accounted for now.

        All of it is written in one transaction, so another crash finds everything in the log, or nothing.
        """
        if self._was_cut:
            self.account()

    def last_cut(self, node: Node) -> Cut | None:
        """The cut that last took a content of this node."""
        return node.last_cut

    def _describe(self, cutter: Cutter) -> Cut:
        return cutter.cut(time.time_ns())

    def _writing(self, cut: Cut) -> Callable[[Writer], Version | None]:
        """What the log writer does with a cut."""
        return partial(write, cut, commits.apply)

    def _sealed(self, cut: Cut, version: Version | None) -> None:
        self.coming.remove(cut)
        self.expected.written(cut)
        self.accounting.written(cut)
        for node, digest in cut.nodes:
            if node.entry.digest == digest:
                node.content = None
        self.followers.stored(cut.nodes)
        self._clean_up(cut)
        if version is not None:
            self.adopt_head(version)
            if "concurrent" in version.flags:
                names = ", ".join(str(number) for number in version.overwrites) or "an older version"
                self.remember(f"version {version.number} overwrote version {names} (concurrent)")
        cut.is_written(cut.number)
        self._on_change(self)

    def adopt_head(self, version: Version) -> None:
        """A version of this store is in the log."""
        self.head = replace(self.head, number=version.number, digest=version.digest)
        if hygiene.FLAG in version.flags:
            self.recent.add(hygiene.said_of(self.store.name, version.number))

    def _clean_up(self, cut: Cut) -> None:
        """Drop nodes that went for good."""
        for node in cut.gone:
            if not any(view.holds(node.id) for view in self.views):
                self.let_go(node)

    def let_go(self, node: Node) -> None:
        """No view holds `node` any more: it can go, unless it has a name here or in the log."""
        self.tree.forget(node)
        self.orphans.drop(node.id)
        self.removed_by.pop(node.id, None)

    @property
    def is_idle(self) -> bool:
        """Whether everything that the journal holds of this store is in the log."""
        return not (self.batch or self.coming) and self.accounting.is_settled

    def oldest_needed(self) -> int:
        """The position of the oldest journal record that this store still needs; beyond the last, if none."""
        return self.accounting.needed_from(is_idle=self.is_idle)

    @property
    def space_taken(self) -> int:
        """Bytes of all files, those that are written and not recorded yet included."""
        return self.tree.space[0] + sum(spool.size - spool.base_size for spool in self.dirty)

    async def sealed(self) -> None:
        """Seal what is open, and wait until it is in the log.

        Raises `StorageError` while sealing fails (the disk is full); then it is in the journal.
        """
        self.cut()
        last = self.coming[-1] if self.coming else None
        while last is not None and not last.written.is_set():
            if self.resources.writer.trouble:
                raise StorageError(
                    f"store {self.store.name} cannot be sealed now, what was written is in the journal: "
                    f"{self.resources.writer.trouble}"
                )
            with trio.move_on_after(0.1):
                await last.written.wait()

    async def durable(self) -> None:
        """Make everything acknowledged so far survive the loss of power.

        By sealing it; while sealing fails, by syncing the journal.
        """
        try:
            await self.sealed()
        except StorageError:
            await self.resources.journal_synced()
            return
        if self.tree.has_scratch or self.accounting.deferred:
            await self.resources.journal_synced()

    def restate(self) -> None:
        """Let old journal records go where no cut did. Raises `Full`."""
        if self.batch is None and not self.coming:
            self.accounting.restate()

    # Other ways in

    @contextlib.asynccontextmanager
    async def held_still(self) -> AsyncIterator[set[Name]]:
        """Seal what is open, and let no view record anything until the block ends: the head is all there is.

        Gives the names of files that were created and never closed, which no version has. Raises as `sealed`.
        """
        await self.not_held()
        self._still = done = trio.Event()  # before sealing: who writes without a pause would never let us in
        try:
            self.account()
            self.followers.account()
            await self.sealed()
            yield {name for name in self.accounting.deferred if self._is_unborn(*name)}
        finally:
            self._still = None
            done.set()

    async def not_held(self) -> None:
        """Wait until something may be recorded again; until the caller waits for anything else it may."""
        while self._still is not None:
            await self._still.wait()

    def _is_unborn(self, parent: int, name: bytes) -> bool:
        directory = self.tree.nodes.get(parent)
        node = directory.children.get(name) if directory is not None and directory.children else None
        return node is not None and not node.born

    def absorb(self, commit: Commit, version: Version | None) -> None:
        """A commit that did not come from a batch is in the log: take it over."""
        names = [(row.parent, row.name) for row in commit.rows]
        self.followers.before(names)
        if version is not None:
            self.adopt_head(version)
        absorb(self, commit, version)
        self.followers.follow(names)

    def describe(self, store: Store) -> None:
        """The store's limits, description or archived flag are new."""
        self.store = self.tree.store = store

    def remember(self, what: str) -> None:
        """Keep a refusal or conflict for `status` and `.versions/status`; one that goes on, once."""
        if self.recent.add(what):
            self.resources.failed(self.store.name, what)

    def tell(self, operation: Operation, origin: int, relinked: Iterable[Node] = ()) -> None:
        """Let the other views drop what the kernel cached: of the names, and of nodes with more or fewer."""
        if len(self.views) <= 1 and all(view.number == origin for view in self.views):
            return
        for view in self.views:
            if view.number != origin:
                view.changed(operation)
                for node in relinked:
                    view.node_changed(node.id)
