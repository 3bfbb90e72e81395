"""Which of a store's journal records the log has, and which are needed yet.

A cut accounts for everything that the journal has of its store at that moment: what the log does not get is
stated anew behind it (see `restating`). The log keeps the position with the commit, so a replay begins
after it and never does again what is done, over what came later.
"""

from engramfs.errors import StorageError
from engramfs.history.changes import Name
from engramfs.model.store import Head
from engramfs.storage.journal import Journal
from engramfs.vfs.cut import Cut
from engramfs.vfs.messages import WaitingMessages
from engramfs.vfs.node import Place
from engramfs.vfs.restating import Stated, restate
from engramfs.vfs.store_tree import StoreTree


class Accounting:
    """That of one store. Names in `deferred` were touched, and are not to be in a version yet."""

    def __init__(self, journal: Journal, tree: StoreTree, messages: WaitingMessages, head: Head) -> None:
        self.position = head.journal_position  # of the newest record of this store
        self.deferred: set[Name] = set()
        self._journal = journal
        self._tree = tree
        self._messages = messages
        self._needed_from = head.journal_position + 1
        self._accounted = head.journal_position  # nothing since is news to the log
        self._sealed = head.journal_position  # up to here all is in the log that may be, accounted for or not

    @property
    def is_behind(self) -> bool:
        """Whether there are records that no cut accounted for."""
        return self.position > self._accounted

    @property
    def is_settled(self) -> bool:
        """Whether the log may know everything, since nothing is left out."""
        return not (self.deferred or self._tree.has_scratch or self._messages)

    def left_out(self) -> list[Place]:
        """Names that no version may hold yet."""
        return [*self._tree.scratch_places(), *(Place(*name) for name in self.deferred)]

    def needed_from(self, *, is_idle: bool) -> int:
        """The position of the oldest journal record that the store still needs; beyond the last, if none."""
        return self.position + 1 if is_idle else self._needed_from

    def up_to_here(self, cut: Cut) -> None:
        """Let `cut` account for the journal, with what it leaves out stated anew."""
        position = self.position
        try:
            cut.account_for(position, self._state_anew(inline=False))
            self._accounted = self.position
        except StorageError:  # there is no room for that: then the older records stay
            self.for_nothing(cut)
        cut.reaches = self.position

    def for_nothing(self, cut: Cut) -> None:
        """Let `cut` account for nothing: the records that are in it are replayed again, if need be."""
        cut.account_for_nothing(self._needed_from)
        cut.reaches = self.position

    def came_to_nothing(self, *, is_last: bool) -> None:
        """A cut has nothing for the log; with `is_last` no other is on its way there."""
        if is_last:
            self._sealed = self.position

    def written(self, cut: Cut) -> None:
        self._needed_from = cut.needed_from
        self._sealed = cut.reaches

    def unsealed(self, *, is_idle: bool) -> int:
        """How many records say what the log does not: those since the last cut, and of what is left out."""
        if is_idle:
            return 0
        since = self._journal.count(self._tree.store.id, self._sealed + 1)
        return since + len(self.left_out()) + len(self._messages.items())

    def restate(self) -> None:
        """Let old records go where no cut did: transient names alone make no batch. Raises `Full`."""
        self._needed_from = self._state_anew(inline=True).first
        self._sealed = self.position

    def _state_anew(self, *, inline: bool) -> Stated:
        places = self.left_out()
        stated = restate(self._journal, self._tree, places, self._messages, inline=inline)
        if places or self._messages:
            self.position = self._journal.position
        return stated
