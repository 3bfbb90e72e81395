"""Which resources changed: every version that comes into the log is looked at, in the order of the feed."""

from typing import NamedTuple

from engramfs.errors import EngramError, NotFound
from engramfs.history import catalog, log
from engramfs.integrations.mcp.resources import uri_of
from engramfs.model.entry import Kind
from engramfs.model.names import printable
from engramfs.model.version import ChangeKind
from engramfs.storage.protocol import Reader
from engramfs.tools.reach import Reach

_AT_ONCE = 1000  # versions that are looked at one by one; of more, only that something changed is told


class Changed(NamedTuple):
    """`uris` have another content; `list_changed` says that there are others than before."""

    uris: list[str]
    list_changed: bool


class Feed:
    """Follows the log from the moment when it is made."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._position = self._newest()

    def _newest(self) -> int:
        try:
            with self._reach.client.reading(sealed=False) as reader:
                return log.feed_position(reader)
        except NotFound:
            return 0

    def changed(self) -> Changed:
        """What changed since the last time, as far as the session sees it."""
        newest = self._newest()
        first, self._position = self._position + 1, newest
        if newest < first:
            return Changed([], False)
        if newest - first >= _AT_ONCE:
            return Changed([], True)
        try:
            with self._reach.client.reading(sealed=False) as reader:
                return self._of(reader, first, newest)
        except EngramError:  # a store of the feed was deleted meanwhile, say
            return Changed([], True)

    def _of(self, reader: Reader, first: int, newest: int) -> Changed:
        uris: dict[str, None] = {}
        list_changed = False
        for store_id, number in log.feed(reader, first, newest):
            name = _name(reader, store_id)
            for attachment in [each for each in self._reach if each.store == name and each.live]:
                for change in log.changes(reader, store_id, number):
                    uri = uri_of(attachment, printable(change.path))
                    modified = change.op is ChangeKind.MODIFIED and change.kind is Kind.FILE
                    list_changed = list_changed or not modified
                    if uri is not None and change.kind is Kind.FILE:
                        uris[uri] = None
        return Changed(list(uris), list_changed)


def _name(reader: Reader, store: int) -> str | None:
    """None for a store that is gone."""
    try:
        return catalog.get(reader, store).name
    except NotFound:
        return None
