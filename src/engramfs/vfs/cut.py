"""A batch, described as a commit.

Cutting compares the names that a batch touched with what the log says of them, or will say once the cuts
before it are written. It happens at one moment on the event loop, so it is a consistent picture.

Left for a later version (`deferred`) are names that stand for a file which was created and never closed,
so that no version holds half a write, and names below a directory that only transient names lead to.
"""

from collections.abc import Callable

import msgspec
import trio

from engramfs.errors import NotFound
from engramfs.history.changes import Name, Pair, changes_of
from engramfs.history.commit import Commit, RowChange
from engramfs.history.tree import Tree
from engramfs.model.entry import Entry
from engramfs.model.version import Version
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Writer
from engramfs.vfs.batch import Batch
from engramfs.vfs.node import Node, content_size
from engramfs.vfs.restating import Stated
from engramfs.vfs.store_tree import StoreTree

replace = msgspec.structs.replace


class Cut:
    """A commit on its way into the log; `number` is known once it is there and made a version."""

    def __init__(self, commit: Commit, overwrites: list["Cut"]) -> None:
        self.commit = commit
        self.overwrites = overwrites
        self.number = 0
        self.written = trio.Event()
        self.nodes: list[tuple[Node, bytes]] = []  # with the content that becomes a blob
        self.gone: list[Node] = []  # that the log knows no longer
        self.reaches = 0  # position of the newest journal record that is in it, or left out
        self.needed_from = 0  # position of the first journal record that is needed once this is written

    def account_for(self, position: int, stated: Stated) -> None:
        """The journal up to `position` is in the log with this cut.

        What it leaves out was stated anew, by records that leave contents to this commit.
        """
        self.needed_from = stated.first
        contents = {node.entry.digest: node.content for node in stated.nodes if node.content is not None}
        contents |= self.commit.contents
        self.commit = replace(self.commit, contents=contents, journal_position=position)
        self.nodes.extend((node, node.entry.digest) for node in stated.nodes)

    def account_for_nothing(self, needed_from: int) -> None:
        """Where that cannot be done no journal record may be taken for recorded."""
        self.needed_from = needed_from

    def is_written(self, number: int) -> None:
        """It became version `number` (0: none). Nodes remember it, and only its number is asked for now."""
        self.number = number
        self.commit = replace(self.commit, changes=[], rows=[], contents={})
        self.overwrites, self.nodes, self.gone = [], [], []
        self.written.set()

    def ready(self) -> Commit:
        """The commit, with the numbers of the versions that it overwrote: those were written before it."""
        numbers = {cut.number for cut in self.overwrites if cut.number} | set(self.commit.overwrites)
        return replace(self.commit, overwrites=tuple(sorted(numbers)))


class Base:
    """What the log says of a name, once everything that is on its way is written."""

    def __init__(self) -> None:
        self._coming: dict[Name, tuple[Entry | None, Cut]] = {}

    def lookup(self, tree: Tree, name: Name) -> Entry | None:
        coming = self._coming.get(name)
        return coming[0] if coming is not None else tree.lookup(*name)

    def is_coming(self, name: Name) -> bool:
        """Whether a cut on its way says what the name stands for."""
        return name in self._coming

    def expect(self, cut: Cut) -> None:
        for row in cut.commit.rows:
            self._coming[row.parent, row.name] = (row.entry, cut)

    def written(self, cut: Cut) -> None:
        for row in cut.commit.rows:
            name = (row.parent, row.name)
            coming = self._coming.get(name)
            if coming is not None and coming[1] is cut:
                del self._coming[name]


class Cutter:
    """Describes one batch; used once."""

    def __init__(self, engine: Engine, tree: StoreTree, base: Base, batch: Batch) -> None:
        self._engine = engine
        self._tree = tree
        self._base = base
        self._batch = batch
        self._reachable: dict[int, bool] = {}
        self._gone: list[Node] = []
        self.deferred: set[Name] = set()

    def cut(self, time: int) -> Cut:
        """The batch as a cut at `time`, which accounts for nothing yet."""
        with self._engine.reading() as reader:
            pairs, rows = self._compare(reader)
        used, files = self._count(pairs)
        batch = self._batch
        contents, nodes = self._contents(rows)
        commit = Commit(
            store=self._tree.store.id,
            author=batch.author,
            via="fs",
            time=time,
            changes=changes_of(pairs, lambda name: self._tree.path(*name)),
            rows=rows,
            next_node=self._tree.next_node,
            used_delta=used,
            files_delta=files,
            contents=contents,
            flags=tuple(sorted(batch.flags)),
            overwrites=tuple(sorted(batch.overwritten)),
        )
        cut = Cut(commit, batch.overwrites)
        cut.nodes, cut.gone = nodes, self._gone
        for node, _ in nodes:
            node.last_cut = cut
        return cut

    def _recordable(self, name: Name, node: Node) -> bool:
        return node.born and (name[0] == keys.NO_PARENT or self._leads_to_root(name[0]))

    def _leads_to_root(self, directory: int) -> bool:
        known = self._reachable.get(directory)
        if known is None:
            node = self._tree.nodes.get(directory)
            known = self._reachable[directory] = node is not None and self._tree.is_reachable(node)
        return known

    def _compare(self, reader: Reader) -> tuple[list[Pair], list[RowChange]]:
        log = self._tree.recorded(reader)
        pairs: list[Pair] = []
        rows: list[RowChange] = []
        for name in self._batch.names:
            node = self._tree.present(name)
            if node is not None and not self._recordable(name, node):
                self.deferred.add(name)
                node = None  # what the name stood for before is gone, and that is recorded now
            pair = Pair(name, self._base.lookup(log, name), entry_of(node) if node is not None else None)
            pairs.append(pair)
            if pair.old != pair.new:
                rows.append(RowChange(*name, pair.new, recorded=pair.is_recorded))
        rows.extend(self._directory_times(log))
        return pairs, rows

    def _directory_times(self, log: Tree) -> list[RowChange]:
        rows = []
        for identifier in self._batch.directories:
            node = self._tree.nodes.get(identifier)
            place = next((place for place in node.places if not place.view), None) if node else None
            if node is None or place is None or (place.parent, place.name) in self._batch.names:
                continue
            name = (place.parent, place.name)
            old = self._base.lookup(log, name)
            if old != node.entry and (old is not None or node is self._tree.root):
                rows.append(RowChange(*name, node.entry, recorded=False))
        return rows

    def _contents(self, rows: list[RowChange]) -> tuple[dict[bytes, bytes], list[tuple[Node, bytes]]]:
        contents: dict[bytes, bytes] = {}
        nodes: list[tuple[Node, bytes]] = []
        for row in rows:
            node = self._tree.nodes.get(row.entry.node) if row.entry is not None else None
            if node is not None and row.recorded and not node.is_directory:
                if node.content is not None:
                    contents[node.entry.digest] = node.content
                nodes.append((node, node.entry.digest))
        return contents, nodes

    def _count(self, pairs: list[Pair]) -> tuple[int, int]:
        """How many bytes and nodes the log gains; each node once, however many names it has."""
        used = files = 0
        for identifier in {entry.node for pair in pairs for entry in (pair.old, pair.new) if entry}:
            node = self._tree.nodes.get(identifier)
            if node is None or node is self._tree.root:
                continue
            there = node.born and any(
                not place.view and self._leads_to_root(place.parent) for place in node.places
            )
            before = node.sealed_size
            if there:
                used += content_size(node.entry) - max(before, 0)
                files += before < 0
                node.sealed_size = content_size(node.entry)
            elif before >= 0:
                used -= before
                files -= 1
                node.sealed_size = -1
                self._gone.append(node)
        return used, files


def entry_of(node: Node) -> Entry:
    """What the log is to say of a node, with the number of its names."""
    links = 1 if node.is_directory else sum(1 for place in node.places if not place.view)
    return node.entry if node.entry.links == links else replace(node.entry, links=links)


def write(cut: Cut, apply: Callable[[Writer, Commit], Version | None], writer: Writer) -> Version | None:
    """Write a cut into the log with `apply`; the version that it became."""
    try:
        version = apply(writer, cut.ready())
    except NotFound:  # the store was deleted meanwhile, and its log with it
        return None
    cut.number = version.number if version is not None else 0  # a cut behind it in this transaction may ask
    return version
