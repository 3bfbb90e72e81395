"""What it costs to be ready for a crash, and to come back from one."""

import hashlib
import time
from collections.abc import Iterator
from statistics import median

from tests.bench.daemon import STATE, Daemon
from tests.bench.figures import Figure, Target
from tests.bench.stores import AUTHOR

from engramfs.history import catalog
from engramfs.history.repository import Repository
from engramfs.model.entry import EMPTY_DIGEST, ROOT_NODE, Entry, Kind
from engramfs.model.operation import Link, Operation, Update
from engramfs.storage.journal import Journal, Record
from engramfs.vfs.recovery import recover

_RECORDS = 10_000
_WATCHED = 10.0  # seconds


def crashes(directory: str) -> Iterator[Figure]:
    yield _replay(f"{directory}/replay")
    with Daemon(f"{directory}/watched") as daemon:
        yield _watching(daemon)


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
