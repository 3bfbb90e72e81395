"""Switching the actor: everywhere at once, with no moment of nobody's or another's memory, and for good."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engramfs.errors import Busy, Conflict, Refused, UsageError

from ..harness.daemon import Daemon, eventually
from .conftest import Start
from .session import Session

READER = """
import errno, os, sys
places, stop, allowed = sys.argv[2:], sys.argv[1], {b"one", b"two"}
reads, switches, last = 0, 0, [None] * len(places)
while not os.path.exists(stop):
    for index, place in enumerate(places):
        with open(place + "/memories/user/who", "rb") as file:
            try:
                who = file.read()
            except OSError as error:  # opened long before the switch: it must not be read any more
                if error.errno != errno.ESTALE:
                    raise
                continue
        assert who in allowed, who
        switches += last[index] not in (None, who)
        last[index] = who
        reads += 1
print(reads, switches)
"""


def write_who(daemon: Daemon, *actors: str) -> None:
    """Let the file `who` of each actor's memory say whose it is."""
    for actor in actors:
        daemon.ok(
            "run",
            "--actor",
            actor,
            "--",
            "sh",
            "-c",
            f"printf {actor.rpartition('-')[2]} > /memories/user/who",
        )


def test_a_reader_sees_one_actor_or_the_other_and_never_nothing(
    session: Session, start: Start, tmp_path: Path
) -> None:
    """Needs MOVE_MOUNT_BENEATH (Linux 6.5). Twenty switches, in a root directory and in a running sandbox."""
    one, two = f"{session.actor}-one", f"{session.actor}-two"
    write_who(session.daemon, one, two)
    session.switch(one)
    sandbox = start()
    sandbox.shell("mount -t tmpfs none /mnt")
    session.attach()
    session.attach("--pid", str(sandbox.pid), "--over")
    stop = str(tmp_path / "stop")
    readers = [
        (inside, output, inside.call("start", [sys.executable, "-c", READER, stop, root], None, {}, output))
        for inside, root, output in (
            (session.daemon.inside, session.root, str(tmp_path / "host")),
            (sandbox, "", str(tmp_path / "sandbox")),
        )
    ]
    for _ in range(10):
        session.switch(two)
        session.switch(one)
    Path(stop).touch()
    for inside, output, pid in readers:
        assert inside.call("ended", pid, 10) == 0, Path(output).read_text()
        reads, switches = map(int, Path(output).read_text().split())
        assert reads > 200
        assert switches >= 10, "the reader is fast enough to see most of the twenty"


def test_descriptors_of_the_old_actor_are_stale_and_what_was_cached_is_gone(session: Session) -> None:
    session.attach()
    inside = session.daemon.inside
    inside.call("write", f"{session.user}/secret", b"of the first")
    session.daemon.barrier()
    read = inside.call("os.open", f"{session.user}/secret", os.O_RDONLY)
    write = inside.call("os.open", f"{session.user}/secret", os.O_WRONLY)
    directory = inside.call("os.open", session.user, os.O_RDONLY)
    version = inside.call("os.open", f"{session.user}/.versions/1/AGENTS.md", os.O_RDONLY)
    path = inside.call("os.open", f"{session.user}/secret", os.O_PATH)
    assert inside.call("os.pread", read, 5, 0) == b"of th", "it is in the page cache now"
    assert inside.call("os.pread", version, 5, 0) == b"# Mem"
    inside.call("os.listdir", directory)
    session.switch(session.other)
    stale: list[Any] = [
        ("os.pread", read, 5, 0),
        ("os.pread", version, 5, 0),
        ("os.pwrite", write, b"x", 0),
        ("os.fsync", write),
        ("os.fstat", read),
        ("os.fstat", path),
        ("os.listdir", directory),
    ]
    for call in stale:
        with pytest.raises(OSError, match=f"Errno {errno.ESTALE}"):
            inside.call(*call)
    for relative in ("secret", "AGENTS.md", "never"):
        for keywords in ({"flags": os.O_RDONLY}, {"flags": os.O_CREAT | os.O_WRONLY}):
            with pytest.raises(OSError, match=f"Errno {errno.ESTALE}"):
                inside.call("os.open", relative, dir_fd=directory, **keywords)
    assert inside.call("names", session.user) == ["AGENTS.md"], "of the second"
    with pytest.raises(OSError, match=f"Errno {errno.ESTALE}"):
        inside.call("os.close", write)
    for descriptor in (read, directory, version, path):
        inside.call("os.close", descriptor)


def test_memory_that_is_mapped_is_taken_away(session: Session) -> None:
    session.attach()
    inside = session.daemon.inside
    inside.call("write", f"{session.user}/secret", b"of the first")
    code = (
        "import mmap, os, sys, time\n"
        "mapped = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 12, prot=mmap.PROT_READ)\n"
        "print(mapped[:], flush=True)\n"
        "while not os.path.exists(sys.argv[2]): time.sleep(0.01)\n"
        "print(mapped[:])\n"
    )
    said, go = session.daemon.directory / "said", session.daemon.directory / f"go-{session.id}"
    command = [sys.executable, "-c", code, f"{session.user}/secret", str(go)]
    pid = inside.call("start", command, None, {}, str(said))
    eventually(lambda: "of the first" in said.read_text())
    session.switch(session.other)
    go.touch()
    assert inside.call("ended", pid, 10) == -7, "SIGBUS"


def test_a_process_that_stands_in_the_old_memory_reaches_neither_it_nor_the_new(
    session: Session,
) -> None:
    session.attach()
    inside = session.daemon.inside
    inside.call("os.chdir", session.user)
    try:
        inside.call("write", "mine", b"x")
        session.switch(session.other)
        for call in (("names", "."), ("write", "mine", b"y"), ("read", "mine")):
            with pytest.raises(OSError, match=f"Errno {errno.ESTALE}"):
                inside.call(*call)
    finally:
        inside.call("os.chdir", "/")


def test_the_new_actor_is_the_author_from_then_on_and_the_switch_is_recorded(session: Session) -> None:
    session.attach()
    inside = session.daemon.inside
    state = f"{session.root}/mnt/memory/state"
    inside.call("write", f"{state}/a", b"first")
    session.switch(session.other)
    inside.call("write", f"{state}/b", b"x")
    inside.call("write", f"{session.user}/c", b"x")
    session.daemon.barrier()
    authors = [version["author"]["actor"] for version in session.daemon.log(f"memory/{session.agent}/state")]
    assert authors == [session.actor, session.other]
    assert session.daemon.log(f"memories/{session.other}")[-1]["author"]["session"] == session.id
    shown = session.show()
    assert (shown["actor"], [each["actor"] for each in shown["switched"]]) == (session.other, [session.actor])
    path = Path(session.daemon.run_directory, "sessions", f"{session.id}.json")
    assert json.loads(path.read_text())["actor"] == session.other
    log = Path(session.daemon.run_directory, "daemon.log").read_text()
    assert any(session.id in line and "session switched" in line for line in log.splitlines())


def test_what_was_written_and_not_closed_is_dropped_and_said(session: Session, start: Start) -> None:
    """The writer starts no process meanwhile: a descriptor that a fork copies is closed there, too."""
    session.attach()
    inside, beside = session.daemon.inside, start(beside=session.daemon.inside.pid)
    inside.call("write", f"{session.user}/draft", b"closed")
    open_file = inside.call("os.open", f"{session.user}/draft", os.O_WRONLY)
    inside.call("os.pwrite", open_file, b"not", 0)
    command = [sys.executable, "-m", "engramfs", "switch", session.id, "--actor", session.other]
    assert beside.call("run", command, 30, None, None, session.daemon.environment)[0] == 0
    with pytest.raises(OSError, match=f"Errno {errno.ESTALE}"):
        inside.call("os.close", open_file)
    failures = [each["what"] for each in session.daemon.json("status")["failures"]]
    assert f"dropped what session {session.id} had written to draft and not closed" in failures
    assert session.daemon.ok("show", f"memories/{session.actor}:draft") == "closed"


def test_the_way_there_and_back(session: Session) -> None:
    session.attach()
    session.daemon.inside.call("write", f"{session.user}/mine", b"first")
    for actor in (session.other, session.actor, session.other, session.actor):
        session.switch(actor)
    assert session.daemon.inside.call("read", f"{session.user}/mine") == b"first"
    mounts = session.daemon.inside.call("engramfs.mount.mountinfo.read_mounts")
    assert len([mount for mount in mounts if mount.point == session.user]) == 1, "nothing piles up"


def test_a_place_that_refuses_leaves_every_place_as_it_was(session: Session, start: Start) -> None:
    sandbox = start()
    sandbox.shell("mount -t tmpfs none /mnt")
    session.attach()
    session.attach("--pid", str(sandbox.pid), "--over")
    session.daemon.inside.call("write", f"{session.user}/mine", b"first")
    sandbox.shell("umount /memories/user")
    finished = session.daemon.command("switch", session.id, "--actor", session.other)
    assert (finished.code, finished.err.count("\n")) == (Conflict.exit_code, 1)
    assert "the session is not mounted at" in finished.err
    assert session.daemon.inside.call("read", f"{session.user}/mine") == b"first"
    shown = session.show()
    assert (shown["actor"], shown["switched"]) == (session.actor, [])
    assert "switching" not in shown
    session.daemon.ok("detach", session.id, "--pid", str(sandbox.pid))
    session.switch(session.other)
    assert session.daemon.inside.call("names", session.user) == ["AGENTS.md"]
    session.daemon.ok("detach", session.id)
    assert session.mounts() == [], "what was hidden beneath has gone as well"


def test_a_sandbox_that_has_ended_does_not_stand_in_the_way(session: Session, start: Start) -> None:
    sandbox = start()
    sandbox.shell("mount -t tmpfs none /mnt")
    session.attach()
    session.attach("--pid", str(sandbox.pid), "--over")
    sandbox.kill()
    session.switch(session.other)
    assert session.daemon.inside.call("names", session.user) == ["AGENTS.md"]


PREPARE = """
import sys, time
from engramfs.daemon.client import ControlClient
ControlClient(sys.argv[1]).call("session.switch", id=sys.argv[2], actor="interrupted")
print("prepared", flush=True)
time.sleep(60)
"""


def test_a_switch_that_was_interrupted_is_said_and_the_next_one_puts_it_right(session: Session) -> None:
    session.attach()
    command = [sys.executable, "-c", PREPARE, session.daemon.run_directory, session.id]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"prepared\n"
        finished = session.daemon.command("switch", session.id, "--actor", session.other)
        assert (finished.code, finished.err.count("\n")) == (Busy.exit_code, 1)
        assert f"is being switched by process {other.pid}" in finished.err
        other.kill()
    assert "a switch to interrupted was not finished" in session.daemon.ok("session", "show", session.id)
    session.switch(session.other)
    shown = session.show()
    assert (shown["actor"], "switching" in shown) == (session.other, False)
    session.daemon.inside.call("write", f"{session.user}/mine", b"x")
    session.daemon.barrier()
    assert session.daemon.log(f"memories/{session.other}")[-1]["author"]["actor"] == session.other


def test_a_session_that_is_attached_nowhere_is_switched_too(session: Session) -> None:
    session.switch(session.other)
    session.attach()
    assert session.show()["actor"] == session.other


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--actor", "../x"], UsageError.exit_code, "actor id '../x' is not allowed"),
        (["--actor", ""], UsageError.exit_code, "actor id '' is not allowed"),
        (["--actor", "a", "--tenant", ".."], UsageError.exit_code, "tenant id '..' is not allowed"),
        ([], UsageError.exit_code, "missing option '--actor'"),
    ],
)
def test_an_actor_that_cannot_be_is_refused_and_nothing_changes(
    session: Session, options: list[str], code: int, said: str
) -> None:
    session.attach()
    finished = session.daemon.command("switch", session.id, *options)
    assert (finished.code, finished.err.count("\n")) == (code, 1)
    assert said in finished.err
    assert session.show()["actor"] == session.actor
    assert session.daemon.inside.call("names", session.user) == ["AGENTS.md"]


def test_a_memory_of_somebody_else_with_that_name_is_refused(served: Daemon, session: Session) -> None:
    """`memories/agent` is the agent's own where nobody is named, and no actor's."""
    served.ok("session", "close", served.ok("session", "open").strip())
    finished = served.command("switch", session.id, "--actor", "agent")
    assert (finished.code, finished.err.count("\n")) == (Refused.exit_code, 1)
    assert "store memories/agent is the memory of agent" in finished.err


def test_where_something_else_is_shown_there_is_no_actor_to_switch(served: Daemon, session: Session) -> None:
    state = f"memory/{session.agent}/state"
    opened = served.json(
        *("session", "open", "--agent", session.agent, "--actor", "x"),
        *("--attach", f"{state}=/memories/user:read_only"),
    )
    finished = served.command("switch", opened["id"], "--actor", "y")
    assert (finished.code, finished.err.count("\n")) == (Refused.exit_code, 1)
    assert "open a new session for that actor" in finished.err


def test_after_another_worker_has_taken_over_the_old_actor_is_still_shut_out(daemon: Daemon) -> None:
    place = daemon.up(actor="ann")
    inside = daemon.inside
    inside.call("write", f"{place.user}/secret", b"of ann")
    daemon.barrier()
    read = inside.call("os.open", f"{place.user}/secret", os.O_RDONLY)
    version = inside.call("os.open", f"{place.user}/.versions/1/AGENTS.md", os.O_RDONLY)
    assert inside.call("os.pread", version, 5, 0) == b"# Mem"
    assert inside.call("os.pread", read, 2, 0) == b"of"
    daemon.kill_worker()
    assert daemon.worker
    daemon.ok("switch", place.session, "--actor", "ben")
    for descriptor in (read, version):
        with pytest.raises(OSError, match=f"Errno {errno.ESTALE}"):
            inside.call("os.pread", descriptor, 2, 0)
    daemon.kill_worker()
    assert daemon.worker
    inside.call("write", f"{place.user}/mine", b"of ben")
    daemon.barrier()
    assert daemon.log("memories/ben")[-1]["author"]["actor"] == "ben"
    for descriptor in (read, version):
        with pytest.raises(OSError, match=f"Errno {errno.ESTALE}"):
            inside.call("os.pread", descriptor, 2, 0)
        inside.call("os.close", descriptor)


def test_a_switch_within_one_memory_changes_the_author_alone(daemon: Daemon) -> None:
    daemon.configure('[agents.team]\nscoping.memory = "tenant"\n')
    opened = daemon.json("up", "--root", "/mnt", "--agent", "team", "--actor", "ann", "--tenant", "acme")
    file = daemon.inside.call("os.open", "/mnt/memories/user/shared", os.O_CREAT | os.O_WRONLY)
    daemon.ok("switch", opened["id"], "--actor", "ben")
    daemon.inside.call("os.write", file, b"still open")
    daemon.inside.call("os.close", file)
    daemon.barrier()
    assert daemon.log("memories/acme")[-1]["author"]["actor"] == "ben"
