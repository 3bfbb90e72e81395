"""`engramfs doctor` beside a daemon, and on a disk that is full."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from engramfs.daemon.run_directory import keeper_of

from ..faults.disk import MIB, Disk
from ..harness.daemon import Daemon, eventually
from ..harness.inside import Inside


def findings(daemon: Daemon) -> dict[str, list[dict[str, Any]]]:
    """By check."""
    finished = daemon.command("doctor", "--json")
    document = json.loads(finished.out)
    assert finished.code == (0 if document["healthy"] else 1)
    found: dict[str, list[dict[str, Any]]] = {}
    for finding in document["findings"]:
        found.setdefault(finding["check"], []).append(finding)
    return found


def test_a_daemon_that_serves_then_fails_then_loses_its_keeper(daemon: Daemon) -> None:
    place = daemon.up()
    healthy = findings(daemon)
    sound = healthy["daemon"] + healthy["lock"] + healthy["stale mounts"]
    assert [each["level"] for each in sound] == ["ok"] * 3
    assert f"worker pid {daemon.worker}" in healthy["daemon"][0]["found"]
    said = daemon.command("doctor")
    assert (said.code, said.out.splitlines()[-1]) == (0, "healthy")

    daemon.ok("store", "set", place.store, "--conflicts", "refuse")
    other = daemon.up(actor="other")
    place.write("file", b"base")
    descriptor = place.inside.call("os.open", place.path("file"), os.O_WRONLY | os.O_TRUNC)
    place.inside.call("os.pwrite", descriptor, b"mine", 0)
    other.write("file", b"theirs")
    with pytest.raises(OSError, match="Errno 116"):
        place.inside.call("os.close", descriptor)
    assert "refused to overwrite file" in findings(daemon)["failures"][0]["found"]

    before = daemon.kill_worker()
    eventually(lambda: daemon.worker != before)
    assert "restarted 1 times" in findings(daemon)["daemon"][0]["found"]

    keeper = keeper_of(daemon.run_directory)
    assert keeper is not None
    os.kill(keeper, signal.SIGKILL)
    eventually(lambda: keeper_of(daemon.run_directory) is None)
    [without] = findings(daemon)["daemon"]
    assert (without["level"], "without a keeper" in without["found"]) == ("problem", True)
    daemon.up(root=place.root)
    assert findings(daemon)["daemon"][0]["level"] != "problem"


def test_a_hub_that_was_unmounted_by_hand(daemon: Daemon) -> None:
    place = daemon.up()
    hub = f"{daemon.run_directory}/fs"
    daemon.inside.shell(f"umount -l {hub}")
    place.write("a", b"content")
    finding = findings(daemon)["daemon"][0]
    assert (finding["level"], finding["do"]) == ("problem", "engramfs down, then engramfs up")
    assert f"{hub} was unmounted" in finding["found"]
    refused = daemon.command("up", "--root", place.root)
    assert (refused.code, refused.err.count("\n")) == (6, 1)
    assert f"{hub} was unmounted while the daemon serves" in refused.err
    assert f"{hub} was unmounted while the daemon serves" in daemon.ok("status")
    daemon.ok("down")
    assert daemon.up(root=place.root).read("a") == b"content"
    assert "while the daemon serves" not in daemon.ok("status")
    daemon.inside.shell(f"mount -t tmpfs over {hub}")
    assert f"{hub} is covered by a mount of tmpfs" in daemon.ok("status")
    daemon.inside.shell(f"umount {hub}")
    assert findings(daemon)["daemon"][0]["level"] == "ok"


def test_what_a_daemon_that_was_killed_left(daemon: Daemon) -> None:
    place = daemon.up()
    worker, keeper = daemon.worker, keeper_of(daemon.run_directory)
    assert keeper is not None
    os.kill(keeper, signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    eventually(lambda: findings(daemon)["stale mounts"][0]["level"] == "problem")
    stale = findings(daemon)["stale mounts"][0]
    assert "engramfs up starts one and takes these off" in stale["do"]
    daemon.up(root=place.root)
    assert findings(daemon)["stale mounts"][0]["level"] == "ok"


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    inside = Inside()
    try:
        disk = Disk(inside, str(tmp_path / "image"), str(tmp_path / "disk"), size=32 * MIB)
        (tmp_path / "engramfs.toml").write_text('[journal]\nmax_bytes = "2MiB"\n')
        places = ("--state", f"{disk.point}/state", "--run", str(tmp_path / "run"))
        engramfs = (sys.executable, "-m", "engramfs", *places, "--config", str(tmp_path / "engramfs.toml"))
        assert inside.run(*engramfs, "store", "create", "contexts/a").code == 0
        healthy = inside.run(*engramfs, "doctor")
        assert healthy.code == 0, healthy
        assert "is on ext4" in healthy.out
        inside.shell(f"cat /dev/zero > {disk.point}/ballast || true")
        full = inside.run(*engramfs, "doctor", "--json")
        problems = [each for each in json.loads(full.out)["findings"] if each["level"] == "problem"]
        assert full.code == 1
        assert [(each["check"], each["do"].split(",")[0]) for each in problems] == [("space", "free some")]
        disk.unmount()
    finally:
        inside.close()
