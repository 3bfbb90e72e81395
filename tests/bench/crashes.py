"""What it costs to be ready for a crash, and to come back from one."""

import hashlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from statistics import median

from tests.bench import stores
from tests.bench.daemon import STATE, Daemon
from tests.bench.figures import Figure, Target
from tests.bench.stores import AUTHOR

from engramfs.daemon.client import ControlClient
from engramfs.history import catalog
from engramfs.history.repository import Repository
from engramfs.model.entry import EMPTY_DIGEST, ROOT_NODE, Entry, Kind
from engramfs.model.operation import Link, Operation, Update
from engramfs.storage.journal import Journal, Record
from engramfs.vfs.recovery import recover

_RECORDS = 10_000
_WATCHED = 10.0  # seconds
_KILLS = 10
_STORES, _SESSIONS = 10, 1_000
_DIRECTORIES, _FILES_IN_DIRECTORY = 100, 1_000


def crashes(directory: str) -> Iterator[Figure]:
    yield _replay(f"{directory}/replay")
    daemon = Daemon(f"{directory}/few")
    stores.with_stores(daemon.state, _STORES - 1, 20, 1, 20)
    with daemon:
        yield _watching(daemon)
        yield _killing(daemon, f"{_STORES} stores", Target(1))
        client = ControlClient(os.path.dirname(daemon.hub))
        for number in range(_SESSIONS):
            client.call("session.open", agent="bench", actor=f"actor{number}")
        yield _killing(daemon, f"{_SESSIONS:,} open sessions", Target(2))
    daemon = Daemon(f"{directory}/large")
    stores.with_stores(daemon.state, 0, 0, _DIRECTORIES, _FILES_IN_DIRECTORY)
    with daemon:
        _list_all(daemon.writable)
        count = _DIRECTORIES * _FILES_IN_DIRECTORY
        yield _killing(daemon, f"a store of {count:,} files, all of them listed before", Target(2))


def _killing(daemon: Daemon, what: str, target: Target) -> Figure:
    """What a client sees that saves one file after another while the worker is killed."""
    client = _Client(daemon.writable)
    try:
        pids = [_killed(daemon, client) for _ in range(_KILLS)]
        waits = client.end()
    except RuntimeError as error:
        raise RuntimeError(f"{error}; the daemon said:\n{_said(daemon)}") from error
    if len(set(pids)) != _KILLS or len(waits) < _KILLS:
        raise RuntimeError(f"{len(set(pids))} workers were killed, and {len(waits)} files saved")
    return Figure(
        name=f"the longest wait over kill -9 of the worker, {what}",
        unit="s",
        ours=max(waits),
        target=target,
        note=f"of a call that saves a file, over {_KILLS} kills; no call failed; "
        f"median of the {_KILLS} longest {median(sorted(waits)[-_KILLS:]):.2f}",
    )


def _said(daemon: Daemon) -> str:
    """What the daemon said last, but for what is routine."""
    with open(f"{os.path.dirname(daemon.hub)}/daemon.log", encoding="utf-8", errors="replace") as file:
        return "".join([line for line in file if "level=info" not in line][-40:])


def _killed(daemon: Daemon, client: "_Client") -> int:
    time.sleep(1.0)
    worker = int(ControlClient(os.path.dirname(daemon.hub)).call("ping")["pid"])
    saved = client.saved
    os.kill(worker, signal.SIGKILL)
    while client.saved < saved + 10:
        client.check()
        time.sleep(0.01)
    return worker


class _Client:
    """Saves small files in `directory`, in a thread, until `end`."""

    def __init__(self, directory: str) -> None:
        self.saved = 0
        self._directory = directory
        self._waits: list[float] = []
        self._failure: OSError | None = None
        self._ending = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._ending:
                begun = time.perf_counter()
                with open(f"{self._directory}/saved-{self.saved % 100}", "wb") as file:
                    file.write(b"%d" % self.saved)
                self._waits.append(time.perf_counter() - begun)
                self.saved += 1
                time.sleep(0.002)
        except OSError as error:
            self._failure = error

    def check(self) -> None:
        """Raise `RuntimeError` when a call has failed."""
        if self._failure is not None:
            raise RuntimeError(f"a call failed over a kill: {self._failure}")

    def end(self) -> list[float]:
        """Seconds that each save has taken."""
        self._ending = True
        self._thread.join(60)
        self.check()
        return self._waits


def _list_all(directory: str) -> None:
    for above, _, names in os.walk(directory):
        for name in names:
            os.stat(os.path.join(above, name))


def _replay(directory: str) -> Figure:
    taken = []
    for turn in range(3):
        with Repository.open(f"{directory}-{turn}", write="the bench") as repository:
            _fill_journal(repository)
            begun = time.perf_counter()
            found = recover(repository)
            taken.append(time.perf_counter() - begun)
            if found.replayed != _RECORDS or found.skipped:
                raise RuntimeError(f"replayed {found.replayed:,} records instead of {_RECORDS:,}")
    return Figure(
        name=f"replay of a journal of {_RECORDS:,} records",
        unit="s",
        ours=median(taken),
        target=Target(1),
        note=f"{_RECORDS // 2:,} files, made and closed, become one version; a start begins with it",
    )


def _fill_journal(repository: Repository) -> None:
    """What an agent leaves that saves many small files within a second: each is created, then closed."""
    now = time.time_ns()
    store = repository.transact(lambda writer: catalog.create(writer, STATE, now=now))
    journal = Journal(repository.journal_path, 1 << 30)
    for number in range(_RECORDS // 2):
        node, content = ROOT_NODE + 1 + number, b"# Note %d\n" % number * 20
        created = Entry(node, Kind.FILE, 0o644, 0, now, now, EMPTY_DIGEST, origin=node)
        digest = hashlib.sha256(content).digest()
        closed = Entry(node, Kind.FILE, 0o644, len(content), now, now, digest, origin=node)
        steps: list[tuple[Operation, bytes | None]] = [
            (Link(ROOT_NODE, b"note-%05d.md" % number, created), None),
            (Update(closed), content),
        ]
        for operation, written in steps:
            position = journal.position + 1
            journal.append(
                Record(position, store.id, AUTHOR, 1, operation, written, closed=written is not None)
            )
    journal.close()


def _watching(daemon: Daemon) -> Figure:
    worker = daemon.worker()
    processes = {"keeper": _parent(worker), "worker": worker}
    before = {name: _processor_time(pid) for name, pid in processes.items()}
    time.sleep(_WATCHED)
    used = {name: (_processor_time(pid) - before[name]) / _WATCHED for name, pid in processes.items()}
    return Figure(
        name="watching over an idle worker, processor time in a second",
        unit="µs",
        ours=sum(used.values()) * 1e6,
        note=f"keeper {used['keeper'] * 1e6:,.0f}, worker {used['worker'] * 1e6:,.0f}; over {_WATCHED:g} s",
    )


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def _processor_time(pid: int) -> float:
    """Seconds that a process has run, by its clock: see clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | 2)
