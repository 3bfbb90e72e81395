"""Sessions that have to ask, with real mounts, beside one that writes."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ..harness.daemon import Daemon, Place

CONFIGURATION = """
[agents.asking]
memory = { shared = "ask" }

[agents.writing]
memory = { state = "read_write" }
"""
STORE = "memory/asking/shared"
LINES = b"one\ntwo\nthree\nfour\nfive\n"


class Desk:
    """Two sessions at one store: `asking` has to ask, `writing` writes."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        daemon.configure(CONFIGURATION)
        self.asking: Place = SharedPlace.of(daemon.up(agent="asking", actor="ann"))
        self.writing: Place = self.session("bob", "read_write")

    def session(self, actor: str, access: str) -> Place:
        """One more session at the store, used where the hub has it."""
        attach = f"{STORE}=/mnt/memory/shared:{access}"
        who = ["--agent", "writing", "--actor", actor]
        document = self.daemon.json("session", "open", *who, "--attach", attach)
        root = f"{self.daemon.run_directory}/fs/sessions/{document['id']}/views"
        return SharedPlace(self.daemon, root, document)


class SharedPlace(Place):
    @classmethod
    def of(cls, place: Place) -> "SharedPlace":
        document = {"id": place.session, "agent": place.agent, "attachments": place.attachments}
        return cls(place.daemon, place.root, document)

    @property
    def state(self) -> str:
        return f"{self.root}/mnt/memory/shared"


@pytest.fixture
def desk(daemon: Daemon) -> Desk:
    desk = Desk(daemon)
    desk.writing.write("file", LINES)
    desk.writing.write("other", b"other\n")
    daemon.barrier()
    return desk


def test_status_has_a_line_for_each_store_however_much_waits(desk: Desk) -> None:
    for number in range(3):
        desk.asking.write(f"new{number}", b"new\n")
        desk.daemon.barrier()
    assert len(desk.daemon.json("status")["pending"]) == 3
    title, _, line, *_ = desk.daemon.ok("status").partition("pending ")[2].splitlines()
    assert title.split() == ["3"]
    assert line.split()[:3] == [STORE, "3", "3"]
    assert line.endswith(f"engramfs pending list {STORE}")


def test_what_is_asked_for_is_seen_by_its_session_until_it_is_approved(desk: Desk) -> None:
    daemon, asking, writing = desk.daemon, desk.asking, desk.writing
    asking.write("file", b"asked\n")
    asking.write("new", b"new\n")
    asking.inside.call("os.unlink", asking.path("other"))
    assert (asking.read("file"), asking.names()) == (b"asked\n", ["file", "new"])
    assert (writing.read("file"), writing.names()) == (LINES, ["file", "other"])
    [waiting] = daemon.json("pending", "list", STORE)
    assert [f"{each['op']} {each['path']}" for each in waiting["changes"]] == [
        "modified file",
        "created new",
        "deleted other",
    ]
    assert (waiting["number"], waiting["base"], waiting["state"]) == (1, 1, "open")
    assert waiting["author"]["actor"] == "ann"
    [shown] = daemon.json("status")["pending"]
    assert (shown["store"], shown["number"], shown["changes"]) == (STORE, 1, 3)
    assert "pending  1" in asking.read(".versions/status").decode()
    approved = daemon.json("pending", "approve", STORE, "1", "--reason", "fine")
    assert (approved["state"], approved["result"], approved["reason"]) == ("approved", 2, "fine")
    assert (writing.read("file"), writing.names()) == (b"asked\n", ["file", "new"])
    newest = daemon.log(STORE)[-1]
    assert (newest["via"], newest["flags"], newest["author"]["actor"]) == ("approval", ["approved"], "ann")
    assert newest["message"] == "pending 1, approved by root: fine"
    writing.write("new", b"writing\n")
    assert asking.read("new") == b"writing\n"


def test_what_changes_nothing_is_approved_and_said_to(desk: Desk) -> None:
    daemon = desk.daemon
    for number, by_json in ((1, False), (2, True)):
        for place in (desk.asking, desk.writing):
            place.write(f"same{number}", b"same\n")
            daemon.barrier()
        if by_json:
            approved = daemon.json("pending", "approve", STORE, str(number))
            assert (approved["state"], approved["result"], approved["unchanged"]) == ("approved", None, True)
        else:
            said = daemon.ok("pending", "approve", STORE, str(number)).split()
            assert said == f"approved pending {number} of {STORE}; nothing was left to change".split()
    assert [one["via"] for one in daemon.log(STORE)] == ["fs"] * 3


def test_the_log_of_what_waits_keeps_to_its_conditions(desk: Desk) -> None:
    daemon, other = desk.daemon, desk.session("cid", "ask")
    for place, name in ((desk.asking, "first"), (desk.asking, "second"), (other, "third")):
        place.write(name, b"asked\n")
        daemon.barrier()

    def numbers(*options: str) -> list[int]:
        return [one["number"] for one in daemon.json("log", STORE, *options, "--pending")]

    assert numbers() == numbers("--since", "1h") == numbers("--by", "agent") == [1, 2, 3]
    assert numbers("-n", "2") == [2, 3]  # the newest, as of versions
    assert numbers("--author", "CID") == numbers("--session", other.session[:8]) == [3]
    assert numbers("--path", "second") == numbers("second") == [2]
    assert numbers("--since", "2100-01-01") == numbers("--flag", "approved") == numbers("file") == []
    assert numbers("--author", "ann", "-n", "1") == [2]
    for option in ("--watch", "--stat", "-p", "--follow"):
        refused = daemon.command("log", STORE, "--pending", option)
        assert (refused.code, f"--pending does not go with {option};" in refused.err) == (2, True), refused
    refused = daemon.command("log", f"{STORE}@1", "--pending")
    assert (refused.code, "--pending does not go with @1;" in refused.err) == (2, True), refused


def test_in_conflict_an_approval_is_refused_or_merged(desk: Desk) -> None:
    daemon, asking, writing = desk.daemon, desk.asking, desk.writing
    asking.write("file", LINES.replace(b"one", b"ONE"))
    asking.write("other", b"asked\n")
    writing.write("file", LINES.replace(b"five", b"FIVE"))
    asking.inside.call("os.mkdir", asking.path("made"))
    daemon.barrier()
    assert "-one\n+ONE\n" in daemon.ok("pending", "diff", STORE, "1", "file")
    assert daemon.ok("pending", "show", STORE, "1", "other") == "asked\n"
    assert daemon.ok("log", STORE, "--pending") == daemon.ok("pending", "list", STORE)
    refused = daemon.command("pending", "approve", STORE, "1")
    assert refused.code == 4, refused
    assert "file is not what it was" in refused.err
    assert "--merge" in refused.err
    assert writing.read("other") == b"other\n"
    daemon.ok("pending", "approve", STORE, "1", "--merge")
    merged = LINES.replace(b"one", b"ONE").replace(b"five", b"FIVE")
    assert asking.read("file") == writing.read("file") == merged
    assert writing.read("other") == b"asked\n"
    again = daemon.command("pending", "approve", STORE, "1")
    assert (again.code, "was approved by root already" in again.err) == (4, True)
    asking.write("file", b"asked\n")
    writing.write("file", b"written\n")
    refused = daemon.command("pending", "approve", STORE, "--merge", "3")
    assert (refused.code, "file cannot be merged" in refused.err) == (4, True)


def test_a_rejection_is_told_to_the_session_and_takes_its_change_back(desk: Desk) -> None:
    daemon, asking, writing = desk.daemon, desk.asking, desk.writing
    asking.write("file", b"asked\n")
    asking.write("new", b"new\n")
    daemon.barrier()
    daemon.ok("pending", "reject", STORE, "--reason", "too vague")
    assert (asking.read("file"), asking.names()) == (LINES, ["file", "other"])
    assert "pending 1 was rejected by root: too vague" in asking.read(".versions/status").decode()
    assert asking.read(".versions/pending/1/new") == b"new\n"
    [shown] = daemon.json("pending", "list", STORE, "--all")
    assert (shown["state"], shown["reason"], shown["decided_by"]) == ("rejected", "too vague", "root")
    assert daemon.json("pending", "list", STORE) == daemon.json("status")["pending"] == []
    hub = f"{daemon.run_directory}/fs/pending/{STORE}"
    assert daemon.inside.call("read", f"{hub}/1/file") == b"asked\n"
    writing.write("file", b"written\n")
    assert asking.read("file") == b"written\n"


def test_what_waits_and_what_is_open_outlive_the_worker_and_the_session(desk: Desk) -> None:
    daemon, asking, writing = desk.daemon, desk.asking, desk.writing
    daemon.barrier()
    asking.write("file", b"asked\n")
    descriptor = asking.inside.call("os.open", asking.path("open"), 0o102)
    asking.inside.call("os.write", descriptor, b"half")
    asking.write("gone", b"removed")
    gone = asking.inside.call("os.open", asking.path("gone"), 2)
    asking.inside.call("os.unlink", asking.path("gone"))
    inode = asking.inside.call("os.stat", asking.path("file")).st_ino
    before = daemon.kill_worker()
    assert daemon.worker != before
    assert asking.read("file") == b"asked\n"
    assert asking.inside.call("os.stat", asking.path("file")).st_ino == inode
    assert asking.inside.call("os.pread", gone, 10, 0) == b"removed"
    asking.inside.call("os.write", descriptor, b" and half")
    asking.inside.call("os.close", descriptor)
    asking.inside.call("os.close", gone)
    writing.write("theirs", b"theirs\n")
    assert asking.names() == ["file", "open", "other", "theirs"]
    assert asking.read("open") == b"half and half"
    daemon.barrier()
    numbers = [each["number"] for each in daemon.json("pending", "list", STORE)]
    daemon.ok("pending", "approve", STORE, str(numbers[0]))
    assert writing.read("file") == b"asked\n"
    daemon.kill_worker()
    asking.write("later", b"later\n")
    assert daemon.worker
    daemon.end(asking)
    assert [each["number"] for each in daemon.json("pending", "list", STORE)] == [
        *numbers[1:],
        len(numbers) + 1,
    ]
    daemon.down()
    for number in [*numbers[1:], len(numbers) + 1]:
        daemon.ok("pending", "approve", STORE, str(number))
    assert daemon.ok("show", f"{STORE}:open") == "half and half"
    assert daemon.ok("show", f"{STORE}:later") == "later\n"


def test_what_a_store_refuses_to_overwrite_waits(desk: Desk) -> None:
    daemon, writing = desk.daemon, desk.writing
    daemon.ok("store", "set", STORE, "--conflicts", "refuse")
    other = desk.session("eve", "read_write")
    descriptor = other.inside.call("os.open", other.path("file"), 1 | 512)
    other.inside.call("os.pwrite", descriptor, LINES.replace(b"one", b"ONE"), 0)
    writing.write("file", LINES.replace(b"five", b"FIVE"))
    with pytest.raises(OSError, match="Errno 116"):
        other.inside.call("os.close", descriptor)
    daemon.barrier()
    [waiting] = daemon.json("pending", "list", STORE)
    assert waiting["flags"] == ["concurrent", "refused"]
    assert waiting["author"]["actor"] == "eve"
    daemon.ok("pending", "approve", STORE, "--merge")
    assert writing.read("file") == LINES.replace(b"one", b"ONE").replace(b"five", b"FIVE")


def test_an_attachment_that_asks_says_so(desk: Desk) -> None:
    daemon, asking = desk.daemon, desk.asking
    shown = daemon.json("session", "show", asking.session)
    assert {each["store"]: each["access"] for each in shown["attachments"]}[STORE] == "ask"
    assert "fork" not in shown["attachments"][0]
    asking.write("new", b"new\n")
    daemon.barrier()
    marks = {
        name: asking.inside.call("os.getxattr", asking.path("new"), f"user.engramfs.{name}")
        for name in ("access", "store", "pending", "session")
    }
    assert marks == {
        "access": b"ask",
        "store": STORE.encode(),
        "pending": b"1",
        "session": asking.session.encode(),
    }
    pinned = daemon.command("session", "open", "--agent", "asking", "--attach", f"{STORE}@1=/mnt/x:ask")
    assert (pinned.code, "old version" in pinned.err) == (2, True)


def test_what_was_rejected_can_be_redacted(desk: Desk) -> None:
    daemon, asking = desk.daemon, desk.asking
    asking.write("new", b"the password is hunter2\n")
    daemon.barrier()
    assert asking.read(".versions/pending/1/new") == b"the password is hunter2\n"
    command = ["redact", STORE, "1", "new", "--pending", "--reason", "a secret"]
    waits = daemon.command(*command)
    assert (waits.code, f"pending reject {STORE} 1" in waits.err) == (5, True)
    daemon.ok("pending", "reject", STORE, "1", "--reason", "no")
    assert daemon.json(*command)["standing"] == []
    for place in (asking, desk.writing):
        with pytest.raises(OSError, match=r"."):
            place.read(".versions/pending/1/new")
    check_gone(daemon)


def elsewhere(daemon: Daemon) -> list[dict[str, Any]]:
    """What forgetting ann leaves to do, without doing it."""
    left: list[dict[str, Any]] = json.loads(daemon.command("forget", "ann", "--json").out)["elsewhere"]
    return left


def words(command: str) -> list[str]:
    """As a shell takes it."""
    said = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True)
    return said.stdout.decode().split("\0")[:-1]


def test_what_an_actor_called_directories_goes_by_the_commands_that_forget_prints(desk: Desk) -> None:
    daemon, asking = desk.daemon, desk.asking
    asking.inside.call("os.mkdir", asking.path("named\nhunter2"))
    daemon.barrier()
    daemon.ok("pending", "approve", STORE, "1")
    asking.inside.call("os.rmdir", asking.path("named\nhunter2"))
    daemon.barrier()
    daemon.ok("pending", "approve", STORE, "2")
    asking.inside.call("os.makedirs", asking.path("hunter2/deep"))
    asking.write("hunter2/deep/file", b"the password is hunter2\n")
    daemon.barrier()
    assert asking.names(".versions/pending/3") == ["file", "hunter2", "other"]
    assert {one["waits"] for one in elsewhere(daemon) if one["number"] == 3} == {True}
    daemon.ok("pending", "reject", STORE, "3", "--reason", "no")
    left = elsewhere(daemon)
    assert [(one["path"], one["pending"]) for one in left if one["directory"]] == [
        ("hunter2/deep", True),
        ("hunter2", True),
        ("named\nhunter2", False),
    ]
    for one in left:
        daemon.ok(*words(one["command"])[1:])
    assert elsewhere(daemon) == []
    assert "hunter2" not in daemon.ok("pending", "show", STORE, "3") + daemon.ok("log", STORE)
    with pytest.raises(OSError, match=r"."):
        asking.names(".versions/pending/3/hunter2")
    check_gone(daemon)
    assert daemon.json("verify")["findings"] == []


def test_everywhere_is_in_what_waits_too_which_waits_on_without_it(desk: Desk) -> None:
    daemon, asking, writing = desk.daemon, desk.asking, desk.writing
    writing.write("new", b"the password is hunter2\n")
    daemon.barrier()
    writing.write("new", b"clean\n")
    daemon.barrier()
    written = next(one["number"] for one in daemon.log(STORE) if one["changes"][0]["path"] == "new")
    asking.write("copied", b"the password is hunter2\n")
    asking.write("file", b"the password is hunter2\n")
    asking.write("innocent", b"innocent\n")
    daemon.barrier()
    asking.inside.call("os.mkdir", asking.path("later"))
    assert asking.read("copied") == asking.read(".versions/pending/1/copied") == asking.read("file")
    document = daemon.json("redact", STORE, str(written), "new", "--everywhere", "--reason", "a secret")
    assert (document["versions"], document["pending"]) == ([written, written + 1], [1])
    assert (document["waiting"], document["standing"]) == ([1], [])
    assert (asking.names(), asking.read("file")) == (["file", "innocent", "later", "new", "other"], LINES)
    assert "was redacted" in asking.read(".versions/status").decode()
    for name in ("copied", ".versions/pending/1/copied"):
        with pytest.raises(OSError, match=r"."):
            asking.read(name)
    shown = daemon.ok("pending", "show", STORE, "1")
    assert shown.count("(redacted)") == 2
    assert "by root, 2 changes:  a secret" in shown
    daemon.ok("pending", "approve", STORE, "1")
    assert (writing.names(), writing.read("file")) == (["file", "innocent", "new", "other"], LINES)
    assert daemon.json("verify")["findings"] == []
    check_gone(daemon)


def check_gone(daemon: Daemon) -> None:
    """The secret is in no file after a collection."""
    daemon.ok("gc")
    for above, _, names in os.walk(daemon.state):
        for name in names:
            assert b"hunter2" not in Path(above, name).read_bytes()


def test_what_waits_is_what_waited_when_a_store_comes_back_from_a_backup(desk: Desk, tmp_path: Path) -> None:
    daemon, asking, writing = desk.daemon, desk.asking, desk.writing
    asking.write("file", b"asked\n")
    daemon.barrier()
    backup = str(tmp_path / "backup")
    daemon.ok("backup", backup)
    daemon.ok("pending", "approve", STORE, "1")
    asking.write("late", b"asked later\n")
    writing.write("since", b"since\n")
    done = daemon.command("restore-backup", backup, "--store", STORE)
    assert done.code == 0, done
    assert "1 pending of the backup wait again" in done.err
    assert "1 pending that the backup does not have were rejected" in done.err
    assert (asking.read("file"), asking.names()) == (LINES, ["file", "other"])
    assert (writing.read("file"), writing.names()) == (LINES, ["file", "other"])
    [waits] = daemon.json("pending", "list", STORE)
    assert (waits["number"], waits["author"]["actor"]) == (3, "ann")
    assert f"from the backup {backup}" in daemon.ok("pending", "list", STORE, "--all")
    assert asking.read(".versions/pending/3/file") == b"asked\n"
    asking.write("other", b"and more\n")
    daemon.ok("pending", "approve", STORE, "3")
    assert (writing.read("file"), asking.read("file")) == (b"asked\n", b"asked\n")
    daemon.ok("pending", "approve", STORE, "4")
    assert writing.read("other") == b"and more\n"
    daemon.check_soundness()
    daemon.kill_worker()
    assert (asking.read("file"), asking.read("other")) == (b"asked\n", b"and more\n")


def test_nothing_that_the_daemon_says_or_keeps_names_a_path_that_was_redacted(desk: Desk) -> None:
    daemon, writing = desk.daemon, desk.writing
    daemon.ok("store", "set", STORE, "--conflicts", "refuse")
    writing.write("hunter2", LINES)
    other = desk.session("eve", "read_write")
    descriptor = other.inside.call("os.open", other.path("hunter2"), os.O_WRONLY)
    other.inside.call("os.pwrite", descriptor, b"ONE", 0)
    writing.write("hunter2", b"something else\n")
    with pytest.raises(OSError, match="Errno 116"):
        other.inside.call("os.close", descriptor)
    daemon.barrier()
    assert daemon.command("redact", STORE, "99", "hunter2", "--reason", "too early").code == 3

    def said() -> list[str]:
        kept = Path(daemon.run_directory).glob("*")
        texts = [file.read_text(errors="replace") for file in kept if file.is_file()]
        sessions = Path(daemon.run_directory, "sessions").glob("*")
        texts += [file.read_text(errors="replace") for file in sessions]
        shown = [place.read(".versions/status").decode() for place in (desk.asking, writing, other)]
        return [daemon.ok("status"), *shown, *texts]

    assert sum("hunter2" in text for text in said()) == 4  # status, two mounts, and the file failures
    daemon.ok("pending", "reject", STORE, "--reason", "no")
    writing.inside.call("os.unlink", writing.path("hunter2"))
    daemon.barrier()
    daemon.ok("redact", STORE, "2", "hunter2", "--reason", "a secret")
    assert [text for text in said() if "hunter2" in text] == []
    assert "refused to overwrite (redacted)" in daemon.ok("status")
