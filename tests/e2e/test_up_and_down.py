"""`engramfs up` and `down`: the main job, from nothing to mounted stores and back."""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from ..harness.daemon import ROOTS, Daemon, eventually

NOBODY = 65534


def test_up_mounts_prints_what_is_where_and_can_be_repeated(daemon: Daemon) -> None:
    source = daemon.directory / "handbook"
    source.mkdir()
    (source / "page").write_text("how we work\n")
    daemon.ok("store", "create", "contexts/handbook")
    daemon.ok("import", "contexts/handbook", str(source))
    daemon.ok("store", "create", "org-memory")
    daemon.inside.call("os.mkdir", f"{ROOTS}/root")
    printed = daemon.ok("up", "--root", f"{ROOTS}/root", "--actor", "ann")
    for path in (
        "mnt/context/contexts/handbook",
        "mnt/memory/preferences",
        "mnt/memory/state",
        "memories/user",
        "memories/org",
    ):
        assert f"{ROOTS}/root/{path}" in printed
    assert daemon.inside.call("read", f"{ROOTS}/root/mnt/context/contexts/handbook/page") == b"how we work\n"
    worker = daemon.worker
    again = daemon.json("up", "--root", f"{ROOTS}/root", "--actor", "ann")
    assert daemon.worker == worker
    assert {each["path"]: each["access"] for each in again["attachments"]} == {
        "/mnt/context/contexts/handbook": "read_only",
        "/mnt/memory/preferences": "read_only",
        "/mnt/memory/state": "read_write",
        "/memories/user": "read_write",
        "/memories/org": "read_only",
    }
    assert len(daemon.client.call("session.list")) == 1


def test_up_of_another_identity_at_a_root_is_refused_unless_over(daemon: Daemon) -> None:
    place = daemon.up(actor="ann")
    place.inside.call("write", f"{place.user}/note", b"ann's")
    finished = daemon.command("up", "--root", place.root, "--actor", "ben")
    assert (finished.code, finished.err.count("\n")) == (4, 1), finished
    assert f"session {place.session} (default for ann) is attached at {place.root}" in finished.err
    assert place.inside.call("read", f"{place.user}/note") == b"ann's"
    assert "memories/ben" not in daemon.ok("store", "list"), "nothing is made for who is refused"
    assert daemon.up(actor="ann", root=place.root).session == place.session
    daemon.ok("up", "--root", place.root, "--actor", "ben", "--over")
    assert place.inside.call("names", place.user) == ["AGENTS.md"]
    assert [session["actor"] for session in daemon.json("session", "list")] == ["ben"]


def test_of_two_identities_at_once_one_gets_the_root(daemon: Daemon) -> None:
    daemon.inside.call("os.mkdir", f"{ROOTS}/root")
    command = [sys.executable, "-m", "engramfs", "up", "--root", f"{ROOTS}/root", "--actor"]
    pids = [
        daemon.inside.call(
            "start", [*command, actor], None, daemon.environment, str(daemon.directory / actor)
        )
        for actor in ("ann", "ben")
    ]
    assert sorted(daemon.inside.call("ended", pid, 30) for pid in pids) == [0, 4]
    assert len(daemon.json("session", "list")) == 1


def test_up_covers_files_that_are_there_only_when_told(daemon: Daemon) -> None:
    daemon.inside.shell(f"mkdir -p {ROOTS}/root/memories; echo mine > {ROOTS}/root/memories/file")
    finished = daemon.command("up", "--root", f"{ROOTS}/root")
    assert (finished.code, finished.err.count("\n")) == (4, 1), finished
    assert f"{ROOTS}/root/memories exists and is not empty" in finished.err
    daemon.ok("up", "--root", f"{ROOTS}/root", "--over")
    daemon.ok("down")
    assert daemon.inside.call("read", f"{ROOTS}/root/memories/file") == b"mine\n"


def test_a_context_is_pinned_until_the_session_ends(daemon: Daemon) -> None:
    source = daemon.directory / "handbook"
    source.mkdir()
    (source / "page").write_text("old\n")
    daemon.ok("store", "create", "contexts/handbook")
    daemon.ok("import", "contexts/handbook", str(source))
    place = daemon.up()
    (source / "page").write_text("new\n")
    daemon.ok("import", "contexts/handbook", str(source))
    page = f"{place.root}/mnt/context/contexts/handbook/page"
    assert place.inside.call("read", page) == b"old\n"
    assert daemon.inside.call("read", f"{daemon.run_directory}/fs/stores/contexts/handbook/page") == b"new\n"


def test_down_leaves_no_mount_and_seals_what_was_closed(daemon: Daemon) -> None:
    place = daemon.up(actor="ann")
    place.write("file", b"content")
    daemon.ok("down")
    assert daemon.mounts() == []
    assert [version["changes"][0]["path"] for version in daemon.log(place.store)] == ["file"]
    assert daemon.client.is_running() is False
    assert json.loads(daemon.ok("down", "--json"))["stopped"] is False


@pytest.mark.parametrize("later", [0.0, 0.01, 0.05])
def test_a_worker_that_is_killed_while_it_stops_loses_nothing(daemon: Daemon, later: float) -> None:
    daemon.configure('[batch]\nquiet = "1h"\nmax_age = "1h"\n')
    place = daemon.up(actor="ann")
    content = {f"file-{number}": b"%d" % number for number in range(1_000)}
    place.inside.call("write_files", place.state, content)
    worker, output = daemon.worker, daemon.directory / "down"
    command = [sys.executable, "-m", "engramfs", "down"]
    down = daemon.inside.call("start", command, None, daemon.environment, str(output))
    eventually(lambda: not list(daemon.directory.glob("run/sessions/*.json")))  # then it says stop
    time.sleep(later)
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)
    assert daemon.inside.call("ended", down, 40) == 0, output.read_text()
    assert daemon.mounts() == []
    assert not daemon.client.is_running()
    place = daemon.up(actor="ann")
    assert {name: place.read(name) for name in place.names()} == content


def test_what_was_saved_is_there_after_down_and_up(daemon: Daemon) -> None:
    place = daemon.up(actor="ann")
    place.write("file", b"content")
    place.inside.call("os.link", place.path("file"), place.path("link"))
    daemon.ok("down")
    place = daemon.up(actor="ann")
    assert place.read("link") == b"content"
    assert place.inside.call("os.stat", place.path("file")).st_nlink == 2


def test_up_on_an_existing_state_is_quick(daemon: Daemon) -> None:
    daemon.up()
    daemon.ok("down")
    started = time.monotonic()
    daemon.up()
    assert time.monotonic() - started < 5  # a second when nothing else runs; see tests/bench


def test_status_says_what_is_served_and_what_went_wrong(daemon: Daemon) -> None:
    place = daemon.up(actor="ann")
    status = daemon.json("status")
    assert status["worker"]["pid"] == daemon.worker
    assert [session["id"] for session in status["sessions"]] == [place.session]
    assert status["failures"] == []
    assert str(daemon.worker) in daemon.ok("status")


def test_what_was_refused_is_still_said_by_the_worker_after_one_that_was_killed(daemon: Daemon) -> None:
    place, other = daemon.up(), daemon.up(actor="other")
    daemon.ok("store", "set", place.store, "--conflicts", "refuse")
    place.write("file", b"base")
    descriptor = place.inside.call("os.open", place.path("file"), os.O_WRONLY | os.O_TRUNC)
    place.inside.call("os.pwrite", descriptor, b"mine", 0)
    other.write("file", b"theirs")
    with pytest.raises(OSError, match="Errno 116"):
        place.inside.call("os.close", descriptor)
    [before] = daemon.json("status")["failures"]
    shown = [line for line in place.read(".versions/status").splitlines() if line.startswith(b"note")]
    killed = daemon.kill_worker()
    eventually(lambda: daemon.worker != killed)
    assert daemon.json("status")["failures"] == [before]
    assert shown == [line for line in place.read(".versions/status").splitlines() if line.startswith(b"note")]
    daemon.ok("down")
    daemon.up(root=place.root)
    assert daemon.json("status")["failures"] == []


def test_status_shows_a_crash_and_not_a_restart_that_was_asked_for(daemon: Daemon) -> None:
    daemon.up()
    daemon.ok("restart")
    worker = daemon.json("status")["worker"]
    assert (worker["restarts"], worker["last_crash"]) == (1, None)
    killed = daemon.kill_worker()
    eventually(lambda: daemon.worker != killed)
    said = daemon.json("status")["worker"]["last_crash"]
    assert said.endswith(f"  worker {killed} ended (killed by SIGKILL)")
    daemon.ok("restart")
    assert f"worker {killed} " in daemon.json("status")["worker"]["last_crash"]


def test_a_worker_that_is_told_to_end_makes_room_for_another_and_mounts_stay(daemon: Daemon) -> None:
    place = daemon.up()
    file = daemon.inside.call("os.open", place.path("a"), os.O_CREAT | os.O_RDWR)
    before = daemon.worker
    os.kill(before, signal.SIGTERM)
    daemon.inside.call("os.write", file, b"goes on")
    eventually(lambda: daemon.worker != before)
    daemon.inside.call("os.close", file)
    assert place.read("a") == b"goes on"


def test_a_restart_where_the_keeper_was_killed_brings_another_one_first(daemon: Daemon) -> None:
    place = daemon.up()
    place.write("a", b"content")
    before = daemon.worker
    os.kill(int(Path(daemon.run_directory, "keeper.lock").read_text()), signal.SIGKILL)
    daemon.ok("restart")
    assert daemon.worker != before
    assert place.read("a") == b"content"


def test_status_says_why_no_worker_serves(daemon: Daemon) -> None:
    daemon.up()
    journal = Path(daemon.state, "journal")
    before, text = daemon.worker, "not what a journal begins with, and much longer than any header of one"
    kept = journal.read_bytes() if journal.is_file() else None
    assert kept is not None, sorted(journal.iterdir())
    journal.write_text(text)
    os.kill(before, signal.SIGKILL)
    eventually(lambda: "no worker serves now" in daemon.command("status").err, limit=30)
    assert "journal" in daemon.command("status").err
    journal.write_bytes(kept)
    assert daemon.worker != before


def test_the_message_for_a_read_only_store_is_the_one_that_people_know(daemon: Daemon) -> None:
    place = daemon.up(actor="ann")
    for user in (None, NOBODY):
        finished = daemon.inside.run("sh", "-c", f"echo x > {place.preferences}/a", user=user)
        assert "Read-only file system" in finished.err
