"""A whole collection, as `engramfs gc` runs it: what is not needed goes, and its bytes leave the file."""

import glob
import os
import time
from collections.abc import Callable
from importlib.util import find_spec

from engramfs.daemon.client import ControlClient
from engramfs.daemon.gc_client import ByDaemon
from engramfs.history.collection import Collected, collect
from engramfs.history.collection.carrier import Alone
from engramfs.history.collection.report import Progress
from engramfs.history.repository import Repository, require_log
from engramfs.history.residue import clear_residue, leave_residue, residue
from engramfs.model.quantities import format_size
from engramfs.storage.lmdb_wiping import SETTLING, Wiping

_PATIENCE = 10.0  # seconds to wait for readers

# Beside the log, of which nothing is removed: patterns of names, and what they are.
_KEPT = {
    "journal.torn": "the end of a journal that a crash cut short",
    "lost-*": "bytes of files that belonged to nothing after a crash",
    "schema-*": "the copy from before a migration",
    "before-restore-*": "the state that a backup took the place of",
}


def collect_beside_daemon(state: str, client: ControlClient, progress: Progress) -> Collected:
    """Collect while a daemon writes. Raises `Stale` when its worker ended meanwhile."""
    carrier = ByDaemon(client)
    collected = _begun(state)
    with Repository.open(state) as repository:
        collect(repository, carrier, time.time_ns(), progress, collected)
    _wipe(state, collected, carrier.age, carrier.wiped, progress)
    return collected


def collect_alone(state: str, progress: Progress, recover: Callable[[Repository], None]) -> Collected:
    """Collect under the store lock. Raises `Busy` when another process writes."""
    collected = _begun(state)
    with _alone(state) as repository:
        recover(repository)
        collect(repository, Alone(repository), time.time_ns(), progress, collected)

    def age() -> None:
        with _alone(state) as repository:
            for _ in range(SETTLING):
                repository.transact(leave_residue)

    def wiped(known: bytes) -> None:
        with _alone(state) as repository:
            repository.transact(lambda writer: clear_residue(writer, known))

    _wipe(state, collected, age, wiped, progress)
    return collected


def _alone(state: str) -> Repository:
    return Repository.open(state, write="engramfs gc")


def _log(state: str) -> str:
    return os.path.join(state, "log")


def _begun(state: str) -> Collected:
    require_log(state)
    began = time.monotonic()
    with Wiping(_log(state)) as wiping:
        size = wiping.measure()
    return Collected(began=began, used_before=size.used, disk_before=size.disk)


def _wipe(
    state: str,
    collected: Collected,
    age: Callable[[], None],
    wiped: Callable[[bytes], None],
    progress: Progress,
) -> None:
    """Wipe the gaps if something was removed since that was done last; free pages become holes either way."""
    began = time.monotonic()
    is_dirty = bool(_residue(state))
    if is_dirty:
        progress("wiping what was removed", 0, 0)
        with Wiping(_log(state)) as wiping:
            wiping.wipe_gaps()
    if is_dirty or collected.deltas:
        age()
    known = _residue(state)
    progress("giving free space back", 0, 0)
    with Wiping(_log(state)) as wiping:
        wiping.wipe_free_pages()
        while (held := wiping.held()) and time.monotonic() < began + _PATIENCE:
            time.sleep(0.1)
            wiping.wipe_free_pages()
        size = wiping.measure()
    if held:
        collected.notes.append(
            f"{format_size(held)} of removed pages are being read and stay until the next engramfs gc"
        )
    elif known:
        wiped(known)
    collected.used_after, collected.disk_after = size.used, size.disk
    collected.seconds = time.monotonic() - collected.began
    collected.notes += [*_kept(state), *_in_search_index(state)]


def _residue(state: str) -> bytes:
    with Repository.open(state) as repository, repository.engine.reading() as reader:
        return residue(reader)


def _in_search_index(state: str) -> list[str]:
    """What to do about the search index, when there is something to do."""
    path = os.path.join(state, "search")
    if not os.path.isdir(path):
        return []
    if find_spec("tantivy") is None:
        return [f"{path} is a search index that nothing follows without engramfs[search]; remove it"]
    from engramfs.search.forgetting import may_hold_what_is_gone
    from engramfs.search.index_directory import IndexDirectory

    with Repository.open(state) as repository, repository.engine.reading() as reader:
        if not may_hold_what_is_gone(reader, IndexDirectory(state)):
            return []
    return [f"{path} may hold text that is gone from the stores; the next engramfs search takes it out"]


def _kept(state: str) -> list[str]:
    return [
        f"{path} is {what}; gc removes nothing from it"
        for pattern, what in _KEPT.items()
        for path in sorted(glob.glob(os.path.join(glob.escape(state), pattern)))
    ]
