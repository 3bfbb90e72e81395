"""Two sessions of one store: names that both make, contents recorded while the other has them open."""

import os

from ..harness.daemon import Daemon, Place


def pair(daemon: Daemon) -> tuple[Place, Place]:
    return daemon.up(actor="ann"), daemon.up(actor="ben")


def test_a_name_that_another_session_has_just_made_is_opened(daemon: Daemon) -> None:
    ann, ben = pair(daemon)
    script = f"for i in $(seq 40); do (echo a >>{ann.state}/$i) & (echo b >>{ben.state}/$i) & wait; done"
    assert daemon.inside.run("bash", "-c", script, timeout=60).err == ""
    assert all(sorted(ann.read(str(number)).split()) == [b"a", b"b"] for number in range(1, 41))


def test_a_write_over_what_another_recorded_since_the_open_is_flagged(daemon: Daemon) -> None:
    ann, ben = pair(daemon)
    flags = os.O_CREAT | os.O_WRONLY
    mine = daemon.inside.call("os.open", ann.path("file"), flags)
    theirs = daemon.inside.call("os.open", ben.path("file"), flags)
    for file, content in ((mine, b"one"), (theirs, b"two")):
        daemon.inside.call("os.write", file, content)
        daemon.inside.call("os.close", file)
    daemon.barrier()
    assert [version["flags"] for version in ann.log()] == [[], ["concurrent"]]
    assert ann.log()[-1]["overwrites"] == [1]


def test_a_close_after_another_session_removed_the_file_leaves_a_note(daemon: Daemon) -> None:
    ann, ben = pair(daemon)
    ann.write("file", b"one")
    file = daemon.inside.call("os.open", ann.path("file"), os.O_WRONLY)
    daemon.inside.call("os.write", file, b"two")
    daemon.inside.call("os.unlink", ben.path("file"))
    daemon.inside.call("os.close", file)
    daemon.barrier()
    assert b"file was closed after another author removed" in ann.read(".versions/status")


def test_a_file_that_was_made_for_reading_alone_is_recorded(daemon: Daemon) -> None:
    place = daemon.up()
    daemon.inside.call(
        "os.close", daemon.inside.call("os.open", place.path("lock"), os.O_CREAT | os.O_RDONLY)
    )
    daemon.barrier()
    assert place.changes() == [["created lock"]]


def test_a_refused_write_leaves_a_note(daemon: Daemon) -> None:
    place = daemon.up()
    daemon.ok("store", "set", place.store, "--max-file-size", "1KiB")
    finished = daemon.inside.run("dd", "if=/dev/zero", f"of={place.path('file')}", "bs=4096", "count=1")
    assert "File too large" in finished.err
    assert b"refused a write: a file may have 1 KiB" in place.read(".versions/status")


def test_a_path_that_no_program_could_name_is_not_made(daemon: Daemon) -> None:
    place = daemon.up()
    script = f"cd {place.state}; for i in $(seq 40); do mkdir {'d' * 200} && cd {'d' * 200} || exit 9; done"
    assert daemon.inside.run("bash", "-c", script).code == 9
    daemon.ok("export", place.store, str(daemon.directory / "exported"))


def test_truncating_without_writing_is_recorded(daemon: Daemon) -> None:
    place = daemon.up()
    place.write("file", b"content")
    daemon.barrier()
    daemon.inside.call(
        "os.close", daemon.inside.call("os.open", place.path("file"), os.O_RDONLY | os.O_TRUNC)
    )
    daemon.barrier()
    assert place.changes() == [["created file"], ["modified file"]]
    assert place.read("file") == b""
