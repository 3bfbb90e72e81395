"""Versions and their changes prove themselves (invariant 4)."""

from collections.abc import Iterator

from engramfs.errors import Corrupt
from engramfs.history import catalog
from engramfs.history.log import decode_changes, decode_version
from engramfs.history.redaction_rows import redactions
from engramfs.history.verify.batches import in_batches
from engramfs.history.verify.report import Reporter
from engramfs.model.store import Store
from engramfs.model.version import Version, chain, digest_of_changes
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Row, Table


def check_chain(engine: Engine, store: Store, reporter: Reporter) -> None:
    """Every version from the oldest to the head that there was at the start, and none above the head.

    What retention left of older ones proves itself alone.
    """
    with engine.reading() as reader:
        head = catalog.head(reader, store.id)
    check = _Chain(store, reporter, head.oldest)
    start, stop = keys.version(store.id, 0), keys.version(store.id, head.number + 1)
    in_batches(engine, Table.VERSIONS, start, stop, check.batch, reporter.checked)
    check.gap(head.number + 1)
    if check.digest not in (head.digest, None):
        reporter.add(store.name, f"the head does not have the digest of version {head.number}")
    with engine.reading() as reader:
        _check_nothing_above(reader, store, reporter)


class _Chain:
    def __init__(self, store: Store, reporter: Reporter, oldest: int) -> None:
        self._store = store
        self._reporter = reporter
        self._oldest = oldest
        self._expected = oldest
        self.digest: bytes | None = b"" if oldest == 1 else None  # of the version before; None: not known

    def batch(self, reader: Reader, rows: list[Row]) -> None:
        for key, value in rows:
            number = keys.read_u64(key[4:])
            if number >= self._oldest:
                self.gap(number)
            try:
                version = decode_version(value)
                for problem in self._problems(reader, number, version):
                    self._reporter.add(self._store.name, problem)
                self.digest = version.digest if number >= self._oldest - 1 else None
            except Corrupt as error:
                self._reporter.add(self._store.name, f"version {number}: {error.message}")
                self.digest = None
        self._reporter.versions += len(rows)

    def gap(self, number: int) -> None:
        """Report the versions that are missing before `number`, which comes next."""
        if number > self._expected:
            last = number - 1
            missing = (
                f"version {last} is" if last == self._expected else f"versions {self._expected} to {last} are"
            )
            self._reporter.add(self._store.name, f"{missing} missing")
            self.digest = None
        self._expected = number + 1

    def _problems(self, reader: Reader, number: int, version: Version) -> Iterator[str]:
        if version.number != number:
            yield f"version {number} says that it is {version.number}"
        if self.digest is not None and version.parent_digest != self.digest:
            yield f"version {number} does not follow from the version before it"
        redacted = redactions(reader, self._store.id, number)
        headers = [one.header for one in redacted if one.header]
        if chain(version) != (headers[-1] if headers else version.digest):
            yield f"version {number} does not have its digest: its header was altered"
        start, stop = keys.changes(self._store.id, number, 0), keys.changes(self._store.id, number + 1, 0)
        parts = [value for _, value in reader.scan(Table.CHANGES, start, stop)]
        left = [one.remaining for one in redacted if one.remaining]
        if digest_of_changes(parts) != (left[-1] if left else version.changes_digest):
            yield f"version {number} does not have its changes: they were altered"
            return
        count = sum(len(decode_changes(part)) for part in parts)
        if count != version.change_count:
            yield f"version {number} has {count} changes and says {version.change_count}"


def _check_nothing_above(reader: Reader, store: Store, reporter: Reporter) -> None:
    newest = catalog.head(reader, store.id).number
    start, stop = keys.version(store.id, newest + 1), keys.version(store.id + 1, 0)
    for table in (Table.VERSIONS, Table.CHANGES):
        if next(reader.scan(table, start, stop), None) is not None:
            reporter.add(store.name, f"the table {table} has rows above the head, which is version {newest}")
