"""`.versions`, the hidden directory at the root of each view of a store.

    <number>/     the tree of that version
    @<UTC time>   a link to the version that was the head then, like @2026-01-31T12:00:00Z
    latest        a link to the head
    pending/      what waits for a person's approval, as far as this session offered it
    log           every version, newest first, as text
    status        store, access, head, session, what is not sealed yet, last conflicts and refusals

Only the last four and the newest `LISTED` numbers are listed; every other number can be entered.
"""

import stat
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from engramfs.errors import InvalidArgument, IsDirectory, NoEntry, ReadOnly
from engramfs.history import catalog, log
from engramfs.model.entry import ROOT_NODE
from engramfs.model.store import Head, Store
from engramfs.vfs.attributes import BLOCK, Attributes, Listed, Opened
from engramfs.vfs.resources import Resources
from engramfs.vfs.view import View, in_order

LISTED = 1000
LATEST, LOG, STATUS, PENDING = 2, 3, 4, 5  # node ids
_NAMES = {b"latest": LATEST, b"log": LOG, b"status": STATUS, b"pending": PENDING}
_NUMBER = 1 << 34  # node id of number n, in listings: _NUMBER + n
_TIME = 1 << 38  # node id of a link @time: _TIME + the number that it leads to


class VersionsView(View):
    """The inside of `.versions` for one view. `enter` gives the view of a version, `pending` that beside."""

    is_ephemeral = True

    def __init__(
        self,
        number: int,
        above: View,
        resources: Resources,
        store: Store,
        enter: Callable[[int], View],
        pending: Callable[[], View],
        status: Callable[[], str],
    ) -> None:
        super().__init__(number, above.uid, above.gid)
        self._resources = resources
        self._store = store
        self.enter = enter
        self.pending = pending
        self._status = status
        self._opened = time.time_ns()

    def _head(self) -> Head:
        with self._resources.engine.reading() as reader:
            return catalog.head(reader, self._store.id)

    def _can_be_entered(self, name: bytes) -> bool:
        head = self._head()
        is_number = name.isdigit() and name == str(int(name)).encode()
        return is_number and head.oldest <= int(name) <= head.number

    def lookup(self, parent: int, name: bytes) -> Attributes:
        if parent != ROOT_NODE:
            raise NoEntry
        if name == b"pending":
            return self.pending().attributes(ROOT_NODE)
        if name in _NAMES:
            return self.attributes(_NAMES[name])
        if self._can_be_entered(name):
            return self.enter(int(name)).attributes(ROOT_NODE)
        if name.startswith(b"@"):
            return self.attributes(_TIME + self._at(name[1:]))
        raise NoEntry

    def _at(self, text: bytes) -> int:
        try:
            moment = datetime.fromisoformat(text.decode("ascii").replace("Z", "+00:00"))
        except ValueError:
            raise NoEntry from None
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        with self._resources.engine.reading() as reader:
            number = log.at_time(reader, self._store.id, int(moment.timestamp() * 1_000_000) * 1000)
        if not number:
            raise NoEntry
        return number

    def attributes(self, node: int) -> Attributes:
        if node == ROOT_NODE:
            return self._show(node, stat.S_IFDIR | 0o555, BLOCK)
        if node == LATEST or node >= _TIME:
            return self._show(node, stat.S_IFLNK | 0o777, len(self.read_link(node)))
        if node in (LOG, STATUS):
            return self._show(node, stat.S_IFREG | 0o444, 0)
        raise NoEntry

    def _show(self, node: int, mode: int, size: int) -> Attributes:
        return self.made_up(node, mode, size, self._opened)

    def listing(self, node: int) -> list[Listed]:
        head = self._head()
        numbers = range(max(head.oldest, head.number - LISTED + 1), head.number + 1)
        names = [(name, identifier) for name, identifier in _NAMES.items() if numbers or identifier != LATEST]
        return in_order([*names, *((str(number).encode(), _NUMBER + number) for number in numbers)])

    def listed(self, parent: int, item: Listed) -> Attributes | None:
        if item.node == PENDING:
            return self.pending().attributes(ROOT_NODE)
        if item.node >= _NUMBER:
            return self.enter(int(item.name)).attributes(ROOT_NODE)
        return self.attributes(item.node)

    def read_link(self, node: int) -> bytes:
        if node == LATEST:
            return str(self._head().number).encode()
        if node >= _TIME:
            return str(node - _TIME).encode()
        raise InvalidArgument

    def open(self, node: int, *, write: bool, truncate: bool) -> Opened:
        if write or truncate:
            raise ReadOnly
        if node == ROOT_NODE:
            raise IsDirectory
        return Opened(keep_cache=False, direct=True)

    def read(self, node: int, offset: int, size: int) -> bytes:
        text = self._log_text() if node == LOG else self._status()
        return text.encode("utf-8", "surrogateescape")[offset : offset + size]

    def _log_text(self) -> str:
        with self._resources.engine.reading() as reader:
            oldest = catalog.head(reader, self._store.id).oldest
            versions = log.versions(reader, self._store.id, limit=10_000)
            lines = [log.line(version, partial=version.number < oldest) for version in versions]
        return "".join(line + "\n" for line in lines)


class ViewStatus(msgspec.Struct, frozen=True):
    """What `.versions/status` says."""

    store: str
    access: str
    head: int
    shown: str
    session: str
    unsealed: int
    pending: int  # versions that wait: of an `ask` view its own, else all for the store
    recent: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()  # on what the session offered

    def text(self) -> str:
        lines = [
            f"store    {self.store}",
            f"access   {self.access}",
            f"head     {self.head}",
            f"shown    {self.shown}",
            f"session  {self.session}",
            f"unsealed {self.unsealed}",
            f"pending  {self.pending}",
            *(f"decided  {line}" for line in self.decisions),
            *(f"note     {line}" for line in self.recent),
        ]
        return "\n".join(lines) + "\n"
