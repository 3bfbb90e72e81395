"""What a client is told of: versions that come into the log, and another set of attachments.

Only what the session shows at that moment is ever told. So the session is looked at after the end of the feed
is known: a version up to that end was made while the session had what it is then seen to have, or earlier.
"""

import time
from typing import NamedTuple

from engramfs.client import Attachment
from engramfs.errors import EngramError, NotFound
from engramfs.history import catalog, log
from engramfs.integrations.mcp.resources import uri_of
from engramfs.model.entry import Kind
from engramfs.model.names import printable
from engramfs.model.version import ChangeKind
from engramfs.storage.protocol import Reader
from engramfs.tools.reach import Reach

_AT_ONCE = 1000  # versions that are looked at one by one; of more, only that something changed is told
_LOOK = 0.5  # seconds between two looks at a session while nothing comes into the log


class Changed(NamedTuple):
    """`uris` have another content; `list_changed` says that there are others than before.

    `attachments_changed` says that the session shows other stores: its actor was switched, say.
    """

    uris: list[str]
    list_changed: bool
    attachments_changed: bool = False


NOTHING = Changed([], False)


class Feed:
    """Follows the log and the session from the moment when it is made."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._attachments = reach.session.attachments
        self._next_look = 0.0
        self._again = 0.0  # until when nothing is looked at, since nothing could be known
        self._position = self._newest()

    def _newest(self) -> int:
        try:
            with self._reach.client.reading(sealed=False) as reader:
                return log.feed_position(reader)
        except NotFound:
            return 0

    def changed(self) -> Changed:
        """What changed since the last time, as far as the session sees it now.

        While it cannot be known what that is (the daemon is being replaced, the session was ended) this is
        nothing, and the next time goes on from here.
        """
        if time.monotonic() < self._again:
            return NOTHING
        try:
            newest = self._newest()
            if newest <= self._position and time.monotonic() < self._next_look:
                return self._since(newest)
            self._reach.refresh(reopen=False)  # only a call of the client begins another session
        except EngramError:
            self._again = time.monotonic() + _LOOK
            return NOTHING
        self._next_look = time.monotonic() + _LOOK
        return self._since(newest)

    def _since(self, newest: int) -> Changed:
        attachments = self._reach.session.attachments
        before, self._attachments = self._attachments, attachments
        first, self._position = self._position + 1, newest
        changed = self._in_log(first, newest, attachments)
        if attachments == before:
            return changed
        uris = dict.fromkeys([*changed.uris, *self._shown_anew(before, attachments)])
        return Changed(list(uris), True, True)

    def _shown_anew(self, before: tuple[Attachment, ...], now: tuple[Attachment, ...]) -> list[str]:
        """The files of stores that took the place of others: an address that stayed has another content."""
        places = {each.path for each in before}
        replaced = [each for each in now if each not in before and each.path in places]
        try:
            shown = [
                uri_of(each, file.path) or ""
                for each in replaced
                for file in self._reach.files(each)[:_AT_ONCE]
            ]
        except EngramError:  # switched once more, and that store was deleted
            return []
        return shown

    def _in_log(self, first: int, newest: int, attachments: tuple[Attachment, ...]) -> Changed:
        if newest < first:
            return NOTHING
        if newest - first >= _AT_ONCE:
            return Changed([], True)
        try:
            with self._reach.client.reading(sealed=False) as reader:
                return _of(reader, first, newest, attachments)
        except EngramError:  # a store of the feed was deleted meanwhile, say
            return Changed([], True)


def _of(reader: Reader, first: int, newest: int, attachments: tuple[Attachment, ...]) -> Changed:
    uris: dict[str, None] = {}
    list_changed = False
    for store_id, number in log.feed(reader, first, newest):
        name = _name(reader, store_id)
        for attachment in [each for each in attachments if each.store == name and each.live]:
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
