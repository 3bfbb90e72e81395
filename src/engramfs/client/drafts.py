"""What a session sees and no head has: the search, whose index is of the heads, looks at it beside them.

That is what the session wrote and what waits for approval, and of a store that is pinned, the files that
changed since.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from engramfs.client.answers import Attachment
from engramfs.errors import Corrupt
from engramfs.history import catalog, offered
from engramfs.history.diff import Difference, differences
from engramfs.history.tree import VersionTree, changed_last, head_tree
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import raw
from engramfs.model.store import Store
from engramfs.search import Draft, Drafts
from engramfs.search.document import LARGEST
from engramfs.storage import blobs
from engramfs.storage.protocol import Reader

_MOST_FILES, _MOST_BYTES = 1000, 16 << 20  # that changed since a pin, in all: they are read for each search


class SessionDrafts(msgspec.Struct, frozen=True):
    """`notices` say what is not looked at."""

    stores: tuple[Drafts, ...]
    notices: tuple[str, ...] = ()


def session_drafts(reader: Reader, attachments: Sequence[Attachment]) -> SessionDrafts:
    """Those of everything that is attached, each store once."""
    files: dict[str, list[Draft]] = defaultdict(list)
    hidden: dict[str, frozenset[bytes]] = defaultdict(frozenset)
    pinned = _Pinned(reader)
    for each in attachments:
        store = catalog.find(reader, each.store)
        if store is None:
            continue
        if each.fork:
            waiting = pending_drafts(reader, each)
            files[each.store] += waiting.files
            hidden[each.store] |= waiting.hidden
        elif not each.live and each.version != catalog.head(reader, store.id).number:
            files[each.store] += pinned.drafts(store, each)
    found = tuple(Drafts(name, tuple(files[name]), hidden[name]) for name in files)
    return SessionDrafts(found, tuple(pinned.notices))


def pending_drafts(reader: Reader, attachment: Attachment, under: str = "") -> Drafts:
    """What a session that asks sees otherwise than the head has it, at and below the path `under`.

    Nothing where the session need not ask.
    """
    files: list[Draft] = []
    hidden: set[bytes] = set()
    if attachment.fork:
        for one in offered.shown_differences(reader, catalog.get(reader, attachment.fork)):
            if not _is_in(one.path, raw(under)) or not _is_other_content(one.old, one.new):
                continue
            if _is_file(one.old):
                hidden.add(one.path)
            if one.new is not None and _is_file(one.new) and one.new.size <= LARGEST:
                files.append(Draft(one.path, one.new, blobs.read(reader, one.new.digest, one.new.size)))
    return Drafts(attachment.store, tuple(files), frozenset(hidden))


class _Pinned:
    """The files of pinned stores that are something else at the head, up to a bound for all of them."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._files, self._bytes = _MOST_FILES, _MOST_BYTES
        self.notices: list[str] = []

    def drafts(self, store: Store, attachment: Attachment) -> Iterator[Draft]:
        seen = VersionTree(self._reader, store, attachment.version)
        head = head_tree(self._reader, store)
        left_out = 0
        for one in differences(seen, head, raw(attachment.inside)):
            entry = _only_in_pin(one)
            if entry is None:
                continue
            self._files, self._bytes = self._files - 1, self._bytes - entry.size
            if self._files < 0 or self._bytes < 0:
                left_out += 1
            elif (content := self._content(entry)) is not None:
                version = changed_last(self._reader, store, seen, one.path, attachment.version)
                yield Draft(one.path, entry, content, version)
        if left_out:
            shown = f"{store.name}@{attachment.version}"
            self.notices.append(
                f"not searched: {left_out:,} of the files in {shown} that changed since; "
                "a session that is opened now sees the head"
            )

    def _content(self, entry: Entry) -> bytes | None:
        try:
            return blobs.read(self._reader, entry.digest, entry.size)
        except Corrupt:
            return None  # it cannot be shown; `engramfs verify` reports it


def _only_in_pin(one: Difference) -> Entry | None:
    """The file of the pinned version, if it is searched and the head has not the same."""
    if one.old is None or one.old.size > LARGEST or one.hides_path:
        return None
    return one.old if _is_file(one.old) and _is_other_content(one.old, one.new) else None


def _is_other_content(one: Entry | None, other: Entry | None) -> bool:
    return not (
        one is not None
        and other is not None
        and _is_file(one)
        and _is_file(other)
        and one.digest == other.digest
    )


def _is_file(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is Kind.FILE


def _is_in(path: bytes, above: bytes) -> bool:
    return not above or path == above or path.startswith(above + b"/")
