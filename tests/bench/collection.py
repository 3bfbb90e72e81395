"""What `engramfs gc` takes, what it costs those who write meanwhile, and what it saves; and `git gc`."""

import contextlib
import json
import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from statistics import median, quantiles

from tests.bench import stores
from tests.bench.daemon import STATE, Daemon
from tests.bench.figures import Comparison, Figure, Target

from engramfs.history import catalog
from engramfs.history.repository import Repository
from engramfs.history.tree import VersionTree
from engramfs.model.entry import ROOT_NODE
from engramfs.storage import blobs
from engramfs.storage.lmdb_wiping import Wiping

_VERSIONS, _FILES, _KEPT = 100_000, 100, 1_000
_APPENDS, _SIZE, _LINE = 1_000, 100 << 10, 80
_PAUSE = 0.002  # seconds between two files that are written


def collections(directory: str) -> Iterator[Figure]:
    """Retention over a long history beside a writer, and deltas over one file that grew."""
    yield from _retention(directory)
    yield from _appends(directory)


def _retention(directory: str) -> Iterator[Figure]:
    daemon = Daemon(f"{directory}/collection")
    stores.with_versions(daemon.state, _FILES, _VERSIONS)
    with daemon:
        daemon.run("store", "set", STATE, "--keep-versions", str(_KEPT))
        with _Closes(daemon.writable) as before:
            time.sleep(3)
        with _Closes(daemon.writable) as during:
            begun = time.perf_counter()
            freed = json.loads(daemon.run("--json", "gc"))
            taken = time.perf_counter() - begun
    if freed["versions"] < _VERSIONS - _KEPT - _FILES:
        raise RuntimeError(f"gc removed {freed['versions']:,} versions")
    yield Figure(
        name=f"gc of {_VERSIONS:,} versions, {freed['versions']:,} removed",
        unit="s",
        ours=taken,
        peers=(Comparison("git gc", _git_gc(f"{directory}/versions.git", _notes())),),
        target=Target(60),
        note="the whole process, while a daemon serves and a program writes; git repacks the same history "
        "and removes none of it",
    )
    yield Figure(
        name="close() of 4 KiB while gc runs, p99",
        unit="ms",
        ours=during.p99,
        peers=(Comparison("without gc", before.p99),),
        target=Target(10),
        note=f"{len(during.seconds):,} closes, longest {max(during.seconds) * 1e3:.1f} ms, median "
        f"{median(during.seconds) * 1e3:.2f}; without gc longest {max(before.seconds) * 1e3:.1f}",
    )


class _Closes:
    """A thread that writes files through a mount, and how long each close took."""

    def __init__(self, directory: str) -> None:
        self.seconds: list[float] = []
        self._directory = directory
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @property
    def p99(self) -> float:
        """In milliseconds."""
        return quantiles(self.seconds, n=100)[98] * 1e3

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            descriptor = os.open(f"{self._directory}/written-{number % 50}", os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(descriptor, os.urandom(4096))
            begun = time.perf_counter()
            os.close(descriptor)
            self.seconds.append(time.perf_counter() - begun)
            number += 1
            time.sleep(_PAUSE)

    def __enter__(self) -> "_Closes":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()


def _appends(directory: str) -> Iterator[Figure]:
    daemon = Daemon(f"{directory}/appends")
    with daemon:
        for content in _contents():
            _append(f"{daemon.writable}/log", content)
        daemon.run("gc")
    with Wiping(f"{daemon.state}/log") as wiping:
        size = wiping.measure()
    git = f"{directory}/appends.git"
    _git_gc(git, ((b"log", content) for content in _contents()))
    yield Figure(
        name=f"{_APPENDS:,} appends of {_LINE} bytes to a file of 100 KiB, in data.mdb after gc",
        unit="MiB",
        ours=size.used / (1 << 20),
        peers=(Comparison("git after git gc", _size_of(git) / (1 << 20)),),
        target=Target(2),
        note=f"pages in use; the file takes {size.disk / (1 << 20):.1f} MiB of the disk; random bytes, "
        "every append through the mount and a version of its own",
    )
    yield _reading(daemon.state)


def _append(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    have = os.fstat(descriptor).st_size
    os.write(descriptor, content[have:])
    os.fsync(descriptor)
    os.close(descriptor)


def _reading(state: str) -> Figure:
    slowest = []
    with Repository.open(state) as repository:
        with repository.engine.reading() as reader:
            store = catalog.named(reader, STATE)
            newest = catalog.head(reader, store.id).number
        for number in range(1, newest):
            taken = []
            for _ in range(3):
                begun = time.perf_counter()
                with repository.engine.reading() as reader:
                    entry = VersionTree(reader, store, number).lookup(ROOT_NODE, b"log")
                    if entry is not None:
                        blobs.read(reader, entry.digest, entry.size)
                taken.append(time.perf_counter() - begun)
            slowest.append(median(taken))
    return Figure(
        name="reading the slowest of its old versions",
        unit="ms",
        ours=max(slowest) * 1e3,
        target=Target(5),
        note=f"median of three, of each of {newest - 1:,} versions; the median version "
        f"{median(slowest) * 1e3:.2f} ms",
    )


def _contents() -> Iterator[bytes]:
    """The same in each call: the file, and the file with one line more each time."""
    chance = random.Random(5)
    content = chance.randbytes(_SIZE)
    for _ in range(_APPENDS + 1):
        yield content
        content += chance.randbytes(_LINE)


def _notes() -> Iterator[tuple[bytes, bytes]]:
    """The history that `stores.with_versions` writes."""
    for number in range(2, _VERSIONS + 1):
        yield (
            b"note-%04d.md" % (number % _FILES),
            b"note %06d as of version %06d\n" % (number % _FILES, number),
        )


def _git_gc(directory: str, versions: Iterator[tuple[bytes, bytes]]) -> float:
    """Seconds that `git gc` takes on a history of one changed file a commit."""
    git = ["git", "-c", "gc.auto=0", f"--git-dir={directory}"]
    subprocess.run([*git, "init", "-q", "--bare"], check=True, capture_output=True)
    importing = subprocess.Popen([*git, "fast-import", "--quiet"], stdin=subprocess.PIPE)
    assert importing.stdin is not None
    with contextlib.closing(importing.stdin) as stream:
        for number, (name, content) in enumerate(versions):
            stream.write(
                b"commit refs/heads/main\ncommitter bench <bench> %d +0000\ndata 0\n\n"
                % (1_700_000_000 + number)
            )
            stream.write(b"M 644 inline %s\ndata %d\n%s\n" % (name, len(content), content))
    if importing.wait(120):
        raise RuntimeError("git fast-import failed")
    begun = time.perf_counter()
    subprocess.run([*git, "gc", "-q", "--prune=now"], check=True, timeout=120)
    return time.perf_counter() - begun


def _size_of(directory: str) -> int:
    return sum(
        os.stat(os.path.join(above, name)).st_blocks * 512
        for above, _, names in os.walk(f"{directory}/objects")
        for name in names
    )
