"""`engramfs run`: a command with a session in a mount namespace of its own, as if it were run without."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from engramfs.errors import NoDaemon, UsageError

from ..harness.daemon import Daemon, eventually
from ..harness.inside import Inside

Words = tuple[str, ...]


def run(daemon: Daemon, *words: str, actor: str = "runner") -> str:
    return daemon.ok("run", "--actor", actor, "--", *words)


def sessions(daemon: Daemon) -> list[str]:
    return [each["id"] for each in daemon.client.call("session.list")]


def test_a_command_has_its_actors_memory_and_leaves_no_session(served: Daemon) -> None:
    before = sessions(served)
    run(served, "sh", "-c", "echo kept > /memories/user/note; ls /memories /mnt/memory", actor="ann")
    assert run(served, "cat", "/memories/user/note", actor="ann") == "kept\n"
    assert served.log("memories/ann")[-1]["author"]["actor"] == "ann"
    assert sessions(served) == before
    assert served.inside.shell("ls -A /memories 2>/dev/null || true") == "", "nothing is mounted outside"


def test_two_actors_side_by_side_each_have_their_own(served: Daemon, tmp_path: Path) -> None:
    script = (
        "echo $0 > /memories/user/who; touch $1/$0; "
        "until [ -e $1/ben ] && [ -e $1/cid ]; do sleep 0.01; done; cat /memories/user/who; ls /memories"
    )
    tmp_path.chmod(0o777)
    pids = {
        actor: served.inside.call(
            "start",
            [
                sys.executable,
                "-m",
                "engramfs",
                "run",
                "--actor",
                actor,
                "--",
                "sh",
                "-c",
                script,
                actor,
                str(tmp_path),
            ],
            None,
            served.environment,
            str(tmp_path / f"{actor}.out"),
        )
        for actor in ("ben", "cid")
    }
    for actor, pid in pids.items():
        assert served.inside.call("ended", pid, 20) == 0
        assert (tmp_path / f"{actor}.out").read_text() == f"{actor}\nuser\n"


@pytest.mark.parametrize("user", [0, 12345])
def test_any_uid_of_the_sandbox_can_write_and_reads_a_usable_owner(served: Daemon, user: int) -> None:
    script = (
        f"cd /memories/user && echo x > f{user} && echo y >> f{user} && mkdir d{user} && stat -c %u f{user}"
    )
    words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "sh", "-c", script]
    assert run(served, *words, actor="uids") == "0\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -TERM $$"), 128 + signal.SIGTERM),
        (("/missing",), 127),
        (("missing-command",), 127),
        (("/etc",), 126),
    ],
)
def test_the_exit_code_is_that_of_the_command(served: Daemon, words: Words, code: int) -> None:
    before = sessions(served)
    finished = served.command("run", "--", *words)
    assert finished.code == code
    assert finished.err.count("\n") == (1 if code in (126, 127) else 0)
    assert sessions(served) == before


def test_input_output_and_arguments_go_through(served: Daemon) -> None:
    assert run(served, "sh", "-c", 'printf "%s|" "$@"; cat; yes | head -1', "sh", "--json", "-h", "") == (
        "--json|-h||y\n"
    ), "and SIGPIPE ends `yes`, as it would outside"


def started(served: Daemon, output: Path, *words: str) -> tuple[Inside, int]:
    command = [sys.executable, "-m", "engramfs", "run", "--actor", "signalled", "--", *words]
    pid = served.inside.call("start", command, None, served.environment, str(output))
    eventually(lambda: "ready" in output.read_text())
    return served.inside, pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_on(served: Daemon, tmp_path: Path, number: signal.Signals) -> None:
    script = f"trap 'echo caught; exit 3' {number.name[3:]}; echo ready; while :; do sleep 0.01; done"
    inside, pid = started(served, tmp_path / "out", "sh", "-c", script)
    inside.call("os.kill", pid, number)
    assert inside.call("ended", pid, 10) == 3
    assert (tmp_path / "out").read_text() == "ready\ncaught\n"


def test_a_run_that_is_killed_leaves_a_session_that_is_gone_once_its_command_is(
    served: Daemon, tmp_path: Path
) -> None:
    before = sessions(served)
    inside, pid = started(served, tmp_path / "out", "sh", "-c", "echo ready; echo $$; exec sleep 30")
    command = int((tmp_path / "out").read_text().split()[1])
    (session,) = set(sessions(served)) - set(before)
    inside.call("os.kill", pid, signal.SIGKILL)
    inside.call("ended", pid, 10)
    assert served.client.call("session.show", id=session)["state"] == "attached", "its command goes on"
    os.kill(command, signal.SIGKILL)
    eventually(lambda: served.client.call("session.show", id=session)["state"] == "gone")
    served.ok("session", "close", "--gone")
    assert sessions(served) == before


def test_the_hub_and_the_daemons_directories_are_out_of_sight(served: Daemon) -> None:
    script = f"ls -A {served.run_directory} {served.state}; grep -c fuse.engramfs /proc/self/mountinfo"
    listed = run(served, "sh", "-c", script).splitlines()
    assert listed == [f"{served.run_directory}:", "", f"{served.state}:", "6"], "its own mounts alone"
    assert served.ok("session", "list"), "outside they are what they were"


def test_a_command_started_in_another_actors_memory_is_not_in_it(served: Daemon) -> None:
    """`up` has attached one on the host, and the shell of the host stands in it."""
    first = served.up(agent="stood-in", actor="first")
    look = f"pwd; ls -A {first.root}/memories"
    command = [sys.executable, "-m", "engramfs", "run", "--actor", "other", "--", "sh", "-c", look]
    code, out, _ = served.inside.call("run", command, 30, None, first.user, served.environment)
    assert (code, out) == (0, b"/\n")


def test_a_command_started_where_nothing_is_in_its_sandbox_begins_at_the_root(daemon: Daemon) -> None:
    """In a place that is covered for the command, in one that is not there for it, and in a removed one."""
    daemon.up(actor="first", root="/")
    daemon.inside.call("os.mkdir", "/memories/user/mine")
    daemon.inside.shell("mkdir -p /dev/shm/removed")
    removing = 'cd "$0" && { [ "$0" != /dev/shm/removed ] || rmdir "$0"; } && exec "$@"'
    engramfs = [sys.executable, "-m", "engramfs", "run", "--actor", "other", "--over", "--", "pwd"]
    for directory, begun in {
        "/memories/user": "/memories/user",
        "/memories/user/mine": "/",
        "/dev/shm/removed": "/",
    }.items():
        finished = daemon.inside.run(
            *("sh", "-c", removing, directory, *engramfs), environment=daemon.environment
        )
        assert (finished.code, finished.out) == (0, f"{begun}\n"), finished


def test_files_at_the_mount_points_are_covered_for_the_command_only_when_told(daemon: Daemon) -> None:
    daemon.up()
    daemon.inside.shell("mkdir -p /memories; mount -t tmpfs none /memories; echo mine > /memories/file")
    finished = daemon.command("run", "--", "true")
    assert (finished.code, finished.err.count("\n")) == (4, 1), finished
    assert "/memories exists and is not empty" in finished.err
    assert daemon.ok("run", "--over", "--", "ls", "/memories") == "user\n"
    assert daemon.inside.call("read", "/memories/file") == b"mine\n"


UNCLEAR = {  # agent → its configuration, what is asked for, what is said
    "actor": ('scoping.memory = "actor"', [], "name the actor with --actor"),
    "multi": (
        'scoping.memory = "actor"\ntenancy = "multi"',
        ["--actor", "a"],
        "name the tenant with --tenant",
    ),
    "tenant": ('scoping.memory = "tenant"', ["--actor", "a"], "name the tenant with --tenant"),
    "preset": ('preset = "multi-tenant"', ["--actor", "a"], "name the tenant with --tenant"),
    "single": (
        'preset = "private-assistant"',
        ["--actor", "a", "--tenant", "t"],
        "leave --tenant out",
    ),
    "slash": ('scoping.memory = "actor"', ["--actor", "a/b"], "actor id 'a/b' is not allowed"),
    "dots": ('scoping.memory = "actor"', ["--actor", ".."], "actor id '..' is not allowed"),
    "long": ('scoping.memory = "actor"', ["--actor", "x" * 129], "is not allowed"),
}


def test_an_unclear_owner_runs_nothing_and_makes_nothing(daemon: Daemon) -> None:
    agents = "".join(f"[agents.{name}]\n{configured}\n" for name, (configured, _, _) in UNCLEAR.items())
    daemon.configure(f"[agents.default]\n{agents}")
    daemon.up(agent="default")
    stores = daemon.ok("store", "list")
    for agent, (_, options, said) in UNCLEAR.items():
        finished = daemon.command("run", "--agent", agent, *options, "--", "echo", "ran")
        assert (finished.code, finished.out, finished.err.count("\n")) == (UsageError.exit_code, "", 1), agent
        assert said in finished.err
    assert len(sessions(daemon)) == 1
    assert daemon.ok("store", "list") == stores


def test_without_a_daemon_it_says_so(tmp_path: Path) -> None:
    inside = Inside()
    finished = inside.run(
        *(sys.executable, "-m", "engramfs", "--run", str(tmp_path), "run", "--", "echo", "ran"),
        ENGRAMFS_STATE=str(tmp_path / "state"),
    )
    inside.close()
    assert (finished.code, finished.out) == (NoDaemon.exit_code, "")
    assert "engramfs up starts one" in finished.err


def test_a_run_costs_little(served: Daemon) -> None:
    """150 ms over `unshare -m true` are allowed, which the bench measures. This machine may be busy."""
    taken = []
    for _ in range(5):
        begun = time.perf_counter()
        run(served, "true")
        taken.append(time.perf_counter() - begun)
    assert min(taken) < 0.4
