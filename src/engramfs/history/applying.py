"""The rows of one version of a fork on the head of the store below: see `three_way`.

With `merge`, what was changed on one side and renamed on the other is changed under its new name. What was
removed in the fork and renamed at the head, or renamed on both sides in two ways, stands against it.
"""

from collections.abc import Iterator

from engramfs.errors import Conflict
from engramfs.history.brought import lost_sources
from engramfs.history.changes import Name
from engramfs.history.commit import Commit
from engramfs.history.later_names import is_same_thing, later_names
from engramfs.history.three_way import Rows, ThreeWay, entry_in, path_in
from engramfs.history.tree import fork_tree
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable
from engramfs.model.pending import Pending
from engramfs.model.store import Store
from engramfs.storage.protocol import Reader

_NAMED = 5  # paths in a message


class Applying:
    """Used once: `commit`."""

    def __init__(
        self, reader: Reader, store: Store, fork: Store, offered: Pending, rows: Rows, now: int
    ) -> None:
        self._reader = reader
        self._store = store
        self._offered = offered
        self._made_from = fork_tree(reader, fork, offered.version, offered.base, without=True)
        self._made = fork_tree(reader, fork, offered.version, offered.base)
        self._rows = rows
        self._now = now
        self._sources = dict(self._renames())

    def _renames(self) -> Iterator[tuple[Name, Name]]:
        """What a file is called after the fork renamed it, and what before."""
        before = {name: entry_in(self._made_from, name) for name in self._rows}
        gone = {
            old.node: name for name, old in before.items() if old is not None and self._rows[name] is None
        }
        origins = {
            old.origin: gone[old.node] for old in before.values() if old is not None and old.node in gone
        }
        for name, new in self._rows.items():
            if new is not None and new.kind is Kind.FILE and before[name] is None:
                source = gone.get(new.node) or origins.get(new.origin)
                if source is not None:
                    yield name, source

    def commit(self, *, merge: bool) -> Commit:
        """The commit, by nobody yet. Raises `Conflict` and `QuotaExceeded`."""
        head = ThreeWay(self._reader, self._store, self._now)
        if refused := self._refused(head, merge=merge):
            other = ThreeWay(self._reader, self._store, self._now)
            can_merge = not merge and not self._refused(other, merge=True)
            raise self._conflict(head, refused, tried=merge, can_merge=can_merge)
        return head.commit("approval")

    def _refused(self, head: ThreeWay, *, merge: bool) -> list[Name]:
        """Take every row; the names that stand against it."""
        refused, unmerged = [], []
        for name in self._rows:
            taken = self._take_renamed(head, name) if merge else None
            if taken is None:
                unmerged.append(name)
                taken = self._take(head, name, merge=merge)
            if not taken:
                refused.append(name)
        refused += lost_sources(self._rows, unmerged, self._made_from, head)
        return list(dict.fromkeys(refused)) or head.after.problems()

    def _take(self, head: ThreeWay, name: Name, *, merge: bool) -> bool:
        old, new = entry_in(self._made_from, name), self._rows[name]
        there = self._renamed_to(head, name, old)
        if old is None or there == name or self._is_taken_to(there, old):
            return head.take(name, old, new, merge=merge)
        is_followed = merge and new is not None and is_same_thing(old, new)
        return is_followed and head.take(there, old, new, merge=True)

    def _take_renamed(self, head: ThreeWay, name: Name) -> bool | None:
        """Either end of a rename of a file that the head has changed, merged with that; None of any other."""
        if name not in self._sources and name not in self._sources.values():
            return None
        source, new = self._sources.get(name, name), self._rows[name]
        was, now = entry_in(self._made_from, source), head.present(source)
        if was is None or now is None or not is_same_thing(now, was) or now.looks_like(was):
            present = head.present(name)
            is_there_too = was is not None and present is not None and is_same_thing(present, was)
            return head.take(name, was, new, merge=True) if source != name and is_there_too else None
        if source == name:
            return head.leave(name)
        return head.present(name) is None and new is not None and head.move_merged(name, was, now, new)

    def _is_taken_to(self, name: Name, old: Entry) -> bool:
        """Whether the fork gave it the same name."""
        entry = self._rows.get(name)
        return entry is not None and is_same_thing(entry, old)

    def _renamed_to(self, head: ThreeWay, name: Name, old: Entry | None) -> Name:
        """Where the head has `old`, to which the change was made, if not under its name any more."""
        present = head.present(name)
        if old is None or (present is not None and is_same_thing(present, old)):
            return name
        for there in later_names(self._reader, self._store, name, old, self._offered.base):
            now, then = head.present(there), self._made_from.lookup(*there)
            was_there = then is not None and is_same_thing(then, old)  # a link, which nobody renamed
            if now is not None and is_same_thing(now, old) and not was_there:
                return there
        return name

    def _conflict(self, head: ThreeWay, names: list[Name], *, tried: bool, can_merge: bool) -> Conflict:
        shown = ", ".join(self._shown(head, name) for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        number, store = self._offered.number, self._store.name
        advice = f"engramfs pending diff {store} {number} shows what it would change"
        if can_merge:
            advice = f"approve it with --merge, or see engramfs pending diff {store} {number}"
        why = "cannot be merged with" if tried else "is not what it was in"
        return Conflict(
            f"pending {number} was made from {store}@{self._offered.base}; {shown}{more} {why} "
            f"that version; {advice}"
        )

    def _shown(self, head: ThreeWay, name: Name) -> str:
        """The path, and the one that the head has instead."""
        path = printable(path_in(self._made, self._made_from, name)) or "the root"
        there = self._renamed_to(head, name, entry_in(self._made_from, name))
        return f"{path} (now {printable(path_in(head.head, head.head, there))})" if there != name else path
