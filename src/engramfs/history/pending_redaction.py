"""Taking a content out of what was pending, once a person has decided on it.

What waits is rejected first, and redacted then; or it is redacted everywhere, and waits on without it. What
was approved is in the store below as well, and is redacted there by itself. While its session still sees it,
because a later change builds on it, it is as if it waited.
"""

from functools import partial
from typing import Literal

import msgspec

from engramfs.errors import NotFound, Refused
from engramfs.history import catalog, pending, redaction_everywhere
from engramfs.history.change_edits import Edit, edit_changes
from engramfs.history.offered import find_own
from engramfs.history.redaction import carry_out, require_content
from engramfs.history.redaction_plan import Plan
from engramfs.history.redaction_rows import Removed, add_redaction, encode, forget_name
from engramfs.history.redaction_target import Span, find
from engramfs.history.repository import Repository
from engramfs.history.residue import leave_residue
from engramfs.history.tree import decode_entry, version_tree
from engramfs.history.waiting_redaction import waiting_versions
from engramfs.model.author import Author
from engramfs.model.names import printable
from engramfs.model.redaction import Redaction
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer


def redact_pending(
    repository: Repository,
    name: str,
    number: int,
    path: bytes,
    author: Author,
    reason: str,
    now: int,
    *,
    everywhere: bool = False,
) -> Removed:
    """Take what pending version `number` of the store `name` put at `path` out of it.

    With `everywhere`, out of the store and of all that was ever pending for it, or waits. Raises `NotFound`
    for what it did not write, `Refused` while it waits or is shown, unless `everywhere`, and otherwise what
    `engramfs.history.redaction.redact` raises.
    """
    redaction = Redaction(now, author, reason, 0)
    if everywhere:
        return carry_out(repository, partial(_plan_everywhere, repository, name, number, path), redaction)

    def body(writer: Writer) -> Removed:
        store = catalog.named(writer, name)
        fork, span = _span(writer, store, number, path)
        _require_decided(writer, store, number, fork, span)
        return _carry_out(writer, fork, span, path, redaction)

    return repository.transact(body)


def redactable(reader: Reader, store: Store, number: int, path: bytes) -> Literal["now", "waits", "lost"]:
    """Whether `redact_pending` would take it out, or has to wait for a decision, or does not find it."""
    try:
        fork, span = _span(reader, store, number, path)
        _require_decided(reader, store, number, fork, span)
    except Refused:
        return "waits"
    except NotFound:
        return "lost"
    return "now"


def _plan_everywhere(repository: Repository, name: str, number: int, path: bytes) -> Plan:
    with repository.engine.reading() as reader:
        store = catalog.named(reader, name)
        _, span = _span(reader, store, number, path)
    require_content(span.entry, f"{printable(path)} is empty in pending {number} of {store.name}")
    return redaction_everywhere.plan(repository, store, span.entry)


def _span(reader: Reader, store: Store, number: int, path: bytes) -> tuple[Store, Span]:
    offered = pending.get(reader, store, number)
    where = f"pending {number} of {store.name}"
    fork = catalog.get(reader, offered.fork)
    own = find_own(reader, fork, offered, path)
    parent, entry = own or find(version_tree(reader, fork, offered.version), store, where, path)
    last = path.rpartition(b"/")[2]
    if reader.get(Table.HISTORY, keys.history(fork.id, parent, last, offered.version)) is None:
        raise NotFound(f"{where} did not write {printable(path)}; redact the version that did")
    head = catalog.head(reader, fork.id).number
    return fork, Span(parent, last, offered.version, head, entry, (offered.version,))


def _require_decided(reader: Reader, store: Store, number: int, fork: Store, span: Span) -> None:
    where = f"pending {number} of {store.name}"
    or_else = "or redact it with --everywhere, and it waits on without that"
    if pending.get(reader, store, number).state == "open":
        reject = f"engramfs pending reject {store.name} {number} --reason TEXT"
        raise Refused(f"{where} waits; {reject} first, {or_else}")
    live = reader.get(Table.LIVE, keys.live(fork.id, span.parent, span.name))
    if live and decode_entry(live).holds(span.entry):
        raise Refused(
            f"{where} is still shown to its session, since a later change builds on it; decide on that, "
            f"{or_else}"
        )


def _carry_out(writer: Writer, fork: Store, span: Span, path: bytes, redaction: Redaction) -> Removed:
    leave_residue(writer)
    versions, count = [], 0
    for number, began in _ends(writer, fork, span):
        edit = Edit(span.entry, frozenset([path]), began)
        lost, remaining = edit_changes(writer, fork.id, number, [edit], b"")
        if began or remaining:
            versions.append(number)
            count += lost
            add_redaction(
                writer, fork.id, number, msgspec.structs.replace(redaction, changes=lost, remaining=remaining)
            )
    key = keys.history(fork.id, span.parent, span.name, span.first)
    writer.put(Table.HISTORY, key, encode(span.entry.redacted()))
    forget_name(writer, fork.id, span.parent, span.name, waiting_versions(writer, fork))
    return Removed(fork.id, span.entry, (span,), tuple(versions), count)


def _ends(reader: Reader, fork: Store, span: Span) -> list[tuple[int, bool]]:
    """The version that wrote it, and the next one that changed the name, if there is one."""
    stem = keys.live(fork.id, span.parent, span.name) + b"\0"
    following = reader.at_or_after(Table.HISTORY, stem + keys.u64(span.first + 1))
    ends = [(span.first, True)]
    if following is not None and following[0][:-8] == stem:
        ends.append((keys.read_u64(following[0][-8:]), False))
    return ends
