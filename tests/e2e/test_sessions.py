"""Sessions in running sandboxes: attached whole or not at all, never over what is there, ended with them."""

import errno
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from engramfs.errors import NotFound, UsageError

from ..harness.daemon import Daemon, eventually
from ..harness.inside import Inside
from .conftest import Start
from .session import PARENTS, PLACES, Session, mounts_under

# Opening


def test_open_prints_the_id_and_its_file_can_be_read_by_a_person(served: Daemon) -> None:
    identifier = served.ok("session", "open", "--actor", "open1").strip()
    path = Path(served.run_directory, "sessions", f"{identifier}.json")
    assert json.loads(path.read_text())["actor"] == "open1"
    assert path.stat().st_mode & 0o777 == 0o600
    assert identifier in served.ok("session", "list")
    assert "memories/open1" in served.ok("session", "show", identifier)
    served.ok("session", "close", identifier)
    assert not path.exists()
    assert identifier not in served.ok("session", "list")


def test_open_as_json_is_the_session_with_its_attachments(served: Daemon) -> None:
    opened = served.json("session", "open", "--actor", "open2")
    assert {key: opened[key] for key in ("agent", "actor", "tenant")} == {
        "agent": "default",
        "actor": "open2",
        "tenant": None,
    }
    user = next(each for each in opened["attachments"] if each["path"] == "/memories/user")
    assert {"store", "path", "access", "version", "live"} <= user.keys()
    assert (user["store"], user["access"], user["live"]) == ("memories/open2", "read_write", True)
    served.ok("session", "close", opened["id"])


@pytest.mark.parametrize("command", ["show", "close"])
def test_a_session_that_there_is_not_is_said(served: Daemon, command: str) -> None:
    finished = served.command("session", command, "00000000")
    assert (finished.code, finished.err.count("\n")) == (NotFound.exit_code, 1)
    assert "there is no session 00000000" in finished.err


def test_attachments_can_be_asked_for_beside_the_agents_and_instead(served: Daemon, tmp_path: Path) -> None:
    (tmp_path / "rule").write_text("old")
    served.ok("store", "create", "rules/asked")
    served.ok("import", "rules/asked", str(tmp_path))
    (tmp_path / "rule").write_text("new")
    served.ok("import", "rules/asked", str(tmp_path))
    opened = served.json(
        *("session", "open", "--agent", "asking", "--actor", "asked"),
        *("--attach", "rules/asked@1=/mnt/context/old:read_only"),
        *("--attach", "rules/asked=/srv/deep/rules:read_only"),
        *("--attach", "rules/asked=/mnt/memory/preferences:read_only"),
    )
    root = "/mnt/asked"
    served.inside.call("os.mkdir", root)
    served.ok("attach", opened["id"], "--root", root)
    assert served.inside.call("read", f"{root}/mnt/context/old/rule") == b"old"
    assert served.inside.call("read", f"{root}/srv/deep/rules/rule") == b"new"
    assert served.inside.call("read", f"{root}/mnt/memory/preferences/rule") == b"new"
    served.ok("session", "close", opened["id"])


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        ("nonsense", 2, "write STORE[@N]=PATH:ACCESS"),
        ("x=/y", 2, "write STORE[@N]=PATH:ACCESS"),
        ("missing=/x:read_only", 3, "there is no store missing"),
        ("memory/default/state=/x:write", 2, "write read_only or read_write"),
        ("memory/default/state@1=/x:read_write", 2, "leave @1 out"),
        ("memory/default/state@77=/x:read_only", 3, "has no version 77"),
        ("memory/default/state=/x/../y:read_only", 2, "no place to attach to"),
        ("memory/default/state=/:read_only", 2, "no place to attach to"),
        ("memory/default/state=/memories:read_only", 2, "holds mount points itself"),
        ("memory/default/state=/mnt:read_only", 2, "holds mount points itself"),
        ("memory/default/state=/memories/user/x:read_only", 2, "would lie inside of /memories/user"),
        ("memories/somebody=/x:read_only", 5, "not this session's memory"),
    ],
)
def test_an_attachment_that_cannot_be_is_refused_in_one_line(
    served: Daemon, asked: str, code: int, said: str
) -> None:
    before = len(served.json("session", "list"))
    served.ok("session", "close", served.ok("session", "open", "--actor", "somebody").strip())
    finished = served.command("session", "open", "--actor", "refused", "--attach", asked)
    assert (finished.code, finished.err.count("\n")) == (code, 1), finished
    assert said in finished.err
    assert len(served.json("session", "list")) == before


# Attaching


def test_mount_points_are_made_and_a_write_beside_them_fails_loudly(session: Session) -> None:
    session.attach()
    assert session.mounts() == sorted(session.root + path for path in PLACES + PARENTS)
    for parent in PARENTS:
        with pytest.raises(OSError, match=f"Errno {errno.EROFS}"):
            session.daemon.inside.call("write", f"{session.root}{parent}/stray", b"x")
    session.daemon.inside.call("write", f"{session.root}/memories/user/note", b"kept")
    assert session.show()["state"] == "attached"


def test_attaching_again_changes_nothing(session: Session) -> None:
    session.attach()
    before = session.mounts()
    session.attach()
    assert session.mounts() == before
    assert len(session.show()["places"]) == 1


def test_what_is_there_is_refused_by_name_and_nothing_is_attached_unless_over(session: Session) -> None:
    inside = session.daemon.inside
    inside.shell(f"mkdir -p {session.root}/mnt/memory; echo mine > {session.root}/mnt/memory/file")
    finished = session.daemon.command("attach", session.id, "--root", session.root)
    assert (finished.code, finished.err.count("\n")) == (4, 1)
    assert f"{session.root}/mnt/memory exists and is not empty" in finished.err
    assert session.mounts() == []
    assert session.show()["state"] == "open"
    session.attach("--root", session.root, "--over")
    assert inside.call("names", f"{session.root}/mnt/memory") == ["preferences", "state"]
    session.daemon.ok("detach", session.id)
    assert inside.call("read", f"{session.root}/mnt/memory/file") == b"mine\n"


def test_a_read_only_root_is_refused_in_one_line(session: Session) -> None:
    session.daemon.inside.shell(f"mount -t tmpfs -o ro none {session.root}")
    finished = session.daemon.command("attach", session.id, "--root", session.root)
    assert (finished.code, finished.err.count("\n")) == (1, 1)
    assert f"cannot create the mount point {session.root}/mnt: Read-only file system" in finished.err
    session.daemon.inside.shell(f"umount {session.root}")


def test_a_read_only_root_with_mount_points_is_attached_to(session: Session) -> None:
    places = " ".join(f"{session.root}{path}" for path in [*PARENTS, *PLACES])
    session.daemon.inside.shell(
        f"mount -t tmpfs none {session.root}; mkdir -p {places}; mount -o remount,ro {session.root}"
    )
    session.attach()
    session.daemon.inside.call("write", f"{session.root}/mnt/memory/state/a", b"x")
    session.daemon.ok("detach", session.id)
    session.daemon.inside.shell(f"umount {session.root}")


def test_an_overlay_is_a_root_like_any_other(session: Session) -> None:
    layers = f"{session.root}/layers"
    session.daemon.inside.shell(
        f"mkdir -p {layers}/lower {layers}/upper {layers}/work {session.root}/merged\n"
        f"mount -t overlay -o lowerdir={layers}/lower,upperdir={layers}/upper,workdir={layers}/work "
        f"overlay {session.root}/merged"
    )
    session.attach("--root", f"{session.root}/merged")
    session.daemon.inside.call("write", f"{session.root}/merged/memories/user/a", b"x")
    assert session.daemon.inside.call("names", f"{layers}/upper/memories") == [], "nothing went to the layer"
    session.daemon.ok("detach", session.id)
    session.daemon.inside.shell(f"umount {session.root}/merged")


def test_a_second_session_at_a_root_is_refused_and_with_over_the_first_has_ended(session: Session) -> None:
    session.attach()
    other = session.daemon.json("session", "open", "--agent", session.agent, "--actor", "second")
    session.daemon.inside.call("write", f"{session.root}/memories/user/mine", b"first")
    finished = session.daemon.command("attach", other["id"], "--root", session.root)
    assert (finished.code, finished.err.count("\n")) == (4, 1), finished
    assert f"session {session.id} ({session.agent} for {session.actor}) is attached at {session.root}" in (
        finished.err
    )
    assert f"engramfs detach {session.id}" in finished.err
    assert session.daemon.inside.call("read", f"{session.root}/memories/user/mine") == b"first"
    assert session.daemon.json("session", "show", other["id"])["state"] == "open"
    session.daemon.ok("attach", other["id"], "--root", session.root, "--over")
    assert len(session.mounts()) == len(PLACES + PARENTS)
    assert session.daemon.command("session", "show", session.id).code == NotFound.exit_code
    session.daemon.inside.call("write", f"{session.root}/memories/user/mine", b"second")
    session.daemon.barrier()
    assert session.daemon.log("memories/second")[-1]["author"]["session"] == other["id"]


# A running container


def test_a_running_sandbox_gets_the_mounts_and_takes_them_with_it(session: Session, start: Start) -> None:
    sandbox = start()
    sandbox.shell("mount -t tmpfs none /mnt; mkdir /mnt/root")
    sandbox.call("os.chroot", "/mnt/root")
    session.attach("--pid", str(sandbox.pid))
    sandbox.call("write", "/memories/user/from-inside", b"x")
    assert sandbox.call("names", "/mnt/memory") == ["preferences", "state"]
    with pytest.raises(OSError, match=f"Errno {errno.EROFS}"):
        sandbox.call("write", "/memories/stray", b"x")
    assert mounts_under(session.daemon.inside, session.root) == [], "the host sees nothing of it"
    assert session.show()["state"] == "attached"
    session.daemon.barrier()
    author = session.daemon.log(f"memories/{session.actor}")[-1]["author"]
    assert (author["kind"], author["actor"], author["session"]) == ("agent", session.actor, session.id)

    sandbox.kill()
    eventually(lambda: session.show()["state"] == "gone")
    assert "gone" in session.daemon.ok("status")
    assert session.daemon.json("session", "close", "--gone") == [session.id]
    assert session.daemon.command("session", "show", session.id).code == NotFound.exit_code


def test_a_sandbox_lives_on_while_any_of_its_processes_does(session: Session, start: Start) -> None:
    first = start()
    first.shell("mount -t tmpfs none /mnt")
    session.attach("--pid", str(first.pid), "--over")
    second = start(beside=first.pid)
    first.kill()
    assert session.show()["state"] == "attached"
    session.daemon.ok("detach", session.id)
    assert mounts_under(second, "") == []
    second.kill()


def test_a_second_session_of_a_sandbox_is_refused_through_whichever_process(
    session: Session, start: Start
) -> None:
    first = start()
    first.shell("mount -t tmpfs none /mnt")
    session.attach("--pid", str(first.pid), "--over")
    beside = start(beside=first.pid)
    other = session.daemon.json("session", "open", "--agent", session.agent, "--actor", session.other)
    finished = session.daemon.command("attach", other["id"], "--pid", str(beside.pid))
    assert (finished.code, finished.err.count("\n")) == (4, 1), finished
    assert f"session {session.id} " in finished.err
    assert session.show()["state"] == "attached"
    session.daemon.ok("attach", other["id"], "--pid", str(beside.pid), "--over")
    assert session.daemon.command("session", "show", session.id).code == NotFound.exit_code


def test_nothing_of_a_sandbox_is_changed_when_one_place_refuses(session: Session, start: Start) -> None:
    sandbox = start()
    sandbox.shell("mount -t tmpfs none /mnt; mkdir -p /mnt/root/memories; touch /mnt/root/memories/mine")
    sandbox.call("os.chroot", "/mnt/root")
    finished = session.daemon.command("attach", session.id, "--pid", str(sandbox.pid))
    assert (finished.code, finished.err.count("\n")) == (4, 1)
    assert f"/proc/{sandbox.pid}/root/memories exists and is not empty" in finished.err
    assert sandbox.call("names", "/") == ["memories"]


def test_symbolic_links_of_a_sandbox_lead_nowhere_outside_of_it(session: Session, start: Start) -> None:
    sandbox = start()
    sandbox.shell(
        "mount -t tmpfs none /mnt; mkdir -p /mnt/root/elsewhere; ln -s /elsewhere /mnt/root/memories"
    )
    sandbox.call("os.chroot", "/mnt/root")
    session.attach("--pid", str(sandbox.pid))
    sandbox.call("write", "/elsewhere/user/a", b"x")
    assert not os.path.exists("/elsewhere")


MAPPED = "until grep -q . /proc/self/uid_map && grep -q . /proc/self/gid_map; do sleep 0.01; done"


def in_user_namespace(inside: Inside, first: int) -> int:
    """The pid of a sandbox in a user namespace of its own, whose root is `first` outside."""
    as_root = ["setpriv", "--reuid=0", "--regid=0", "--clear-groups", "sh", "-c"]
    script = f"{MAPPED}; exec {' '.join(as_root)} 'mount -t tmpfs none /mnt; exec sleep 60'"
    command = ["unshare", "--user", "--mount", "--keep-caps", "sh", "-c", script]
    pid: int = inside.call("start", command, None, {}, "/dev/null")
    eventually(lambda: os.readlink(f"/proc/{pid}/ns/user") != os.readlink("/proc/self/ns/user"))
    for which in ("uid", "gid"):
        Path(f"/proc/{pid}/{which}_map").write_text(f"0 {first} 1000")
    eventually(lambda: " /mnt tmpfs " in Path(f"/proc/{pid}/mounts").read_text())
    return pid


def owner_of_a_new_file(inside: Inside, pid: int) -> str:
    """Of one that root of the sandbox makes, as root of the sandbox sees it."""
    script = "echo x > /memories/user/new && stat -c %u:%g /memories/user/new"
    return inside.shell(f"nsenter -t {pid} -U -m -- sh -c '{script}'")


def test_a_user_namespace_that_knows_the_owner_is_attached_to(session: Session) -> None:
    inside = session.daemon.inside
    pid = in_user_namespace(inside, 0)
    session.attach("--pid", str(pid), "--over")
    assert owner_of_a_new_file(inside, pid) == "0:0\n"
    inside.call("os.kill", pid, signal.SIGKILL)


def test_a_user_namespace_that_does_not_know_the_owner_is_refused_and_with_another_owner_attached_to(
    session: Session,
) -> None:
    inside = session.daemon.inside
    pid = in_user_namespace(inside, 100000)
    finished = session.daemon.command("attach", session.id, "--pid", str(pid), "--over")
    assert (finished.code, finished.err.count("\n")) == (5, 1), finished
    assert "does not know uid 0, the files' owner; open the session with --uid 100000" in finished.err
    owned = session.daemon.json(
        *("session", "open", "--agent", session.agent, "--actor", session.actor),
        *("--uid", "100000", "--gid", "100000"),
    )
    session.daemon.ok("attach", owned["id"], "--pid", str(pid), "--over")
    assert owner_of_a_new_file(inside, pid) == "0:0\n"
    inside.call("os.kill", pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("where", "code", "said"),
    [
        ([], UsageError.exit_code, "give --root DIR or --pid PID"),
        (["--root", "/", "--pid", "1"], UsageError.exit_code, "give one of them"),
        (["--root", "/missing"], UsageError.exit_code, "/missing: No such file or directory"),
        (["--pid", "4194303"], NotFound.exit_code, "there is no process 4194303"),
    ],
)
def test_a_place_that_is_none_is_said(session: Session, where: list[str], code: int, said: str) -> None:
    finished = session.daemon.command("attach", session.id, *where)
    assert (finished.code, finished.err.count("\n")) == (code, 1)
    assert said in finished.err


# Detaching and closing


def test_detaching_one_place_leaves_the_others(session: Session, start: Start) -> None:
    sandbox = start()
    sandbox.shell("mount -t tmpfs none /mnt")
    session.attach()
    session.attach("--pid", str(sandbox.pid), "--over")
    session.daemon.ok("detach", session.id, "--root", session.root)
    assert session.mounts() == []
    sandbox.call("write", "/memories/user/a", b"x")
    finished = session.daemon.command("detach", session.id, "--root", session.root)
    assert (finished.code, finished.err.count("\n")) == (NotFound.exit_code, 1)


def test_closing_takes_root_directories_clear_and_fails_loudly_in_a_container(
    session: Session, start: Start
) -> None:
    sandbox = start()
    sandbox.shell("mount -t tmpfs none /mnt")
    session.attach()
    session.attach("--pid", str(sandbox.pid), "--over")
    sandbox.call("write", "/memories/user/a", b"x")
    session.daemon.ok("session", "close", session.id)
    assert session.mounts() == []
    for path in ("/memories/user/a", "/memories/user/b", "/memories/b", "/mnt/memory/state/b"):
        with pytest.raises(OSError, match=f"Errno {errno.ESTALE}"):
            sandbox.call("write", path, b"lost")


def test_closing_one_session_or_all_that_are_gone_not_both(served: Daemon) -> None:
    for arguments in ([], ["00000000", "--gone"]):
        finished = served.command("session", "close", *arguments)
        assert (finished.code, finished.err.count("\n")) == (UsageError.exit_code, 1)


def test_a_store_that_a_session_shows_is_not_deleted(session: Session, tmp_path: Path) -> None:
    daemon = session.daemon
    daemon.ok("store", "create", "rules/shown")
    (tmp_path / "rule").write_text("x")
    daemon.ok("import", "rules/shown", str(tmp_path))
    pinned = daemon.json("session", "open", "--actor", "x", "--attach", "rules/shown@1=/srv/rules:read_only")
    for store, shown in (("rules/shown", pinned["id"]), (f"memories/{session.actor}", session.id)):
        finished = daemon.command("store", "delete", store, "--yes")
        assert (finished.code, finished.err.count("\n")) == (4, 1), finished
        assert f"{store} is attached in session {shown}" in finished.err
        assert f"engramfs session close {shown}" in finished.err
        daemon.ok("session", "close", shown)
        daemon.ok("store", "delete", store, "--yes")


# Surviving


def test_sessions_come_back_with_another_worker(daemon: Daemon) -> None:
    place = daemon.up(actor="ann")
    place.write("a", b"before")
    opened = daemon.json("session", "open", "--actor", "ben")
    before = daemon.json("session", "list")
    daemon.kill_worker()
    assert daemon.worker
    assert daemon.json("session", "list") == before
    daemon.inside.call("os.mkdir", "/mnt/later")
    daemon.ok("attach", opened["id"], "--root", "/mnt/later")
    daemon.inside.call("write", "/mnt/later/memories/user/b", b"after")
    daemon.barrier()
    assert daemon.log("memories/ben")[-1]["author"]["session"] == opened["id"]


def test_a_session_that_was_never_attached_is_open_and_not_gone(session: Session) -> None:
    assert session.show()["state"] == "open"
    assert session.id not in session.daemon.json("session", "close", "--gone")


def test_mounting_needs_a_privilege_and_says_so(session: Session) -> None:
    for command in (["attach", session.id, "--root", "/mnt"], ["run", "--", "true"]):
        words = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all", sys.executable, "-m", "engramfs"]
        finished = session.daemon.inside.run(*words, *command, environment=session.daemon.environment)
        assert (finished.code, finished.err.count("\n")) == (1, 1), finished
        assert "mounting for others needs root (CAP_SYS_ADMIN)" in finished.err
