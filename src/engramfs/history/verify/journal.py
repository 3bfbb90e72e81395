"""What is not in the log yet can be replayed: the journal is read through, and never written to."""

import hashlib

from engramfs.errors import NotFound
from engramfs.history import catalog
from engramfs.history.repository import Repository
from engramfs.history.verify.report import Reporter
from engramfs.model.entry import Entry, Kind
from engramfs.model.operation import Link, Note, Rename, Unlink, Update
from engramfs.storage import blobs
from engramfs.storage.journal import Record
from engramfs.storage.journal_scan import JournalScan


def check_journal(repository: Repository, reporter: Reporter) -> None:
    """Records have rising positions, and their contents are in them or in the log.

    A torn tail is a note: it was never acknowledged.
    """
    scan = JournalScan(repository.journal_path)
    inline: set[bytes] = set()
    named: dict[bytes, int] = {}  # digest → store, of contents that must be in the log
    stores: set[int] = set()
    position = 0
    for record in scan:
        stores.add(record.store)
        if record.position <= position:
            reporter.add("", f"the journal has record {record.position} after {position}")
        position = record.position
        if record.content is not None:
            inline.add(hashlib.sha256(record.content).digest())
        entry = entry_of(record)
        if entry is not None and entry.kind is Kind.FILE and entry.digest not in inline:
            named.setdefault(entry.digest, record.store)
    if scan.torn_bytes:
        reporter.add(
            "",
            f"the journal ends with {scan.torn_bytes:,} bytes of a record that was never acknowledged",
            "note",
        )
    if not scan.overtaken:
        _check_named(repository, stores, named, reporter)


def entry_of(record: Record) -> Entry | None:
    """What a record says that a node is."""
    match record.operation:
        case Link(entry=entry) | Update(entry=entry) | Rename(moved=entry):
            return entry
        case Unlink() | Note():
            return None


def _check_named(
    repository: Repository, stores: set[int], named: dict[bytes, int], reporter: Reporter
) -> None:
    with repository.engine.reading() as reader:
        known = {}
        for store in sorted(stores):
            try:
                known[store] = catalog.get(reader, store).name
            except NotFound:
                problem = f"the journal has records of store number {store}, which does not exist"
                reporter.add("", problem, "note")
        for digest, store in named.items():
            if store in known and not blobs.exists(reader, digest):
                reporter.add(known[store], f"the journal names blob {digest.hex()}, which is nowhere")
