"""What a session costs: to open, attach, switch and run, and what many of them need."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from tests.bench.daemon import Daemon, memory
from tests.bench.figures import Comparison, Figure, Target
from tests.bench.rounds import in_turns

from engramfs.daemon.client import ControlClient
from engramfs.mount.attach import attach_session
from engramfs.mount.copying import MountPlan
from engramfs.mount.holders import Way
from engramfs.mount.switch import switch

MANY = 500  # open sessions
_AGENT = "bench"
_MOST = Target(50)  # ms


def sessions(directory: str) -> Iterator[Figure]:
    """Every figure, with a daemon that has many sessions open from the second on."""
    with _Sessions(Daemon(f"{directory}/sessions"), directory) as measured:
        yield from measured.opening()
        yield measured.visibility()
        yield measured.attaching()
        yield measured.switching()
        yield measured.command("attach")
        yield measured.command("switch")
        yield measured.running()


class _Sessions:
    def __init__(self, daemon: Daemon, directory: str) -> None:
        self._daemon = daemon
        self._directory = directory
        self._made = 0
        self._open: list[str] = []

    def __enter__(self) -> "_Sessions":
        self._daemon.up()
        self._client = ControlClient(os.path.dirname(self._daemon.hub))
        self._worker = self._daemon.worker()
        return self

    def __exit__(self, *exc: object) -> None:
        self._daemon.down()

    def opening(self) -> Iterator[Figure]:
        taken = [self._open_one() for _ in range(MANY)]
        yield Figure(
            name=f"opening session {MANY} against session 10",
            unit="ms",
            ours=median(taken[-10:]) * 1e3,
            peers=(Comparison("session 10", median(taken[5:15]) * 1e3, Target(2)),),
            note="session.open for an actor who is new, its memory made and seeded; medians of ten",
        )
        found = memory(self._daemon.worker())
        yield Figure(
            name=f"worker RSS, {MANY} open sessions",
            unit="MiB",
            ours=found["VmRSS"] / (1 << 20),
            target=Target(300),
            note=f"{found['RssAnon'] >> 20} MiB of it its own",
        )

    def _open_one(self) -> float:
        begun = time.perf_counter()
        opened = self._client.call("session.open", agent=_AGENT, actor=f"actor{len(self._open)}")
        taken = time.perf_counter() - begun
        self._open.append(opened["id"])
        return taken

    def visibility(self) -> Figure:
        """From the end of close() in one session to when an open() in another reads it."""
        writer, reader = (f"{self._attached()}/mnt/memory/state/seen" for _ in range(2))
        taken = [_until_seen(writer, reader, f"content {number}") for number in range(50)]
        return Figure(
            name="a file written in one session, read in another",
            unit="ms",
            ours=median(taken) * 1e3,
            target=Target(10),
            note=f"from close() to a read that has it; the longest of fifty {max(taken) * 1e3:.1f}",
        )

    def _attached(self) -> str:
        """A new root directory with a session attached."""
        self._made += 1
        root = f"{self._directory}/roots/{self._made}"
        os.makedirs(root)
        self._daemon.run("attach", self._open[-self._made], "--root", root)
        return root

    def attaching(self) -> Figure:
        def once() -> float:
            self._made += 1
            root = f"{self._directory}/roots/{self._made}"
            os.makedirs(root)
            session = self._client.call("session.show", id=self._open[-self._made])
            begun = time.perf_counter()
            attach_session(self._daemon.hub, self._worker, root, _plans(session))
            return time.perf_counter() - begun

        return _work("attach", [once() for _ in range(9)], "copies of six places in the hub, mounted")

    def switching(self) -> Figure:
        root = self._attached()
        session = self._open[-self._made]
        way = Way(self._worker, root)
        names = iter(range(100))

        def once() -> float:
            begun = time.perf_counter()
            new = self._client.call("session.switch", id=session, actor=f"switched{next(names)}")["mount"]
            plan = MountPlan(new["source"], new["path"], read_only=False)
            switch(self._daemon.hub, self._worker, plan, [way])
            self._client.call("session.switched", id=session)
            return time.perf_counter() - begun

        return _work("switch", [once() for _ in range(9)], "new memory made, mounted, the old one revoked")

    def command(self, name: str) -> Figure:
        """The same as a person does it: a Python interpreter is started and ended."""
        root = self._attached()
        session = self._open[-self._made]
        numbers = iter(range(1000))

        def once() -> float:
            options = ["--root", root] if name == "attach" else ["--actor", f"command{next(numbers)}"]
            return _seconds(lambda: self._daemon.run(name, session, *options))

        seconds = in_turns({name: once, "version": lambda: _seconds(lambda: self._daemon.run("version"))}, 9)
        return Figure(
            name=f"engramfs {name}, the whole command",
            unit="ms",
            ours=seconds[name] * 1e3,
            peers=(Comparison("engramfs version", seconds["version"] * 1e3),),
        )

    def running(self) -> Figure:
        def bare() -> float:
            return _seconds(lambda: subprocess.run(["unshare", "-m", "true"], check=True))

        def ours() -> float:
            return _seconds(lambda: self._daemon.run("run", "--agent", _AGENT, "--", "true"))

        seconds = in_turns({"ours": ours, "unshare": bare}, rounds=9)
        return Figure(
            name="engramfs run -- true, over unshare -m true",
            unit="ms",
            ours=(seconds["ours"] - seconds["unshare"]) * 1e3,
            target=Target(150),
        )


def _plans(session: dict[str, Any]) -> list[MountPlan]:
    parents = [MountPlan(each["source"], each["path"], read_only=True) for each in session["parents"]]
    return parents + [
        MountPlan(each["source"], each["path"], read_only=each["access"] == "read_only")
        for each in session["attachments"]
    ]


def _work(name: str, taken: list[float], note: str) -> Figure:
    return Figure(name=f"{name}, the work", unit="ms", ours=median(taken) * 1e3, target=_MOST, note=note)


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _until_seen(writer: str, reader: str, content: str) -> float:
    with open(writer, "w", encoding="utf-8") as file:
        file.write(content)
    begun = time.perf_counter()
    while True:
        try:
            with open(reader, encoding="utf-8") as file:
                if file.read() == content:
                    return time.perf_counter() - begun
        except FileNotFoundError:
            pass
        if time.perf_counter() - begun > 10:
            sys.exit(f"{reader} does not show what was written to {writer}")
