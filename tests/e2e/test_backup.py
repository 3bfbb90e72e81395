"""Backups are taken and brought back while agents go on writing."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engramfs.history.repository import Repository
from engramfs.history.verify import verify

from ..harness.daemon import Daemon, Place


@contextmanager
def writers(place: Place, count: int = 2) -> Iterator[list[int]]:
    """Threads that write files of their own, over and over; how often each has. None may fail."""
    directory, stop = f"/proc/{place.inside.pid}/root{place.state}", threading.Event()
    written, failures = [0] * count, []

    def work(number: int) -> None:
        try:
            while not stop.is_set():
                written[number] += 1
                with open(f"{directory}/writer{number}", "w") as file:
                    file.write(str(written[number]))
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield written
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


def test_a_backup_has_what_was_acknowledged_and_a_store_of_it_comes_back_while_agents_write(
    daemon: Daemon,
) -> None:
    place = daemon.up(agent="a")
    other = daemon.up(agent="b")
    place.write("precious", b"before")
    other.write("file", b"of another")
    backup = str(daemon.directory / "backup")
    with writers(place) as written:
        before = list(written)
        daemon.ok("backup", backup)
        place.write("precious", b"spoiled")
        restored = daemon.json("restore-backup", backup, "--store", place.store)
        between = list(written)
        assert place.read("precious") == b"before"
        while any(now <= then + 5 for now, then in zip(written, between, strict=True)):
            pass
    daemon.barrier()
    [document] = restored
    assert (document["store"], document["new"]) == (place.store, False)
    assert document["version"]["via"] == "restore"
    assert document["version"]["message"].endswith(f"from the backup {backup}")
    for number, count in enumerate(written):
        assert place.read(f"writer{number}") == str(count).encode(), "what was written since goes on"
        saved = daemon.command(
            "--state", backup, "--run", f"{backup}-run", "show", f"{place.store}:writer{number}"
        )
        assert before[number] - 1 <= int(saved.out) <= count
    assert other.read("file") == b"of another"
    daemon.check_soundness()
    with Repository.open(backup) as repository:
        assert verify(repository).sound


def test_a_store_that_was_deleted_comes_back_with_its_history_while_agents_write(daemon: Daemon) -> None:
    place, lost = daemon.up(agent="a"), daemon.up(agent="b")
    for content in (b"one", b"two"):
        lost.write("file", content)
        daemon.barrier()
    log, backup = daemon.log(lost.store), str(daemon.directory / "backup")
    daemon.ok("backup", backup)
    daemon.end(lost)
    with writers(place):
        daemon.ok("store", "delete", lost.store, "--yes")
        assert daemon.command("show", f"{lost.store}:file").code == 3
        said = daemon.ok("restore-backup", backup, "--store", lost.store)
        assert said == f"restored  {lost.store}  with its history, as a new store\n"
        assert daemon.log(lost.store) == log
        again = daemon.up(agent="b")
        assert (again.read("file"), again.read(".versions/1/file")) == (b"two", b"one")
        again.write("file", b"three")
    daemon.barrier()
    assert [version["number"] for version in daemon.log(lost.store)] == [1, 2, 3]


def test_the_whole_state_is_not_replaced_under_a_daemon_and_is_once_it_is_down(daemon: Daemon) -> None:
    place = daemon.up()
    place.write("file", b"saved")
    backup = str(daemon.directory / "backup")
    daemon.ok("backup", backup)
    place.write("file", b"later")
    refused = daemon.command("restore-backup", backup, "--over")
    assert refused.code == 4
    assert "engramfs down stops it" in refused.err
    assert "--store NAME" in refused.err
    daemon.down()
    refused = daemon.command("restore-backup", backup)
    assert (refused.code, "--over moves them aside" in refused.err) == (4, True)
    done = daemon.json("restore-backup", backup, "--over")
    assert os.path.dirname(done["aside"]) == daemon.state
    assert daemon.ok("show", f"{place.store}:file") == "saved"
    assert (
        daemon.ok("--state", done["aside"], "--run", f"{backup}-run", "show", f"{place.store}:file")
        == "later"
    )
    again = daemon.up()
    assert again.read("file") == b"saved"


@pytest.mark.parametrize("place_is", ["missing", "empty"])
def test_a_backup_fills_an_empty_place(daemon: Daemon, tmp_path: Path, place_is: str) -> None:
    place = daemon.up()
    place.write("file", b"saved")
    daemon.ok("backup", str(tmp_path / "backup"))
    state = tmp_path / "new"
    if place_is == "empty":
        state.mkdir()
    elsewhere = ("--state", str(state), "--run", str(tmp_path / "new run"))
    daemon.ok(*elsewhere, "restore-backup", str(tmp_path / "backup"))
    assert daemon.ok(*elsewhere, "show", f"{place.store}:file") == "saved"
    taken = daemon.command(*elsewhere, "restore-backup", str(tmp_path / "backup"), "--store", "contexts/none")
    assert taken.code == 3


def test_an_import_while_agents_write_leaves_the_counts_right(daemon: Daemon, tmp_path: Path) -> None:
    place = daemon.up()
    source = tmp_path / "source"
    source.mkdir()
    for number in range(3):
        (source / "imported").write_bytes(os.urandom(1000 * (number + 1)))
        with writers(place):
            for _ in range(3):
                daemon.ok("import", place.store, str(source))
        daemon.barrier()
        assert place.read("imported") == (source / "imported").read_bytes()
        daemon.check_soundness()


def test_a_backup_is_not_put_into_a_store_that_it_saves_and_an_export_may_be(daemon: Daemon) -> None:
    place = daemon.up()
    place.write("file", b"content")
    inside = f"/proc/{place.inside.pid}/root{place.state}"
    place.inside.call("os.mkdir", place.path("d"))
    for where in ("backup", "d/backup"):
        refused = daemon.command("backup", f"{inside}/{where}")
        assert (refused.code, f"in a mount of the store {place.store}" in refused.err) == (2, True), refused
    daemon.ok("export", place.store, f"{inside}/copy")
    assert place.read("copy/file") == b"content"
