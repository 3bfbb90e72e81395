"""A daemon whose state directory is on a disk of its own, and programs that write while something happens."""

import contextlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from engramfs.history import catalog
from engramfs.history.repository import Repository
from engramfs.history.tree import tree_at, walk
from engramfs.history.verify import verify
from engramfs.model.entry import Kind
from engramfs.vfs.recovery import recover

from ..harness.daemon import Daemon, Place, eventually
from .disk import Disk
from .promises import Event, broken, promised_before, read_report

WRITER = Path(__file__).parent / "writer.py"
STORE = "memory/default/state"


class Work:
    """What two writers reported, by their directories, and the versions that `engramfs log` had shown."""

    def __init__(self, directory: Path, name: str) -> None:
        self.reports = {f"{name}-{writer}": directory / f"report-{name}-{writer}" for writer in "ab"}
        self.shown = directory / f"shown-{name}"

    @property
    def has_begun(self) -> bool:
        return all(len(events) > 10 for events in self.events().values())

    def failures(self) -> list[str | None]:
        return [path for events in self.events().values() for event, path, _ in events if event == "failed"]

    def events(self) -> dict[str, list[Event]]:
        """What each writer reported so far, by its directory."""
        return {directory: read_report(report) for directory, report in self.reports.items()}

    def promised_by(self, before: dict[str, list[Event]]) -> dict[str, list[Event]]:
        """What counts when the machine ended while `before` was all that had been reported."""
        after = self.events()
        return {directory: promised_before(events, after[directory]) for directory, events in before.items()}

    def newest_shown(self) -> dict[str, Any] | None:
        """The newest version of those that were shown whole."""
        text = self.shown.read_text() if self.shown.exists() else ""
        newest, decoder = None, json.JSONDecoder()
        with contextlib.suppress(ValueError):
            while text := text.lstrip():
                versions, end = decoder.raw_decode(text)
                newest, text = (versions or [newest])[0], text[end:]
        return newest


class Done(NamedTuple):
    """What was promised before the power failed: events by directory, the newest version that was shown."""

    events: dict[str, list[Event]]
    shown: dict[str, Any] | None


class Machine:
    """`work_until_the_power_fails`, `boot`, `problems`; again and again."""

    def __init__(self, daemon: Daemon, disk: Disk) -> None:
        """`disk` is mounted at the state directory of `daemon`."""
        self.daemon = daemon
        self.disk = disk
        self.place: Place = daemon.up()
        self._settled: dict[bytes, str] = {}  # digests of what earlier boots found, by path
        self._works = 0

    def work_until_the_power_fails(self) -> Done:
        work, running = self.begin_work()
        log = f"{sys.executable} -m engramfs --json log {STORE} -n 1"
        running.append(self._start("bash", "-c", f"while {log} >>{work.shown}; do :; done"))
        time.sleep(random.uniform(0.3, 1.5))
        assert work.failures() == []
        before, shown = work.events(), work.newest_shown()
        self.lose_power(*running)
        return Done(work.promised_by(before), shown)

    def begin_work(self) -> tuple[Work, list[int]]:
        """Two writers that have begun, and their pids."""
        self._works += 1
        work = Work(self.daemon.directory, str(self._works))
        running = [
            self._start(sys.executable, str(WRITER), self.place.path(directory), str(report))
            for directory, report in work.reports.items()
        ]
        eventually(lambda: work.has_begun)
        return work, running

    def _start(self, *command: str) -> int:
        said = str(self.daemon.directory / "said")
        pid: int = self.daemon.inside.call("start", list(command), None, self.daemon.environment, said)
        return pid

    def lose_power(self, *running: int) -> None:
        """Every process is gone, and with it the mounts and the run directory, which are in memory."""
        self.disk.cut()
        kill(self.daemon, *running)
        for pid in running:
            assert self.daemon.inside.call("ended", pid, 10) is not None
        self.daemon.inside.shell(
            "for point in $(tac /proc/self/mounts | grep ' fuse' | cut -d' ' -f2); do umount -l $point; done;"
            f"rm -r {self.daemon.run_directory}"
        )

    def boot(self) -> None:
        """Raises `AssertionError` with what was said when the daemon does not start."""
        self.disk.unmount()
        self.disk.mount()
        self.place = self.daemon.up()

    def problems(self, done: Done, kept: set[str]) -> list[str]:
        """What of `done` is not there; `kept` are the events that count."""
        self.daemon.barrier()
        with Repository.open(f"{self.disk.seen_from_outside}") as repository:
            problems = [str(finding) for finding in verify(repository).findings]
        found: dict[bytes, str] = self.daemon.inside.call("digests", self.place.state)
        problems += problems_of(done.events, found, kept)
        problems += [
            f"{os.fsdecode(path)} changed"
            for path, digest in self._settled.items()
            if found.get(path) != digest
        ]
        self._settled = found
        return problems + self._missing_versions(done.shown)

    def _missing_versions(self, newest: dict[str, Any] | None) -> list[str]:
        """A version names its parent by digest, so the newest stands for all before it."""
        if newest is None:
            return []
        there = {version["number"]: version["digest"] for version in self.daemon.log(STORE)}
        is_there = there.get(newest["number"]) == newest["digest"]
        return [] if is_there else [f"version {newest['number']} was shown and is gone"]


def kill(daemon: Daemon, *others: int) -> None:
    """SIGKILL for the keeper and its worker, so that none of them starts another, and for `others`."""
    keeper = int(Path(daemon.run_directory, "keeper.lock").read_text())
    os.kill(keeper, signal.SIGSTOP)
    workers = [int(pid) for pid in Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()]
    for pid in [*others, *workers, keeper]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    eventually(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in [keeper, *workers]))


def problems_of(reported: dict[str, list[Event]], found: dict[bytes, str], kept: set[str]) -> list[str]:
    """`reported` are events by directory, `found` digests by path."""
    problems: list[str] = []
    for directory, events in reported.items():
        start = os.fsencode(directory) + b"/"
        there = {
            os.fsdecode(path.removeprefix(start)): digest
            for path, digest in found.items()
            if path.startswith(start)
        }
        problems += [f"{directory}: {problem}" for problem in broken(events, there, kept)]
    return problems


def problems_in(state: str, reported: dict[str, list[Event]], kept: set[str]) -> list[str]:
    """Recover a state directory as a daemon does when it starts, and compare."""
    with Repository.open(state, write="the test") as repository:
        recover(repository)
        problems = [str(finding) for finding in verify(repository).findings]
        with repository.engine.reading() as reader:
            tree = tree_at(reader, catalog.named(reader, STORE), None)
            found = {path: entry.digest.hex() for path, entry in walk(tree) if entry.kind is Kind.FILE}
    return problems + problems_of(reported, found, kept)
