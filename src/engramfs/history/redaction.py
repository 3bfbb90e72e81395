"""Taking a content out of the history of a store: content, path and digest go, who and when stay.

What is done to the rows of a store, all in one transaction:

 1. `history`: the row that holds the content becomes one that says so and cannot be read
    (`Entry.redacted`), for as long as other versions use its name. Otherwise every row of the name goes,
    and so do its rows in `nodes`: then the name is gone as well.
 2. `changes`: the change that brought the content loses path and digest. What came after in that place
    loses what it says of it: the digest from before, or, of a deletion, everything.
 3. `redacted`: each version that lost something says who did it, when and why, and has the digest of what
    is left of its changes. Headers stay as they are, so the chain still proves itself.

The blob goes when a collection finds that nothing needs it. The head is never redacted: it is what the
mounts show, so there has to be a newer version first.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from engramfs.errors import UsageError
from engramfs.history import catalog, redaction_everywhere
from engramfs.history.redaction_plan import Part, Plan, require_past
from engramfs.history.redaction_rows import Removed
from engramfs.history.redaction_target import target
from engramfs.history.repository import Repository
from engramfs.model.author import Author
from engramfs.model.entry import EMPTY_DIGEST, Entry
from engramfs.model.names import printable
from engramfs.model.redaction import Redaction
from engramfs.storage.protocol import Writer

_ATTEMPTS = 5


def redact(
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
    """Take what `path` holds in version `number` out of the store `name`.

    That is: out of every version that shows it there, up to the next change of the path. With `everywhere`,
    out of each path and version of the store that holds the same content, and of all that was ever pending
    for it. Nothing may be unsealed.

    Raises `NotFound` for an unknown store, version or path, `Redacted` when that was done before,
    `UsageError` for a directory, and `Refused` when the head, or what waits for a decision, holds it.
    """
    redaction = Redaction(now, author, reason, 0)
    make = partial(_plan, repository, name, number, path, everywhere=everywhere)
    return carry_out(repository, make, redaction)


class Planned(Protocol):
    """A redaction that was planned by reading."""

    def carry_out(self, writer: Writer, redaction: Redaction) -> Removed | None:
        """None when somebody wrote since."""


def carry_out(repository: Repository, make: Callable[[], Planned], redaction: Redaction) -> Removed:
    """Do what `make` plans; anew, if somebody wrote meanwhile.

    Where that goes on, writers wait in the end while it is planned: reading then sees what is committed, and
    nothing else can be.
    """
    for _ in range(_ATTEMPTS):
        removed = repository.transact(partial(make().carry_out, redaction=redaction))
        if removed is not None:
            return removed

    def body(writer: Writer) -> Removed:
        removed = make().carry_out(writer, redaction)
        assert removed is not None, "no head moves while this writes"
        return removed

    return repository.transact(body)


def _plan(repository: Repository, name: str, number: int, path: bytes, *, everywhere: bool) -> Plan:
    with repository.engine.reading() as reader:
        store = catalog.named(reader, name)
        head = catalog.head(reader, store.id).number
        aim = target(reader, store, number, path)
        if not everywhere:
            shown = (aim.span,) if aim.span is not None else ()
            require_past(reader, store, shown)
            return Plan(aim.content, (Part(store, head, shown, aim.edits),))
    require_content(aim.content, f"{printable(path)} is empty in {store.name}@{number}")
    return redaction_everywhere.plan(repository, store, aim.content, aim.edits)


def require_content(content: Entry, what: str) -> None:
    """Raise `UsageError` for the empty content, which says nothing of where else it belongs."""
    if content.digest == EMPTY_DIGEST:
        raise UsageError(f"{what}; redact it without --everywhere")
