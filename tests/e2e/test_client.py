"""The client for programs: with a daemon and without one, and from one to the other."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import engramfs
from engramfs.client import Session as ClientSession
from engramfs.daemon import control_socket
from engramfs.errors import Busy, Conflict, NotFound, ReadOnly, Stale, Unanswered
from engramfs.history.repository import Repository
from engramfs.history.selection import Selection
from engramfs.history.verify import verify
from engramfs.model.file_edit import Append, Create, Overwrite
from engramfs.storage.lock import StoreLock

from ..harness.daemon import Daemon, eventually
from .session import Session

Client = engramfs.Client


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Client]:
    """A client of a state that no daemon serves. The log is verified afterwards."""
    state = str(tmp_path / "state")
    with engramfs.Client(state=state, run=str(tmp_path / "run")) as client:
        yield client
    with Repository.open(state) as repository:
        assert verify(repository).findings == []


@pytest.fixture
def beside(session: Session) -> Iterator[Client]:
    """A client of the daemon that runs."""
    with engramfs.Client(session.daemon.state, session.daemon.run_directory) as client:
        yield client


def test_without_a_daemon_a_session_makes_its_stores_and_writes_to_them(alone: Client) -> None:
    session = alone.open_session(actor="alice")
    assert [store.name for store in alone.stores()] == [
        "memories/alice",
        "memory/default/preferences",
        "memory/default/state",
    ]
    assert b"AGENTS.md" in alone.read("memories/alice", "AGENTS.md").content or alone.files("memories/alice")
    written = session.edit("memories/alice", [Create("notes/a.md", "one\n")], "first")
    again = session.edit("memories/alice", [Append("notes/a.md", "two\n", written.files[0].sha256)])
    read = alone.read("memories/alice", "notes/a.md")
    assert (read.content, read.version, read.sha256) == (b"one\ntwo\n", again.version, again.files[0].sha256)
    assert alone.read("memories/alice", "notes/a.md", written.version).content == b"one\n"
    newest = alone.log("memories/alice", "notes", limit=1)[0]
    assert (newest["via"], newest["author"]["actor"], newest["author"]["session"]) == (
        "tool",
        "alice",
        session.id,
    )
    assert alone.log("memories/alice")[1]["message"] == "first"


def test_without_a_daemon_the_same_is_refused(alone: Client) -> None:
    session = alone.open_session(actor="alice")
    session.edit("memories/alice", [Create("a", "1")])
    with pytest.raises(Stale):
        session.edit("memories/alice", [Overwrite("a", "2", "0" * 64)])
    with pytest.raises(ReadOnly):
        session.edit("memory/default/preferences", [Create("a", "1")])
    with pytest.raises(NotFound):
        session.edit("memories/bob", [Create("a", "1")])
    with pytest.raises(NotFound):
        alone.read("memories/alice", "gone")
    with pytest.raises(Conflict):
        alone.read("memories/alice", "")
    lock = StoreLock(alone.state.locations.state, "another")
    with contextlib.closing(lock), pytest.raises(Busy, match=r"another .* within 2 s"):
        session.edit("memories/alice", [Create("b", "1")])


def undo(client: Client, store: str) -> None:
    """Looks at the versions of a store that has none yet, and undoes some: all by typed methods."""
    session = client.open_session(actor="undoer", attach=[f"{store}=/mnt/memory/notes:read_write"])
    for edit in (Create("a.md", "one\n"), Overwrite("a.md", "two\n"), Create("b.md", "b")):
        session.edit(store, [edit])
    assert [(one.path, one.old is None) for one in client.diff(store)] == [(b"b.md", True)]
    (one,) = client.diff(store, 1, path="a.md")
    assert one.old is not None
    assert one.new is not None
    assert (one.path, one.new.size) == (b"a.md", 4)
    assert client.diff(store, 3, 3) == []
    written = [claim for claim in client.claims(session.id) if claim.store == store]
    assert [(each.change.path, each.version, each.stands) for each in written] == [
        (b"a.md", 2, True),
        (b"b.md", 3, True),
    ]
    reverted = client.revert(store, 2)
    assert reverted is not None
    assert (reverted["number"], client.read(store, "a.md").content) == (4, b"one\n")
    restored = client.restore(store, 2, b"a.md")
    assert restored is not None
    assert (restored["via"], restored["author"]["kind"]) == ("restore", "person")
    assert client.restore(store, 5) is None, "nothing changed"
    assert [each["number"] for each in client.log(store, wanted=Selection(by="person"))] == [5, 4]
    assert client.log(store, "b.md") == client.log(store)[2:3]
    assert client.pending(store, decided=True) == []
    with pytest.raises(NotFound):
        client.approve(store, 1)
    session.close()


def test_without_a_daemon_versions_are_looked_at_and_undone(alone: Client) -> None:
    alone.open_session()
    undo(alone, "memory/default/state")


def test_beside_a_daemon_the_same(session: Session, beside: Client) -> None:
    store = f"contexts/undone-{session.actor}"
    session.daemon.ok("store", "create", store)
    undo(beside, store)


def test_beside_a_daemon_it_reads_what_the_mount_wrote_and_writes_what_the_mount_shows(
    session: Session, beside: Client
) -> None:
    session.attach()
    session.daemon.inside.call("write", f"{session.user}/a.md", b"from the mount")
    store = f"memories/{session.actor}"
    assert beside.read(store, "a.md").content == b"from the mount"
    beside.session(session.id).edit(store, [Create("b.md", "from the tool")])
    assert session.daemon.inside.call("read", f"{session.user}/b.md") == b"from the tool"
    assert {file.path for file in beside.files(store)} == {"AGENTS.md", "a.md", "b.md"}


def test_a_session_that_is_not_ones_own_follows_a_switch_and_ends_with_it(
    session: Session, beside: Client
) -> None:
    mine = beside.session(session.id)
    session.switch(session.other)
    mine.refresh()
    assert f"memories/{session.other}" in [each.store for each in mine.attachments]
    mine.close()  # which is not ours to do
    assert session.show()["id"] == session.id
    session.daemon.ok("session", "close", session.id)
    with pytest.raises(NotFound):
        mine.refresh()


def test_an_own_session_outlives_the_daemon_and_finds_the_next_one(daemon: Daemon) -> None:
    daemon.up(actor="first")
    with engramfs.Client(daemon.state, daemon.run_directory) as client:
        mine = client.open_session(actor="alice")
        mine.edit("memories/alice", [Create("a", "with")])
        daemon.ok("down")
        mine.edit("memories/alice", [Create("b", "without")])
        daemon.up(actor="first")
        mine.edit("memories/alice", [Create("c", "with the next")])
        assert [file.path for file in client.files("memories/alice")] == ["AGENTS.md", "a", "b", "c"]
        assert mine.id in [each["id"] for each in daemon.client.call("session.list")]
        mine.close()
        assert mine.id not in [each["id"] for each in daemon.client.call("session.list")]


def test_a_daemon_that_ends_just_before_a_call_is_done_without(alone: Client) -> None:
    """It still listens when that is looked at, and takes nothing."""
    own = alone.open_session(actor="alice")
    shown = ClientSession(alone, own.info, own=True, at_daemon=True)

    def write() -> None:
        own.edit("memories/alice", [Create("a.md", "x")])

    for use in (shown.refresh, write, shown.close):
        listener = control_socket.listen(alone.state.locations.run)

        def end(listener: socket.socket = listener) -> None:
            connection, _ = listener.accept()
            os.unlink(os.path.join(alone.state.locations.run, "control"))
            listener.close()
            connection.close()

        ending = threading.Thread(target=end)
        ending.start()
        use()
        ending.join()
    assert alone.read("memories/alice", "a.md").content == b"x"


def test_over_kills_of_the_worker_reads_go_on_and_no_write_is_done_twice_or_denied(daemon: Daemon) -> None:
    daemon.up(actor="first")
    done: list[str] = []
    unanswered: list[str] = []
    stop = threading.Event()

    def write() -> None:
        with engramfs.Client(daemon.state, daemon.run_directory) as client:
            mine = client.open_session(actor="alice")
            while not stop.is_set():
                name = f"{len(done) + len(unanswered)}"
                try:
                    mine.edit("memories/alice", [Create(name, "x")])
                    done.append(name)
                except Unanswered:
                    unanswered.append(name)
                mine.refresh()
                assert name in {file.path for file in client.files("memories/alice")} or name in unanswered

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(5):
        time.sleep(0.3)
        daemon.kill_worker()
    eventually(lambda: writer.is_alive() and len(done) > 20)
    stop.set()
    writer.join(30)
    created = [change["path"] for each in daemon.log("memories/alice") for change in each["changes"]]
    assert len(created) == len(set(created))
    assert set(done) <= set(created) <= {*done, *unanswered, "AGENTS.md"}
