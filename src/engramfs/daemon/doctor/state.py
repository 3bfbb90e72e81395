"""The state directory: what is in it, who holds it, and what was left behind."""

import contextlib
import os
import time
from collections.abc import Iterator

from engramfs.daemon.doctor.finding import Finding, note, ok, problem
from engramfs.daemon.doctor.installation import Installation
from engramfs.errors import Corrupt
from engramfs.history import catalog, log
from engramfs.history.backup_restore import ASIDE, COPY
from engramfs.history.repository import Repository
from engramfs.model.quantities import format_size
from engramfs.model.times import format_time
from engramfs.storage import keys
from engramfs.storage.journal_scan import JournalScan
from engramfs.storage.lmdb_engine import LmdbEngine
from engramfs.storage.lock import holder_of
from engramfs.storage.protocol import Table
from engramfs.vfs.recovery import count_unsealed

_FULL = 0.8
_SECOND = 10**9
_AHEAD = 5 * _SECOND  # of the clock, before it is worth a word


def check_schema(installation: Installation) -> Iterator[Finding]:
    state = installation.locations.state
    if not installation.has_state:
        yield ok(f"{state} holds no stores yet")
        return
    engine = LmdbEngine(os.path.join(state, "log"), read_only=True)
    with contextlib.closing(engine), engine.reading() as reader:
        value = reader.get(Table.META, keys.SCHEMA_KEY)
    found = keys.read_u32(value) if value is not None else 0
    if found == keys.SCHEMA:
        yield ok(f"the log has schema {found}")
    elif found < keys.SCHEMA:
        yield note(
            f"the log has schema {found}, this engramfs writes {keys.SCHEMA}",
            "commands that read are refused until it is migrated",
            "engramfs up or engramfs restart migrates it, after a copy",
        )
    else:
        yield problem(
            f"the log has schema {found}, this engramfs knows {keys.SCHEMA}",
            "nothing in it can be read or written",
            "use the engramfs that wrote it, or a later one",
        )


def check_lock(installation: Installation) -> Iterator[Finding]:
    state = installation.locations.state
    holder = holder_of(state)
    if holder is None:
        yield ok("nobody holds the store lock")
        return
    if installation.worker is not None and f"(pid {installation.worker})" in holder:
        yield ok(f"{holder} holds the store lock")
        return
    yield note(
        f"{holder} holds the store lock of {state}",
        "commands that write, and any daemon started now, are refused until it ends",
        "wait for it, or end it in order (SIGTERM)",
    )


def check_journal(installation: Installation) -> Iterator[Finding]:
    scan = JournalScan(os.path.join(installation.locations.state, "journal"))
    try:
        for _ in scan:
            pass
        size = os.path.getsize(scan.path)
    except FileNotFoundError:
        return
    except Corrupt as error:
        found, _, do = error.message.partition("; ")
        yield problem(found, "what was acknowledged and not sealed is in it, and no daemon starts", do)
        return
    shown = f"the journal has {scan.records:,} records, {format_size(size)}"
    allowed = int(installation.config.journal.max_bytes)
    if size > allowed * _FULL:
        yield problem(
            f"{shown} of {format_size(allowed)}",
            "it is not being sealed; when it is full, writes fail with ENOSPC",
            "see failures above, free disk space, or raise journal.max_bytes",
        )
    elif scan.records and installation.worker is None:
        yield _left_behind(installation, shown, scan.records)
    else:
        yield ok(shown)
    if scan.torn_bytes and installation.worker is None:
        yield note(
            f"{scan.torn_bytes:,} bytes at the end of the journal are torn",
            "a write was under way when the machine or the daemon died; it was never acknowledged",
            "nothing: the next start drops them",
        )


def _left_behind(installation: Installation, shown: str, records: int) -> Finding:
    """What a journal means that no daemon is writing to."""
    unsealed = records
    if installation.has_state:
        with Repository.open(installation.locations.state) as repository:
            unsealed = count_unsealed(repository)
    if not unsealed:
        return ok(f"{shown}, and all of it is in the log; the next start empties it")
    return note(
        shown if unsealed == records else f"{shown}; {unsealed:,} of them are not in the log",
        "a daemon acknowledged them, and could not seal them before it ended: they are in no version yet",
        "any command that reads the stores, or engramfs up, seals them",
    )


def check_log(installation: Installation) -> Iterator[Finding]:
    if not installation.has_state:
        return
    with Repository.open(installation.locations.state) as repository:
        usage, damage = repository.engine.usage(), repository.engine.check()
    for what in damage:
        yield problem(what, "the stores cannot be served", "engramfs restore-backup brings a backup back")
    shown = f"the log has {format_size(usage.used)} in a map of {format_size(usage.allowed)}"
    if usage.used > usage.allowed * _FULL:
        yield note(
            shown,
            "it is doubled when it is full, which takes address space, and disk only as it fills",
            "engramfs gc frees what no version needs; look at the space on the disk",
        )
    else:
        yield ok(shown)


def check_clock(installation: Installation) -> Iterator[Finding]:
    """A version is never earlier than the one before it, so one from the future holds the time up."""
    if not installation.has_state:
        return
    newest, name, now = 0, "", time.time_ns()
    with Repository.open(installation.locations.state) as repository, repository.engine.reading() as reader:
        for store in catalog.every(reader):
            version = next(log.versions(reader, store.id, limit=1), None)
            if version is not None and version.time > newest:
                newest, name = version.time, store.name
    if newest > now + _AHEAD:
        yield problem(
            f"the newest version of {name} is of {format_time(newest)}, and it is {format_time(now)}",
            "until the clock is there, its new versions all have that time, so no time tells them apart",
            "set the clock (timedatectl), unless it was that version's that was wrong",
        )
    else:
        yield ok("no version is from the future")


def check_leftovers(installation: Installation) -> Iterator[Finding]:
    state = installation.locations.state
    names = sorted(os.listdir(state)) if os.path.isdir(state) else []
    if lost := [name for name in names if name.startswith("lost-")]:
        yield note(
            f"{state} has {len(lost)} files like {lost[0]}",
            "contents that could not be recorded are kept there",
            "look whether they matter (engramfs status said why), then remove them",
        )
    copies = [name for name in names if name.startswith((ASIDE, "schema-"))]
    if copies:
        yield note(
            f"{state} has copies of earlier states: {', '.join(copies)}",
            "they take space on the disk",
            "remove them when nothing in them is missed",
        )
    if COPY in names and holder_of(state) is None:
        yield note(
            f"{state}/{COPY} was left by a restore-backup that was cut short",
            "nothing was changed by it",
            "run it again, or remove the directory",
        )
    spool = os.path.join(state, "spool")
    files = os.listdir(spool) if os.path.isdir(spool) else []
    if files and holder_of(state) is None:
        yield note(
            f"{spool} has {len(files)} files",
            "agents had so many files open, and not closed, when the daemon died",
            "nothing: what was closed is safe, and the next start removes them",
        )
