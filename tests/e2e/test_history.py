"""From a write in a mount to a version that can be looked at and brought back."""

import hashlib

import pytest

from ..harness.daemon import Daemon, Place


def test_echo_is_one_version_that_the_log_shows_versions_holds_and_restore_brings_back(place: Place) -> None:
    place.inside.shell(f"echo x > {place.path('a')}")
    place.daemon.barrier()
    [version] = place.log()
    assert version["number"] == 1
    assert version["author"] == {
        "kind": "agent",
        "agent": place.agent,
        "actor": place.agent.replace("agent", "actor"),
        "tenant": None,
        "session": place.session,
    }
    assert [(change["op"], change["path"]) for change in version["changes"]] == [("created", "a")]
    assert version["changes"][0]["sha256"] == hashlib.sha256(b"x\n").hexdigest()
    assert place.read(".versions/1/a") == b"x\n"
    assert b"1 change" in place.read(".versions/log")
    place.inside.shell(f"rm {place.path('a')}")
    place.daemon.ok("restore", f"{place.store}@1")
    assert place.read("a") == b"x\n"
    assert place.changes() == [["created a"], ["deleted a"], ["created a"]]
    assert place.log()[-1]["via"] == "restore"


def test_the_log_sees_what_was_closed_a_moment_ago(place: Place) -> None:
    for number in range(5):
        place.write("file", b"%d" % number)
        assert len(place.log()) == number + 1
        assert place.daemon.ok("show", f"{place.store}:file") == str(number)


def test_a_file_is_restored_and_the_rest_stays(place: Place) -> None:
    place.write("a", b"one")
    place.write("b", b"one")
    place.daemon.barrier()
    place.write("a", b"two")
    place.write("b", b"two")
    place.daemon.ok("restore", f"{place.store}@1", "a")
    assert (place.read("a"), place.read("b")) == (b"one", b"two")


def test_restoring_what_is_open_and_dirty_says_so(place: Place) -> None:
    place.write("file", b"one")
    place.daemon.barrier()
    place.write("file", b"two")
    place.daemon.barrier()
    descriptor = place.inside.call("os.open", place.path("file"), 2)
    place.inside.call("os.pwrite", descriptor, b"TWO", 0)
    # Not by a command that is started inside: a fork that closes the descriptor would record the content.
    place.daemon.client.call("restore", store=place.store, number=1, path="file")
    place.inside.call("os.close", descriptor)
    assert place.read("file") == b"TWO"
    place.daemon.barrier()
    assert place.log()[-1]["flags"] == ["concurrent"]
    assert "version 4 overwrote version 3" in place.read(".versions/status").decode()


def test_show_diff_and_export_agree_with_the_mount(place: Place) -> None:
    place.write("file", b"one\ntwo\n")
    place.daemon.barrier()
    place.write("file", b"one\n2\n")
    assert place.daemon.ok("show", f"{place.store}@1:file") == "one\ntwo\n"
    diff = place.daemon.ok("diff", f"{place.store}@1", place.store)
    assert "-two" in diff
    assert "+2" in diff
    directory = str(place.daemon.directory / f"{place.agent}-export")
    place.daemon.ok("export", place.store, directory)
    with open(f"{directory}/file", "rb") as file:
        assert file.read() == place.read("file")


def test_stat_reads_where_a_file_comes_from(place: Place) -> None:
    place.write("file", b"content")
    place.daemon.barrier()
    shown = place.daemon.json("stat", place.path("file"))
    entry = shown[0] if isinstance(shown, list) else shown
    assert entry["store"] == place.store
    assert entry["sha256"] == hashlib.sha256(b"content").hexdigest()


def test_an_import_is_one_version_and_the_mount_shows_it(place: Place) -> None:
    source = place.daemon.directory / f"{place.agent}-source"
    (source / "sub").mkdir(parents=True)
    (source / "sub/file").write_bytes(b"imported")
    place.write("old", b"")
    place.daemon.ok("import", place.store, str(source), "-m", "from elsewhere")
    assert place.names() == ["sub"]
    assert place.read("sub/file") == b"imported"
    assert place.log()[-1]["message"] == "from elsewhere"
    place.write("sub/file", b"changed")
    assert place.changes()[-1] == ["modified sub/file"]


def test_a_backup_of_a_running_daemon_is_sound(daemon: Daemon) -> None:
    place = daemon.up()
    place.write("file", b"content")
    backup, run = str(daemon.directory / "backup"), str(daemon.directory / "other run")
    daemon.ok("backup", backup)
    there = ("--state", backup, "--run", run)
    verified = daemon.command(*there, "verify")
    assert verified.code == 0, verified
    assert daemon.command(*there, "show", f"{place.store}:file").out == "content"


@pytest.mark.parametrize("conflicts", ["keep", "refuse"])
def test_two_sessions_that_save_one_file_leave_a_record(place: Place, conflicts: str) -> None:
    place.daemon.ok("store", "set", place.store, "--conflicts", conflicts)
    other = place.daemon.up(agent=place.agent, actor="other")
    place.write("file", b"base")
    descriptor = place.inside.call("os.open", place.path("file"), 1 | 512)
    place.inside.call("os.pwrite", descriptor, b"mine", 0)
    other.write("file", b"theirs")
    if conflicts == "keep":
        place.inside.call("os.close", descriptor)
        assert place.log()[-1]["flags"] == ["concurrent"]
        expected = b"mine"
    else:
        with pytest.raises(OSError, match="Errno 116"):
            place.inside.call("os.close", descriptor)
        expected = b"theirs"
    place.daemon.barrier()
    assert place.read("file") == expected
    said = place.read(".versions/status").decode()
    assert ("refused to overwrite file" if conflicts == "refuse" else "(concurrent)") in said
    assert any(failure["store"] == place.store for failure in place.daemon.json("status")["failures"])
    place.daemon.end(other)
