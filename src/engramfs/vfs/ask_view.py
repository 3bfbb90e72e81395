"""A store as one session sees it that has to ask: the head, and on it what the session wrote.

Nobody else sees that. Each batch waits as a pending version for a person to approve or reject it.
"""

from engramfs.history import pending
from engramfs.model.access import Access
from engramfs.model.author import Author
from engramfs.model.visible import visible
from engramfs.vfs import marks
from engramfs.vfs.fork import Fork
from engramfs.vfs.view import MARKS, View
from engramfs.vfs.writable_view import WritableView


class AskView(WritableView):
    """An `ask` attachment: the fork of one session, to read and write."""

    access = Access.ASK

    def __init__(self, number: int, uid: int, gid: int, store: Fork, author: Author) -> None:
        super().__init__(number, uid, gid, store, author)
        self.fork = store

    def marks(self, node: int) -> dict[bytes, bytes]:
        """Of a file that the session changed: its author, and the number under which the change waits."""
        known, below = self.node(node), self.fork.below
        session = (self.author.session or "").encode()
        own = View.marks(self, node) | {MARKS + b"session": session}
        place = next((place for place in known.places if not place.view), None)
        engine = self.fork.resources.engine
        if place is None or (place.parent, place.name) not in self.fork.fork_tree.own:
            return own | marks.of_place(engine, below.store, below.head.number, place, known.entry)
        found = marks.of_place(engine, self.fork.store, self.fork.head.number, place, known.entry)
        version = found.pop(MARKS + b"version", b"")
        if version:
            with engine.reading() as reader:
                offered = pending.of_version(reader, self.fork.store, int(version))
            if offered is not None:
                found[MARKS + b"pending"] = str(offered.number).encode()
        return own | found

    def decisions(self) -> list[str]:
        """What became of what this session offered, a line each, newest last; of the last few."""
        with self.fork.resources.engine.reading() as reader:
            decided = [each for each in pending.of_fork(reader, self.fork.store) if each.state != "open"]
        return [visible(pending.line(each)) for each in decided[-_SHOWN:]]

    @property
    def waiting(self) -> int:
        """How many versions of this session wait."""
        with self.fork.resources.engine.reading() as reader:
            open_ones = pending.waiting(reader, self.fork.store.base)
            return sum(each.fork == self.fork.store.id for _, each in open_ones)


_SHOWN = 20
