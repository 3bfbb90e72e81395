"""A fork as a worker serves it: a live store whose own names lie over those of another live store.

What its session writes goes the way of every write: journal, batch, cut, version. Only its versions wait for
a person, as versions of a store that nobody else sees.

Following. Before the store below changes a name that is in the open batch here, that batch is cut: it was
made from what was there before. The cut of a fork cuts the store below first, so that what a version of the
fork was made from is a version too. After a change below, names that are not the fork's own are taken over.

Concurrency. As in `live_store`: nothing here awaits.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from engramfs.errors import Busy, NoEntry
from engramfs.history import forks
from engramfs.history.changes import Name
from engramfs.history.commit import Commit
from engramfs.history.fork_tree import ForkTree
from engramfs.history.tree import Tree
from engramfs.model.author import Author
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable
from engramfs.model.operation import Operation, Unlink
from engramfs.model.store import Head, Store
from engramfs.model.version import Version
from engramfs.storage import keys
from engramfs.storage.journal import Record
from engramfs.storage.protocol import Writer
from engramfs.vfs.absorbing import set_name
from engramfs.vfs.batch import touched_by
from engramfs.vfs.cut import Base, Cut, Cutter, entry_of, write
from engramfs.vfs.fork_tree import LiveForkTree
from engramfs.vfs.live_store import LiveStore
from engramfs.vfs.node import Node, Place
from engramfs.vfs.resources import Resources

replace = msgspec.structs.replace


class ForkBase(Base):
    """What the logs of a fork and of the store below say of a name, once all on its way is written."""

    def __init__(self, below: LiveStore) -> None:
        super().__init__()
        self._below = below

    def lookup(self, tree: Tree, name: Name) -> Entry | None:
        assert isinstance(tree, ForkTree)
        if self.is_coming(name) or tree.is_own(*name):
            return super().lookup(tree, name)
        return self._below.expected.lookup(tree.base, name)


class Fork(LiveStore):
    """`below` is the store that `store` was forked from."""

    def __init__(
        self,
        resources: Resources,
        store: Store,
        head: Head,
        on_change: Callable[[LiveStore], None],
        below: LiveStore,
    ) -> None:
        self.fork_tree = LiveForkTree(resources.engine, store, below.tree)
        super().__init__(resources, store, head, on_change, self.fork_tree)
        self.below = below
        self.expected = ForkBase(below)
        self._space_below = below.tree.space
        below.followers.add(self)
        self._untangle()

    def close(self) -> None:
        """Nobody uses the fork any more."""
        self.below.followers.discard(self)

    def touched(self, names: Iterable[Name]) -> None:
        self.fork_tree.take(names)
        if self.fork_tree.hidden:
            self._untangle()

    def replay(self, record: Record) -> None:
        """As for any store; but what was done in a directory that went from below since is gone with it."""
        with contextlib.suppress(NoEntry):
            super().replay(record)

    def _prepare(self, author: Author, operation: Operation, view: int, *, replaying: bool = False) -> None:
        if self.fork_tree.hidden and not replaying:
            for name in touched_by(self.tree, operation, view)[0]:
                self._check_place(name)
        super()._prepare(author, operation, view, replaying=replaying)

    def _check_place(self, name: Name) -> None:
        """Something else there would leave a directory that is shown elsewhere without any place."""
        entry = self.fork_tree.hidden.get(name)
        if entry is not None and entry.kind is Kind.DIRECTORY:
            path = printable(self.fork_tree.path(*name))
            raise Busy(f"{path} is where a directory waits to be moved to; first move that elsewhere")

    # Sealing

    def cut(self, *, replaying: bool = False) -> Cut | None:
        if self.batch is None:
            return None
        self.below.cut(replaying=replaying)
        cut = super().cut(replaying=replaying)
        if cut is None and not replaying:
            self.account()  # what led to nothing here leads to something over what comes below
        return cut

    def last_cut(self, node: Node) -> Cut | None:
        """Of the store below: nobody else writes here."""
        self.below.cut()
        below = self.below.tree.nodes.get(node.id)
        return below.last_cut if below is not None else None

    def _describe(self, cutter: Cutter) -> Cut:
        """Without rows that say nothing new of a name, which nobody could decide on.

        Those are new times, another number of links and, where nothing else changed, a file saved anew with
        the same bytes. What happens to these names below is followed again.
        """
        cut = super()._describe(cutter)
        assert self.batch is not None
        rows = {(row.parent, row.name): row for row in cut.commit.rows}
        with self.resources.engine.reading() as reader:
            tree = self.fork_tree.recorded(reader)
            known = {
                name
                for name in (*rows, *self.batch.names)
                if name not in self.fork_tree.hidden and (self.expected.is_coming(name) or tree.is_own(*name))
            }
            kept = {
                name: row
                for name, row in rows.items()
                if name in known
                or (
                    cut.commit.changes
                    and row.recorded
                    and not _is_same(self.expected.lookup(tree, name), row.entry)
                )
            }
        cut.commit = replace(cut.commit, rows=list(kept.values()), used_delta=0, files_delta=0)
        given_up = set(self.batch.names) - kept.keys() - known - cutter.deferred
        touched = {name for name in given_up if name in rows and not rows[name].recorded}
        self.fork_tree.own -= touched
        self._give_back([name for name in given_up if name not in touched])
        return cut

    def _writing(self, cut: Cut) -> Callable[[Writer], Version | None]:
        apply = partial(_apply, self.below.head.number, list(self.below.coming))
        return partial(write, cut, apply)

    # Other ways in

    @contextlib.asynccontextmanager
    async def held_still(self) -> AsyncIterator[set[Name]]:
        """As for any store. What is open below is sealed first, since a commit here is made from it."""
        await self.below.sealed()
        async with super().held_still() as held:
            yield held

    def absorb(self, commit: Commit, version: Version | None) -> None:
        self.fork_tree.take((row.parent, row.name) for row in commit.rows)
        super().absorb(commit, version)
        self._untangle()
        self.fork_tree.count_anew()
        self._space_below = self.below.tree.space

    # Following the store below

    def before_change(self, names: Sequence[Name], *, replaying: bool) -> None:
        if self.batch is not None and any(
            name in self.batch.names or _is_directory(self.below.tree.present(name)) for name in names
        ):
            self.cut(replaying=replaying)

    def follow(self, names: Sequence[Name]) -> None:
        """What comes first, what goes last: a directory that moves keeps what is in it."""
        self._keep_count(names)
        self._follow_names(names)
        came = [node for name in names if (node := self.below.tree.present(name)) and node.is_directory]
        if self.fork_tree.hidden or self.fork_tree.has_loop(came):
            self._untangle()

    def _follow_names(self, names: Sequence[Name]) -> None:
        gone = [name for name in names if self.below.tree.present(name) is None]
        for name in (*(name for name in names if name not in gone), *gone):
            if name not in self.fork_tree.own:
                self._follow(name)

    def _keep_count(self, names: Sequence[Name]) -> None:
        """What changes below under the fork's own names alone does not change how much the fork has."""
        before, self._space_below = self._space_below, self.below.tree.space
        if names and all(name in self.fork_tree.own for name in names):
            self.fork_tree.used -= self._space_below[0] - before[0]
            self.fork_tree.files -= self._space_below[1] - before[1]

    def _follow(self, name: Name) -> None:
        tree, below = self.fork_tree, self.below.tree.present(name)
        if below is not None and below.is_directory and not tree.shows(name, below):
            below = None  # the fork has it elsewhere
        parent, last = name
        if below is not None and below.id in tree.nodes:
            self._load(parent)  # it may have come here from a directory that is in memory
        directory = tree.nodes.get(parent)
        if parent != keys.NO_PARENT and (directory is None or directory.children is None):
            self.tell(Unlink(parent, last, 0), 0)  # an earlier worker may have shown it
            return
        used, files = tree.used, tree.files
        if below is not None:
            node = tree.adopt(below)
            is_own = tree.is_own(node)
            set_name(self, name, node.entry if is_own else entry_of(below), recorded=not is_own)
            if not is_own:
                node.content = below.content
        elif (before := tree.present(name)) is not None:
            set_name(self, name, None)
            if before.is_directory and not before.places:
                self._drop_below(before)
        tree.used, tree.files = used, files

    def _give_back(self, names: Sequence[Name]) -> None:
        """These names are the store's again, and with them the other names of what they stood for here."""
        tree = self.fork_tree
        nodes = [node for name in names if (node := tree.present(name)) is not None]
        tree.own.difference_update(names)
        places = [place for node in nodes if not tree.is_own(node) for place in node.places if not place.view]
        for node in nodes:
            if node.is_directory and (below := self.below.tree.nodes.get(node.id)) is not None:
                places += [place for place in below.places if not place.view]
        self._follow_names(list(dict.fromkeys([*names, *((place.parent, place.name) for place in places)])))

    def _untangle(self) -> None:
        """Hide what the fork says where directories would lie in each other, until they do not."""
        tree = self.fork_tree
        hidden, shown = tree.tangled()
        if hidden:
            tree.hidden |= hidden
            self._give_back(list(hidden))
            self._say_where(hidden)
        used, files = tree.used, tree.files
        for name, entry in sorted(shown.items(), key=lambda row: row[1] is None):
            tree.take([name])
            set_name(self, name, entry)
        tree.used, tree.files = used, files

    def _say_where(self, hidden: Mapping[Name, Entry | None]) -> None:
        for entry in hidden.values():
            if entry is not None and entry.kind is Kind.DIRECTORY:
                path = printable(self.below.tree.path_of(self.below.tree.node(entry.node)))
                self.remember(
                    f"{path} is shown where the store has it: you moved it into a directory that another "
                    "moved into it; your move waits"
                )

    def _load(self, directory: int) -> None:
        if directory != keys.NO_PARENT:
            with contextlib.suppress(NoEntry):  # the fork removed it
                self.fork_tree.children(self.fork_tree.node(directory))

    def _drop_below(self, directory: Node) -> None:
        """A directory went, and what the fork had in it cannot be reached: it waits all the same."""
        for name, node in list((directory.children or {}).items()):
            place = Place(directory.id, name)
            is_elsewhere = any(other != place for other in node.places if not other.view)
            if node.is_directory and not is_elsewhere:
                self._drop_below(node)
            self.accounting.deferred.discard((directory.id, name))
            set_name(self, (directory.id, name), None)
            if not is_elsewhere:
                path = self.fork_tree.path_of(node)
                self.remember(f"{printable(path)} is not shown: its directory was removed")

    def stored(self, nodes: Sequence[tuple[Node, bytes]]) -> None:
        for below, digest in nodes:
            node = self.tree.nodes.get(below.id)
            if node is not None and node.entry.digest == digest:
                node.content = None

    def settle(self, names: Sequence[Name]) -> None:
        """It was decided on a version: what the log says of these names now is what the fork shows.

        Call it once the store below has taken over what was approved.
        """
        self.cut()
        back = []
        with self.resources.engine.reading() as reader:
            tree = self.fork_tree.recorded(reader)
            for name in names:
                if self.expected.is_coming(name):
                    continue
                self.fork_tree.hidden.pop(name, None)
                if tree.is_own(*name):
                    self.fork_tree.own.add(name)
                    set_name(self, name, tree.lookup(*name))
                    continue
                back.append(name)
                if tree.has_row(*name):
                    self.fork_tree.hidden[name] = tree.own_entry(*name)
        self._give_back(back)
        self._untangle()
        self.fork_tree.count_anew()
        self._space_below = self.below.tree.space


def _is_same(old: Entry | None, new: Entry | None) -> bool:
    """Whether the same node is there, but for times and the number of its names."""
    if old is None or new is None:
        return old is new
    return (old.node, old.origin) == (new.node, new.origin) and new.looks_like(old)


def _is_directory(node: Node | None) -> bool:
    return node is not None and node.is_directory


def _apply(known: int, coming: Sequence[Cut], writer: Writer, commit: Commit) -> Version | None:
    return forks.apply(writer, commit, _made_from(known, coming))


def _made_from(known: int, coming: Sequence[Cut]) -> int:
    """The newest version of the store below that a cut had seen all of.

    Version `known` was its head, and `coming` were on their way, which are written before. What came another
    way in between was not seen, and a change of the same name there has to look like one.
    """
    number = known
    for cut in coming:
        if cut.number == number + 1:
            number = cut.number
    return number
