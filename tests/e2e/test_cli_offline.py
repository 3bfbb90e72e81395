"""The commands without a daemon, as real processes: what they do, what they refuse, how they end."""

import hashlib
import json
import os
import signal
import subprocess
import sys

import msgspec
import pytest

from engramfs.history import catalog
from engramfs.history.repository import Repository
from engramfs.model.author import Author
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.operation import Link, Update
from engramfs.storage.journal import Journal, Record

from ..harness.command import Command

# Stores


def test_a_store_is_created_listed_described_changed_and_deleted(engramfs: Command) -> None:
    created = engramfs.json(
        "store", "create", "contexts/a", "--description", "ü", "--quota", "1GiB", "--max-file-size", "4096"
    )
    created_time = created.pop("created")
    assert created_time.endswith("Z")
    assert created == {
        "name": "contexts/a",
        "kind": "context",
        "description": "ü",
        "version": 0,
        "oldest": 1,
        "files": 0,
        "used": 0,
        "max_file_size": 4096,
        "quota": 1 << 30,
        "conflicts": "keep",
        "secrets": "flag",
        "keep_days": 0,
        "keep_versions": 0,
        "archived": False,
    }
    changed = engramfs.json("store", "set", "contexts/a", "--conflicts", "refuse", "--quota", "5MiB")
    assert (changed["conflicts"], changed["quota"], changed["description"]) == ("refuse", 5 << 20, "ü")
    assert engramfs.json("store", "show", "contexts/a") == changed
    assert engramfs.json("store", "list") == [changed]
    assert engramfs.json("store", "list", "memory/") == []
    assert "contexts/a" in engramfs.ok("store", "list")
    engramfs.ok("store", "delete", "contexts/a", "--yes")
    assert engramfs.json("store", "list") == []


def test_limits_of_new_stores_come_from_the_configuration(engramfs: Command) -> None:
    engramfs.write("engramfs.toml", b'[limits]\nquota = "1MiB"\n')
    created = engramfs.json("store", "create", "contexts/a", "--config", "engramfs.toml")
    assert created["quota"] == 1 << 20


def test_deleting_needs_to_be_meant(engramfs: Command) -> None:
    engramfs.ok("store", "create", "contexts/a")
    assert "--yes" in engramfs.refused(2, "store", "delete", "contexts/a")
    assert len(engramfs.json("store", "list")) == 1


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "contexts/../x",
        "/etc",
        "contexts//a",
        "",
        ".",
        "contexts/a\nb",
        "contexts/\x1b[31m",
        "x" * 256,
    ],
)
def test_a_bad_store_name_is_refused_before_anything_is_created(engramfs: Command, name: str) -> None:
    for command in (["store", "create", name], ["import", name, "."], ["store", "delete", name, "--yes"]):
        assert "store name" in engramfs.refused(2, *command)
    assert os.listdir(engramfs.directory) == []


def test_a_store_that_exists_or_would_nest_is_a_conflict(engramfs: Command) -> None:
    engramfs.ok("store", "create", "contexts/a")
    assert "exists" in engramfs.refused(4, "store", "create", "contexts/a")
    assert "would lie in" in engramfs.refused(4, "store", "create", "contexts/a/b")


def test_an_archived_store_takes_no_version_until_it_is_opened_again(handbook: Command) -> None:
    handbook.ok("store", "archive", "contexts/handbook")
    assert "--no-archived" in handbook.refused(5, "import", "contexts/handbook", "tree")
    assert "--no-archived" in handbook.refused(5, "restore", "contexts/handbook@1")
    handbook.ok("log", "contexts/handbook")
    handbook.ok("store", "set", "contexts/handbook", "--no-archived")
    handbook.ok("restore", "contexts/handbook@1")


# History


def test_the_log_as_json_has_the_documented_shape(handbook: Command) -> None:
    newest, first = handbook.json("log", "contexts/handbook")
    assert (newest["number"], first["number"]) == (2, 1)
    assert set(first) == {"number", "time", "author", "via", "message", "flags", "digest", "changes"}
    assert set(first["author"]) == {"kind", "agent", "actor", "tenant", "session"}
    assert first["author"]["kind"] == "person"
    assert (first["via"], first["message"], first["flags"]) == ("import", "the beginning", [])
    change = first["changes"][0]
    assert (change["op"], change["path"], change["size"]) == ("created", "notes.md", 8)
    assert set(change) == {"op", "path", "from_path", "sha256", "size"}
    ops = {change["path"]: change["op"] for change in newest["changes"]}
    assert ops["notes.md"] == "modified"
    assert ops["new.md"] == "created"
    assert ops["old/a"] == "deleted"


def test_the_log_for_people_is_a_line_for_each_version(handbook: Command) -> None:
    newest, first = handbook.ok("log", "contexts/handbook").splitlines()
    assert newest.startswith("@2  ")
    assert "the beginning" in first
    assert "created notes.md" in first
    assert handbook.ok("log", "contexts/handbook", "-n", "1").splitlines() == [newest]
    assert handbook.ok("log", "contexts/handbook@1").splitlines() == [first]
    (touching,) = handbook.ok("log", "contexts/handbook", "new.md").splitlines()
    assert touching.startswith("@2  ")
    assert "notes.md" not in touching


def test_show_prints_versions_files_and_directories(handbook: Command) -> None:
    assert "contexts/handbook@2" in handbook.ok("show", "contexts/handbook")
    assert handbook.ok("show", "contexts/handbook@1:notes.md") == "one\ntwo\n"
    assert handbook.ok("show", "contexts/handbook:notes.md") == "one\n2\n"
    assert "old" in handbook.ok("show", "contexts/handbook@1:")
    assert handbook.json("show", "contexts/handbook@1")["store"] == "contexts/handbook"
    assert handbook.json("show", "contexts/handbook:new.md")["content"] == "new\n"
    assert [e["path"] for e in handbook.json("show", "contexts/handbook:")["entries"]] == [
        "new.md",
        "notes.md",
    ]


def test_diff_compares_versions(handbook: Command) -> None:
    diff = handbook.ok("diff", "contexts/handbook")
    assert "-two\n+2\n" in diff
    assert "deleted file old/a" in diff
    assert handbook.ok("diff", "contexts/handbook@1") == diff
    assert handbook.ok("diff", "contexts/handbook@1", "contexts/handbook@2") == diff
    one = handbook.ok("diff", "contexts/handbook@1", "contexts/handbook@2", "notes.md")
    assert handbook.ok("diff", "contexts/handbook@1", "notes.md") == one
    assert "old/a" not in one
    assert handbook.ok("diff", "contexts/handbook@2", "contexts/handbook") == ""
    backwards = handbook.ok("diff", "contexts/handbook@2", "contexts/handbook@1", "notes.md")
    assert "-2\n+two\n" in backwards
    ops = {each["path"]: each["op"] for each in handbook.json("diff", "contexts/handbook")}
    assert ops == {"new.md": "created", "notes.md": "modified", "old": "deleted", "old/a": "deleted"}


def test_restore_brings_a_file_or_everything_back_as_a_new_version(handbook: Command) -> None:
    assert handbook.json("restore", "contexts/handbook@1", "old")["number"] == 3
    assert handbook.ok("show", "contexts/handbook:old/a") == "a"
    assert handbook.ok("show", "contexts/handbook:new.md") == "new\n"
    handbook.ok("restore", "contexts/handbook@1")
    assert handbook.json("diff", "contexts/handbook@1", "contexts/handbook") == []
    assert handbook.json("restore", "contexts/handbook@1") is None
    assert handbook.json("log", "contexts/handbook")[0]["number"] == 4


def test_import_of_what_is_there_makes_no_version(handbook: Command) -> None:
    assert "nothing changed" in handbook.ok("import", "contexts/handbook", "tree")
    assert handbook.json("import", "contexts/handbook", "tree") is None
    assert len(handbook.json("log", "contexts/handbook")) == 2


def test_export_writes_the_tree_of_a_version(handbook: Command) -> None:
    handbook.ok("export", "contexts/handbook@1", "out")
    assert (handbook.directory / "out/notes.md").read_bytes() == b"one\ntwo\n"
    assert (handbook.directory / "out/old/a").read_bytes() == b"a"
    exported = handbook.json("export", "contexts/handbook", "head")
    assert (exported["version"], exported["files"]) == (2, 2)
    assert "not empty" in handbook.refused(4, "export", "contexts/handbook", "head")


def test_a_backup_is_a_state_of_its_own(handbook: Command) -> None:
    handbook.ok("backup", "copy")
    assert handbook.json("--state", "copy", "log", "contexts/handbook") == handbook.json(
        "log", "contexts/handbook"
    )
    handbook.ok("--state", "copy", "verify")


def test_verify_finds_nothing_wrong(handbook: Command) -> None:
    handbook.ok("verify")
    report = handbook.json("verify", "contexts/handbook")
    assert (report["sound"], report["stores"], report["versions"], report["findings"]) == (True, 1, 2, [])
    assert "no store contexts/x" in handbook.refused(3, "verify", "contexts/x")


def test_verify_exits_1_and_names_the_store_of_a_damaged_content(engramfs: Command) -> None:
    engramfs.ok("store", "create", "contexts/a")
    marker = os.urandom(64).hex().encode()[:100]
    engramfs.write("tree/file", marker)
    engramfs.ok("import", "contexts/a", "tree")
    data = engramfs.state / "log" / "data.mdb"
    content = data.read_bytes()
    assert content.count(marker) >= 1
    data.write_bytes(content.replace(marker, b"X" + marker[1:]))
    finished = engramfs("verify", "--json")
    assert finished.code == 1
    report = json.loads(finished.out)
    assert report["sound"] is False
    assert {finding["store"] for finding in report["findings"]} == {"contexts/a"}
    assert "damaged" in engramfs("verify", "contexts/a").out


# Names


def test_names_that_are_not_utf8_or_hold_escapes_reach_json_whole_and_people_escaped(
    engramfs: Command,
) -> None:
    engramfs.ok("store", "create", "contexts/a")
    name = b"e\x1b[31m\xff\n"
    os.makedirs(os.fsencode(engramfs.directory) + b"/tree")
    with open(os.fsencode(engramfs.directory) + b"/tree/" + name, "wb") as file:
        file.write(b"content")
    engramfs.ok("import", "contexts/a", "tree")
    (version,) = engramfs.json("log", "contexts/a")
    assert os.fsencode(version["changes"][0]["path"]) == name
    (line,) = engramfs.ok("log", "contexts/a").splitlines()
    assert r"e\x1b[31m\xff\n" in line
    assert engramfs.ok("show", "contexts/a:" + os.fsdecode(name)) == "content"
    engramfs.ok("restore", "contexts/a@1", os.fsdecode(name))


def test_stat_reads_the_marks_of_a_mounted_file(engramfs: Command) -> None:
    """A file that carries the marks stands in for a mounted one; tests of the filesystem read real ones."""
    engramfs.write("file", b"x")
    for mark, value in (("store", "memory/digest/state"), ("version", "3"), ("access", "read_write")):
        os.setxattr(engramfs.directory / "file", f"user.engramfs.{mark}", value.encode())
    (document,) = engramfs.json("stat", "file")
    assert document == {
        "path": "file",
        "store": "memory/digest/state",
        "version": "3",
        "sha256": None,
        "access": "read_write",
        "author": None,
        "session": None,
    }
    assert "memory/digest/state" in engramfs.ok("stat", "file")


# How commands end


@pytest.mark.parametrize(
    ("code", "arguments", "part"),
    [
        (2, ["lgo"], "did you mean log?"),
        (2, ["log"], "missing argument"),
        (2, ["log", "contexts/handbook", "-n", "0"], "--help shows how"),
        (2, ["store", "create", "contexts/b", "--quota", "many"], "is not a size"),
        (2, ["restore", "contexts/handbook"], "contexts/handbook@N"),
        (2, ["import", "contexts/handbook", "absent"], "No such file or directory"),
        (2, ["log", "contexts/handbook@x"], "a version is a number"),
        (3, ["log", "contexts/absent"], "engramfs store list"),
        (3, ["log", "contexts/handbook", "nope"], "no version of contexts/handbook has nope"),
        (3, ["log", "contexts/handbook@1", "new.md"], "no version up to 1 of contexts/handbook has new.md"),
        (3, ["show", "contexts/handbook@9"], "its newest is 2"),
        (3, ["log", "contexts/handbook@9"], "its newest is 2"),
        (3, ["show", "contexts/handbook:absent"], "engramfs show contexts/handbook:"),
        (3, ["diff", "contexts/handbook@1", "absent"], "there is no absent"),
        (3, ["restore", "contexts/handbook@1", "absent"], "engramfs log"),
        (3, ["stat", "tree/notes.md"], "not in a mount"),
        (3, ["stat", "absent"], "does not exist"),
        (6, ["status"], "engramfs up starts one"),
    ],
)
def test_an_error_is_one_line_and_has_its_exit_code(
    handbook: Command, code: int, arguments: list[str], part: str
) -> None:
    assert part in handbook.refused(code, *arguments)
    as_json = handbook(*arguments, "--json")
    assert as_json.code == code
    error = json.loads(as_json.err)
    assert set(error) == {"code", "message"}
    assert part in error["message"]


def test_without_any_state_there_are_no_stores_and_reading_creates_nothing(engramfs: Command) -> None:
    assert engramfs.json("store", "list") == []
    assert "holds no stores yet" in engramfs.refused(3, "log", "contexts/a")
    engramfs.refused(3, "verify")
    assert os.listdir(engramfs.directory) == []


def test_a_configuration_error_names_the_file_and_the_nearest_key(engramfs: Command) -> None:
    engramfs.write("engramfs.toml", b'[batch]\nquite = "1s"\n')
    message = engramfs.refused(2, "store", "create", "contexts/a", "--config", "engramfs.toml")
    assert "engramfs.toml: unknown key 'quite' in [batch]; did you mean quiet?" in message
    message = engramfs.refused(2, "up", "--root", ".", "--config", "engramfs.toml")
    assert "did you mean quiet?" in message
    assert not engramfs.state.exists()


@pytest.mark.parametrize("where", ["before", "after"])
def test_global_options_are_accepted_before_and_after_the_command(engramfs: Command, where: str) -> None:
    options, command = ["--state", "elsewhere", "--json"], ["store", "create", "contexts/a"]
    arguments = [*options, *command] if where == "before" else [*command, *options]
    assert json.loads(engramfs(*arguments).out)["name"] == "contexts/a"
    assert (engramfs.directory / "elsewhere").is_dir()


def test_a_state_that_another_process_writes_is_busy(engramfs: Command) -> None:
    with Repository.open(str(engramfs.state), write="a test"):
        message = engramfs.refused(4, "store", "create", "contexts/a")
    assert "in use by a test" in message


def test_a_reader_that_closes_the_pipe_ends_the_command_quietly(handbook: Command) -> None:
    for _ in range(3):
        handbook.write("tree/big", os.urandom(200_000).hex().encode())
    handbook.ok("import", "contexts/handbook", "tree")
    read_end, write_end = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-m", "engramfs", "show", "contexts/handbook:big"],
        env=handbook.environment,
        stdout=write_end,
        stderr=subprocess.PIPE,
    )
    os.close(write_end)
    os.read(read_end, 10)
    os.close(read_end)
    _, err = child.communicate(timeout=30)
    assert err == b""
    assert child.returncode in (141, -signal.SIGPIPE)


def test_down_without_a_daemon_has_nothing_to_do(engramfs: Command) -> None:
    assert engramfs.json("down") == {"stopped": False, "detached": []}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(engramfs: Command, shell: str) -> None:
    assert "_ENGRAMFS_COMPLETE" in engramfs.ok("completion", shell)


def test_completion_knows_commands_and_store_names(handbook: Command) -> None:
    def completions(words: str, count: int) -> list[str]:
        asked = {"_ENGRAMFS_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(count)}
        return [line.partition(",")[2] for line in handbook(**asked).out.split()]

    assert completions("engramfs st", 1) == ["status", "store", "stat"]
    assert completions("engramfs log con", 2) == ["contexts/handbook"]
    assert completions("engramfs --state absent log con", 4) == []


def test_help_is_quick_to_load_and_lists_every_command(engramfs: Command) -> None:
    text = engramfs.ok("--help")
    for command in ("up", "down", "daemon", "status", "store", "import", "export", "log", "show", "diff"):
        assert f"\n  {command} " in text
    script = (
        "import sys\nfrom engramfs.cli.main import run\nrun(['--help'])\n"
        "heavy = {'trio', 'lmdb', 'rich', 'structlog', 'pyfuse3', 'zstandard', 'asyncio'}\n"
        "sys.exit(sorted(heavy & set(sys.modules)) or 0)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


# What a daemon left behind


@pytest.fixture
def left_behind(handbook: Command) -> Command:
    """A journal with a file that was closed and not sealed, as a daemon that died leaves it."""
    with Repository.open(str(handbook.state), write="a test") as repository:
        with repository.engine.reading() as reader:
            store = catalog.named(reader, "contexts/handbook")
            head = catalog.head(reader, store.id)
        journal = Journal(repository.journal_path, 1 << 20)
        content = b"unsealed\n"
        node, time = head.next_node, 1_000_000_000
        empty = Entry(node, Kind.FILE, 0o644, 0, time, time, origin=node)
        digest = hashlib.sha256(content).digest()
        full = msgspec.structs.replace(empty, size=len(content), digest=digest)
        author = Author("agent", agent="digest", actor="alice")
        first = head.journal_position + 1
        journal.append(Record(first, store.id, author, 1, Link(ROOT_NODE, b"unsealed.md", empty)))
        journal.append(Record(first + 1, store.id, author, 1, Update(full), content, closed=True))
        journal.close()
    return handbook


@pytest.mark.parametrize("command", [["log", "contexts/handbook"], ["store", "create", "contexts/b"]])
def test_what_a_dead_daemon_acknowledged_is_sealed_before_anything_is_read_or_written(
    left_behind: Command, command: list[str]
) -> None:
    finished = left_behind(*command)
    assert finished.code == 0, finished
    assert "sealed" in finished.err
    newest = left_behind.json("log", "contexts/handbook")[0]
    assert (newest["number"], newest["flags"]) == (3, ["recovered"])
    assert newest["author"]["actor"] == "alice"
    assert left_behind.ok("show", "contexts/handbook:unsealed.md") == "unsealed\n"


def test_diff_says_how_a_directory_is_written_that_looks_like_a_path(handbook: Command) -> None:
    (handbook.directory / "mir").mkdir()
    for code, arguments in ((3, ["mir"]), (2, ["mir", "notes.md"])):
        said = handbook.refused(code, "diff", "contexts/handbook", *arguments)
        assert "for the directory, write ./mir" in said
    assert "deleted" in str(handbook.json("diff", "contexts/handbook", "./mir"))


def test_export_says_that_it_takes_a_version_and_no_path(handbook: Command) -> None:
    assert "STORE[@N] [DIR]" in handbook.ok("export", "--help")
    assert "whole trees" in handbook.refused(2, "export", "contexts/handbook:notes.md", "out")


@pytest.mark.parametrize("arguments", [["backup"], ["export", "contexts/handbook"], ["export", "--git"]])
def test_a_copy_is_not_put_where_the_stores_are(handbook: Command, arguments: list[str]) -> None:
    os.symlink(handbook.state, handbook.directory / "by another name")
    before = sorted(os.listdir(handbook.state))
    for place in ("state", "state/in", "state/spool/in", "by another name/in"):
        given = [*arguments, place] + (["contexts/handbook"] if "--git" in arguments else [])
        assert "is in the state directory" in handbook.refused(2, *given)
    assert sorted(os.listdir(handbook.state)) == before
