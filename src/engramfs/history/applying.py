"""The rows of one version of a fork on the head of the store below: see `three_way`."""

from engramfs.errors import Conflict
from engramfs.history.changes import Name
from engramfs.history.commit import Commit
from engramfs.history.three_way import Rows, ThreeWay, path_in
from engramfs.history.tree import fork_tree
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
        self._store = store
        self._offered = offered
        self._made_from = fork_tree(reader, fork, offered.version, offered.base, without=True)
        self._made = fork_tree(reader, fork, offered.version, offered.base)
        self._rows = rows
        self._head = ThreeWay(reader, store, now)

    def commit(self, *, merge: bool) -> Commit:
        """The commit, by nobody yet. Raises `Conflict` and `QuotaExceeded`."""
        refused = [
            name
            for name, new in self._rows.items()
            if not self._head.take(name, self._made_from.lookup(*name), new, merge=merge)
        ]
        refused = refused or self._head.after.problems()
        if refused:
            raise self._conflict(refused, tried=merge)
        return self._head.commit("approval")

    def _conflict(self, names: list[Name], *, tried: bool) -> Conflict:
        paths = (path_in(self._made, self._made_from, name) for name in names[:_NAMED])
        shown = [printable(path) or "the root" for path in paths]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        number, store = self._offered.number, self._store.name
        advice = (
            f"engramfs pending diff {store} {number} shows what it would change"
            if tried
            else f"approve it with --merge, or see engramfs pending diff {store} {number}"
        )
        why = "cannot be merged with" if tried else "is not what it was in"
        return Conflict(
            f"pending {number} was made from {store}@{self._offered.base}; {', '.join(shown)}{more} {why} "
            f"that version; {advice}"
        )
