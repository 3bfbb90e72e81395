"""What bad input and a lacking machine get: one line, what and why and what to do, and an exit code."""

import os
import time
from pathlib import Path

import pytest

from ..harness.daemon import ROOTS, Daemon


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["up", "--root", "/missing"], 2, "/missing"),
        (["up", "--root", "/etc/passwd"], 2, "/etc/passwd"),
        (["up", "--actor", ".."], 2, "actor id '..'"),
        (["up", "--agent", "a b"], 2, "agent id"),
        (["status"], 6, "engramfs up"),
        (["session", "list"], 6, "engramfs up"),
    ],
)
def test_errors_are_one_line_with_an_exit_code(
    daemon: Daemon, arguments: list[str], code: int, said: str
) -> None:
    finished = daemon.command(*arguments)
    assert (finished.code, finished.out) == (code, ""), finished
    assert finished.err.startswith("engramfs: ")
    assert finished.err.count("\n") == 1
    assert said in finished.err
    assert not os.path.exists(daemon.run_directory) or os.listdir(daemon.run_directory) == []


def test_another_state_than_the_daemon_serves_is_refused_by_every_command(
    daemon: Daemon, tmp_path: Path
) -> None:
    place = daemon.up()
    other = str(tmp_path / "other")
    for arguments in (
        ["up", "--root", place.root],
        ["down"],
        ["status"],
        ["store", "list"],
        ["store", "create", "contexts/a"],
        ["session", "open"],
        ["attach", place.session, "--root", place.root],
        ["run", "--", "true"],
    ):
        finished = daemon.command("--state", other, *arguments)
        assert (finished.code, finished.out, finished.err.count("\n")) == (4, "", 1), finished
        assert f"serves the state {daemon.state} and not {other}" in finished.err
    assert not os.path.exists(other)
    os.symlink(daemon.state, other)
    assert "memory/default/state" in daemon.ok("--state", other, "store", "list")


@pytest.mark.parametrize("words", [["import", "contexts/a"], ["deploy", "default"]])
def test_what_cannot_be_imported_is_named_as_the_person_did(
    daemon: Daemon, tmp_path: Path, words: list[str]
) -> None:
    daemon.up()
    daemon.ok("store", "create", "contexts/a")
    directory = tmp_path / "given"
    (directory / "skills").mkdir(parents=True)
    os.mkfifo(directory / "skills" / "pipe")
    finished = daemon.command(*words, str(directory))
    assert (finished.code, finished.err.count("\n")) == (2, 1), finished
    assert f"{directory}/skills/pipe" in finished.err
    assert "/proc/" not in finished.err


def test_an_unknown_key_of_the_configuration_names_the_nearest(daemon: Daemon) -> None:
    daemon.configure("[batch]\nquite = '1s'\n")
    daemon.inside.call("os.mkdir", f"{ROOTS}/root")
    finished = daemon.command("up", "--root", f"{ROOTS}/root")
    assert finished.code == 2
    assert "quite" in finished.err
    assert "quiet" in finished.err
    daemon.configure("")


def test_without_a_device_it_is_said_within_a_second(daemon: Daemon) -> None:
    daemon.inside.shell(f"mkdir {ROOTS}/root; mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3")
    started = time.monotonic()
    finished = daemon.command("up", "--root", f"{ROOTS}/root")
    assert finished.code == 1
    assert finished.err.count("\n") == 1
    assert "/dev/fuse" in finished.err
    assert time.monotonic() - started < 3  # a second when nothing else runs


def test_without_the_privilege_to_mount_it_is_said_and_nothing_is_started(daemon: Daemon) -> None:
    daemon.inside.call("os.mkdir", f"{ROOTS}/root")
    dropping = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    finished = daemon.command("up", "--root", f"{ROOTS}/root", through=dropping)
    assert finished.code == 1, finished
    assert finished.err.count("\n") == 1
    assert "CAP_SYS_ADMIN" in finished.err
    assert not daemon.client.is_running()
