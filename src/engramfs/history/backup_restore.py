"""A backup takes the place of what a state directory holds.

    <state>/restoring/               the copy of the backup while it is made and checked
    <state>/before-restore-<time>/   what was there: a state directory as well, for a person to remove

The copy is whole and verified before anything else is touched. Then names change, under the store lock: what
was there moves aside, and the log of the copy comes last, so that a crash in between leaves a state without
stores beside both, and never one that lacks its journal.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from engramfs.errors import AlreadyExists, Corrupt, EngramError, NotFound, UsageError
from engramfs.history import catalog
from engramfs.history.backup import backup
from engramfs.history.repository import Repository
from engramfs.history.verify import Report, verify
from engramfs.history.verify.report import Progress
from engramfs.model.times import format_time
from engramfs.storage.durable import make_durable
from engramfs.storage.lmdb_engine import LmdbEngine
from engramfs.storage.lock import StoreLock

COPY = "restoring"
ASIDE = "before-restore-"
_PURPOSE = "engramfs restore-backup"
_PARTS = ("log", "journal", "spool")  # of a state directory


class BroughtBack(msgspec.Struct, frozen=True):
    """What a state directory holds now; `aside` is where what it held before is, if anything."""

    stores: int
    versions: int
    aside: str | None


def bring_back(
    directory: str, state: str, now: int, *, over: bool = False, progress: Progress = lambda *_: None
) -> BroughtBack:
    """Make `state` hold what the backup in `directory` holds.

    Raises `NotFound` and `UsageError` for what is no backup, `AlreadyExists` when `state` has stores, unless
    `over`, `Busy` while somebody writes there, `Corrupt` when the backup is not sound, and as `backup` does.
    """
    require_backup(directory, state)
    os.makedirs(state, mode=0o700, exist_ok=True)
    lock = StoreLock(state, _PURPOSE)
    try:
        is_there = os.path.exists(os.path.join(state, "log"))
        if is_there and not over and _has_stores(state):
            raise AlreadyExists(
                f"{state} has stores; --over moves them aside, --store NAME takes single stores of the backup"
            )
        with copied(directory, state) as copy:
            with Repository.open(copy, write=_PURPOSE) as repository:
                report = require_sound(verify(repository, None, progress), directory)
            aside = _move_aside(state, now) if is_there else None
            _move_in(copy, state)
        return BroughtBack(report.stores, report.versions, aside)
    finally:
        lock.close()


def require_backup(directory: str, state: str) -> None:
    """Raises `NotFound` and `UsageError` unless `directory` is a backup, and another place than `state`."""
    if not os.path.exists(os.path.join(directory, "log", "data.mdb")):
        raise NotFound(f"{directory} is no backup: it has no log/data.mdb; engramfs backup DIR makes one")
    if os.path.exists(state) and os.path.samefile(directory, state):
        raise UsageError(f"{directory} is the state directory itself; name a backup of it")


def require_sound(report: Report, directory: str) -> Report:
    """`report`, unless it says that the backup in `directory` is damaged. Raises `Corrupt`."""
    problems = [finding for finding in report.findings if finding.severity == "error"]
    if problems:
        first = f"{problems[0].store}: {problems[0].problem}" if problems[0].store else problems[0].problem
        raise Corrupt(
            f"the backup {directory} is damaged, nothing was changed ({len(problems)} findings; the first: "
            f"{first}); take another, or --store NAME for a store that is sound"
        )
    return report


@contextmanager
def copied(directory: str, state: str) -> Iterator[str]:
    """A copy of the backup in `directory`, below `state`; what is left of it at the end goes.

    It may be of an older schema: whoever opens the copy to write brings it to the present one.
    """
    copy = os.path.join(state, COPY)
    shutil.rmtree(copy, ignore_errors=True)  # of one that was cut short
    try:
        with Repository(
            directory, LmdbEngine(os.path.join(directory, "log"), read_only=True), None
        ) as source:
            backup(source, copy)
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _has_stores(state: str) -> bool:
    """Whether there is something to lose. What cannot be read may well be."""
    try:
        with Repository.open(state) as repository, repository.engine.reading() as reader:
            return next(catalog.every(reader), None) is not None
    except NotFound:
        return False
    except (EngramError, OSError):
        return True


def _move_aside(state: str, now: int) -> str:
    aside = os.path.join(state, ASIDE + format_time(now)[:19].replace(":", "-") + "Z")
    os.mkdir(aside, 0o700)
    _move(state, aside, [name for name in _PARTS if os.path.lexists(os.path.join(state, name))])
    return aside


def _move_in(copy: str, state: str) -> None:
    names = [name for name in os.listdir(copy) if name not in ("lock", "log")]
    _move(copy, state, [*names, "log"])


def _move(source: str, target: str, names: list[str]) -> None:
    for name in names:
        os.rename(os.path.join(source, name), os.path.join(target, name))
    make_durable(target)
    make_durable(source)
