"""A daemon that runs already, for tests whose sessions and sandboxes are their own; commands without one."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..harness.command import Command
from ..harness.daemon import Daemon
from ..harness.inside import Inside
from .session import Session

Start = Callable[..., Inside]


@pytest.fixture(scope="session")
def served(shared_daemon: Daemon) -> Daemon:
    """The shared daemon, started."""
    shared_daemon.up(agent="first", actor="first")
    return shared_daemon


@pytest.fixture
def session(served: Daemon, request: pytest.FixtureRequest) -> Iterator[Session]:
    """A session of an actor and an agent of the test's own, with an empty root directory."""
    name = re.sub(r"\W+", "-", request.node.name)[:100]
    root = f"/mnt/{name}"
    served.inside.call("os.makedirs", root)
    opened = served.json("session", "open", "--agent", f"a-{name}", "--actor", name)
    yield Session(served, root, opened)
    for left in served.client.call("session.list"):
        if left["agent"] == f"a-{name}":
            served.ok("session", "close", left["id"])


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts sandboxes: processes in mount namespaces of their own."""
    started: list[Inside] = []

    def start(**how: Any) -> Inside:
        started.append(Inside(**how))
        return started[-1]

    yield start
    for sandbox in started:
        sandbox.close()


@pytest.fixture
def engramfs(tmp_path: Path) -> Command:
    return Command(tmp_path)


@pytest.fixture
def handbook(engramfs: Command) -> Command:
    """A store with two versions: notes.md changed, old/ went, new.md came."""
    engramfs.ok("store", "create", "contexts/handbook", "--description", "how we work")
    engramfs.write("tree/notes.md", b"one\ntwo\n")
    engramfs.write("tree/old/a", b"a")
    engramfs.ok("import", "contexts/handbook", "tree", "-m", "the beginning")
    engramfs.write("tree/notes.md", b"one\n2\n")
    engramfs.write("tree/new.md", b"new\n")
    (engramfs.directory / "tree/old/a").unlink()
    (engramfs.directory / "tree/old").rmdir()
    engramfs.ok("import", "contexts/handbook", "tree")
    return engramfs
