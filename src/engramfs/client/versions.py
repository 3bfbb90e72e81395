"""The part of the client that is about versions: to look at them, to undo them, to decide on what waits.

What changes something is done by the daemon when one runs, and otherwise under the store lock, in the name of
the person who runs the program. Documents are the JSON of the command of the same name.
"""

import time
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

from engramfs.client.connection import Connection
from engramfs.client.person import person
from engramfs.model.names import printable, raw

if TYPE_CHECKING:
    from engramfs.history.claims import Claim
    from engramfs.history.commit import Commit
    from engramfs.history.diff import Difference
    from engramfs.history.repository import Repository
    from engramfs.history.selection import Selection
    from engramfs.model.author import Author
    from engramfs.model.store import Store
    from engramfs.storage.protocol import Writer

Document = dict[str, Any]


class Versions(Connection):
    # Looking

    def log(
        self, store: str, path: str = "", limit: int | None = None, *, wanted: "Selection | None" = None
    ) -> list[Document]:
        """The versions of a store that changed `path` or something below it, newest first.

        `wanted` has more conditions. Raises `NotFound`.
        """
        import msgspec

        from engramfs.history import catalog, log
        from engramfs.history.selection import Selection, select

        wanted = msgspec.structs.replace(wanted or Selection(), path=raw(path))
        with self.reading() as reader:
            known = catalog.named(reader, store)
            head = catalog.head(reader, known.id)
            found = islice(select(reader, known, wanted, head.number), limit)
            return [
                log.describe(
                    one.version,
                    log.changes(reader, known.id, one.version.number),
                    partial=one.version.number < head.oldest,
                )
                for one in found
            ]

    def diff(
        self, store: str, old: int | None = None, new: int | None = None, path: str = ""
    ) -> "list[Difference]":
        """What is not the same in two versions at and below `path`, with what was renamed as one difference.

        `new` is the head unless it is given, and `old` the version before. Raises `NotFound`.
        """
        from engramfs.history import catalog
        from engramfs.history.between import between
        from engramfs.history.diff import with_renames

        with self.reading() as reader:
            known = catalog.named(reader, store)
            after = catalog.head(reader, known.id).number if new is None else new
            before = max(after - 1, 0) if old is None else old
            return with_renames(between(reader, known, before, after, raw(path)))

    def claims(self, session: str, since: int = 0) -> "list[Claim]":
        """What a session really wrote, by store and path, from `since` (nanoseconds since 1970) on."""
        from engramfs.history.claims import claims

        with self.reading() as reader:
            return list(claims(reader, session, since))

    def pending(self, store: str, *, decided: bool = False) -> list[Document]:
        """What waits for approval, oldest first; with `decided` also what did. Raises `NotFound`."""
        from engramfs.history import catalog, pending

        with self.reading() as reader:
            known = catalog.named(reader, store)
            waiting = (each for _, each in pending.waiting(reader, known.id))
            found = pending.every(reader, known.id) if decided else waiting
            return [pending.describe(reader, known, each) for each in found]

    # Undoing: the version that it made, or None when nothing changed

    def restore(self, store: str, number: int, path: bytes | None = None) -> Document | None:
        """Make version `number`, or one path as it was in it, the head again.

        Raises `NotFound`, `Archived`, and what `engramfs.history.restore.plan` raises.
        """
        from engramfs.history import restore

        def plan(writer: "Writer", known: "Store", author: "Author", now: int) -> "Commit":
            return restore.plan(writer, known, number, path, author, now)

        return self._commit("restore", plan, store=store, number=number, path=printable(path or b""))

    def revert(self, store: str, number: int) -> Document | None:
        """Undo version `number`, and keep what came after it. Raises what `revert.plan` raises."""
        from engramfs.history import revert

        def plan(writer: "Writer", known: "Store", author: "Author", now: int) -> "Commit":
            return revert.plan(writer, known, number, author, now)

        return self._commit("revert", plan, store=store, number=number)

    def _commit(
        self,
        method: str,
        plan: "Callable[[Writer, Store, Author, int], Commit]",
        *,
        store: str,
        **params: Any,
    ) -> Document | None:
        from engramfs.history import catalog, commit, log

        def body(writer: "Writer") -> Document | None:
            planned = plan(writer, catalog.writable(writer, store), person(), time.time_ns())
            version = commit.apply(writer, planned)
            return log.describe(version, planned.changes) if version else None

        return self._write(method, body, store=store, **params)

    # Deciding: what waited, as it is afterwards

    def approve(self, store: str, number: int, reason: str = "", *, merge: bool = False) -> Document:
        """Let pending version `number` become a version; raises what `approval.approve` raises.

        With `merge`, texts that changed meanwhile are merged line by line.
        """
        from engramfs.history import approval

        def decide(writer: "Writer", known: "Store") -> object:
            return approval.approve(writer, known, number, person(), time.time_ns(), reason, merge=merge)

        return self._decide("pending.approve", decide, store=store, number=number, reason=reason, merge=merge)

    def reject(self, store: str, number: int, reason: str) -> Document:
        """Let pending version `number` be; raises what `approval.reject` raises."""
        from engramfs.history import approval

        def decide(writer: "Writer", known: "Store") -> object:
            return approval.reject(writer, known, number, person(), time.time_ns(), reason)

        return self._decide("pending.reject", decide, store=store, number=number, reason=reason)

    def _decide(
        self,
        method: str,
        decide: "Callable[[Writer, Store], object]",
        *,
        store: str,
        number: int,
        **params: Any,
    ) -> Document:
        from engramfs.history import catalog, pending

        def body(writer: "Writer") -> Document:
            known = catalog.named(writer, store)
            decide(writer, known)
            return pending.describe(writer, known, pending.get(writer, known, number))

        decided = self._write(method, body, store=store, number=number, **params)
        assert decided is not None
        return decided

    def _write(
        self, method: str, body: "Callable[[Writer], Document | None]", **params: Any
    ) -> Document | None:
        """Let the daemon do `method`, or do it with `body` under the store lock."""

        def by_daemon() -> Document | None:
            document: Document | None = self.state.control.call(method, **params)
            return document

        def alone(repository: "Repository") -> Document | None:
            return repository.transact(body)

        with self.lock:
            return self.state.write(f"engramfs {method.replace('.', ' ')}", by_daemon, alone)
