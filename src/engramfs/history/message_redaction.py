"""Taking the message of a version out of the history.

The message is in the header, and the version's digest is made of that. So the version keeps the digest that
it had, the next one goes on to follow from it, and the redaction has the digest of the header as it is
without the message: as it has one of what is left of the changes. Of an imported version the lines stay that
say which commit it was made of. Of what was pending, the reason of the decision goes too: an approval repeats
it in the message of the version that it makes.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from engramfs.errors import NotFound, Redacted
from engramfs.history import catalog, imported, log, pending
from engramfs.history.commit import encode
from engramfs.history.redaction_rows import add_redaction, redactions
from engramfs.history.repository import Repository
from engramfs.history.residue import leave_residue
from engramfs.model.author import Author
from engramfs.model.pending import Pending
from engramfs.model.redaction import Redaction
from engramfs.model.store import Store
from engramfs.model.version import Version, chain
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Table, Writer

_AT_ONCE = 2000  # versions in one read transaction


class Message(msgspec.Struct, frozen=True):
    """A version that has a message; of what was pending, `pending` is its number, and `store` the fork."""

    store: int
    number: int
    pending: int = 0


class RedactedMessages(msgspec.Struct, frozen=True):
    """Those that lost theirs, and those whose message still has the same text."""

    lost: tuple[Message, ...]
    standing: tuple[Message, ...]


def redact_message(
    repository: Repository,
    name: str,
    number: int,
    author: Author,
    reason: str,
    now: int,
    *,
    is_pending: bool = False,
    everywhere: bool = False,
) -> RedactedMessages:
    """Take the message of version `number` (with `is_pending`, of what was pending) out of the store `name`.

    With `everywhere`, out of each version of the store, and of all that was ever pending for it, whose
    message has the same text: reverts and approvals repeat it. Raises `NotFound` for an unknown store or
    version, and for one with neither message nor reason, and `Redacted` when that was done before.
    """
    with repository.engine.reading() as reader:
        store = catalog.named(reader, name)
        asked, text = _asked(reader, store, number, is_pending=is_pending)
    found = messages_with(repository.engine, store, text) if text else iter(())
    same = [one for one in found if (one.store, one.number) != (asked.store, asked.number)]
    lost = (asked, *same) if everywhere else (asked,)

    def body(writer: Writer) -> None:
        leave_residue(writer)
        for one in lost:
            _take_out(writer, one, Redaction(now, author, reason, 0))
            _forget_reason(writer, store, one)
        if everywhere and text:
            _forget_reasons(writer, store, lambda offered: text in offered.reason)

    repository.transact(body)
    return RedactedMessages(lost, () if everywhere else tuple(same))


def _asked(reader: Reader, store: Store, number: int, *, is_pending: bool) -> tuple[Message, str]:
    """What is meant, and the text of its message: none where a reason is all that there is."""
    has_reason = False
    if is_pending:
        offered = pending.get(reader, store, number)
        asked, where = Message(offered.fork, offered.version, number), f"pending {number} of {store.name}"
        version = log.version(reader, catalog.get(reader, offered.fork), offered.version)
        has_reason = bool(offered.reason)
    else:
        asked, where = Message(store.id, number), f"{store.name}@{number}"
        version = log.version(reader, store, number)
    text = imported.text_of(version)
    if text or has_reason:
        return asked, text
    if any(one.header for one in redactions(reader, asked.store, asked.number)):
        raise Redacted(f"the message of {where} was redacted before")
    raise NotFound(f"{where} has no message; engramfs log {store.name} shows which versions have one")


def messages_with(engine: Engine, store: Store, text: str, *, is_name: bool = False) -> Iterator[Message]:
    """Where the text is in a message: of a version of the store, or of what was ever pending for it.

    With `is_name` it is a path, and not found within a longer word.
    """
    pattern = re.escape(text)
    says = re.compile(rf"(?<!\w){pattern}(?!\w)" if is_name else pattern).search
    with engine.reading() as reader:
        known = [store, *catalog.forks(reader, store.id)]
    for one in known:
        yield from _saying(engine, one, text, lambda message: says(message) is not None)


def _saying(engine: Engine, store: Store, text: str, says: Callable[[str], bool]) -> Iterator[Message]:
    """The versions of a store, or fork, whose message says the text."""
    start, stop = keys.u32(store.id), keys.after(keys.u32(store.id))
    mark = text.encode("utf-8", "surrogatepass")
    while True:
        found = []
        with engine.reading() as reader:
            rows = list(islice(reader.scan(Table.VERSIONS, start, stop), _AT_ONCE))
            for _, value in rows:
                if mark in value and says(imported.text_of(version := log.decode_version(value))):
                    offered = pending.of_version(reader, store, version.number) if store.base else None
                    found.append(Message(store.id, version.number, offered.number if offered else 0))
        yield from found
        if len(rows) < _AT_ONCE:
            return
        start = rows[-1][0] + b"\0"


def _take_out(writer: Writer, one: Message, redaction: Redaction) -> None:
    version = log.find_version(writer, one.store, one.number)
    if version is None:
        return  # a collection removed it meanwhile
    left = msgspec.structs.replace(version, message=_left(version))
    writer.put(Table.VERSIONS, keys.version(one.store, one.number), encode(left))
    add_redaction(writer, one.store, one.number, msgspec.structs.replace(redaction, header=chain(left)))


def _forget_reason(writer: Writer, store: Store, one: Message) -> None:
    """Of the decision on what was pending, or that made the version."""
    if one.pending:
        _forget_reasons(writer, store, lambda offered: offered.number == one.pending)
    else:
        _forget_reasons(writer, store, lambda offered: offered.result == one.number and not offered.unchanged)


def _forget_reasons(writer: Writer, store: Store, is_it: Callable[[Pending], bool]) -> None:
    for offered in list(pending.every(writer, store.id)):
        if offered.reason and is_it(offered):
            pending.put(writer, store.id, msgspec.structs.replace(offered, reason=""))


def _left(version: Version) -> str:
    source = imported.source_of(version)
    return imported.with_source("", list(source.items())) if source else ""
