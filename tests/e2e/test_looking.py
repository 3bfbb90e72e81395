"""What people see of a history: of one that two sessions in conflict wrote, and of a small one."""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from engramfs.history import catalog, commit, edit
from engramfs.history.repository import Repository
from engramfs.model.author import SYSTEM
from engramfs.model.file_edit import Create, Edit, FileEdit, Rename
from engramfs.model.version import FLAGS

from ..harness.command import Command
from ..harness.daemon import Daemon, Place


class Shelf(NamedTuple):
    """A store that ann and bob wrote: version 3 overwrote version 2, and version 5 is a person's."""

    ann: Place
    bob: Place

    def numbers(self, *arguments: str) -> list[int]:
        return [version["number"] for version in self.ann.daemon.json("log", self.ann.store, *arguments)]

    def ok(self, command: str, *arguments: str) -> str:
        return self.ann.daemon.ok(command, self.ann.store, *arguments)


@pytest.fixture(scope="module")
def shelf(shared_daemon: Daemon) -> Iterator[Shelf]:
    place = shared_daemon.up(agent="looked-at", actor="ann")
    bob = shared_daemon.up(agent="looked-at", actor="bob")
    place.inside.call("os.makedirs", place.path("notes"))
    place.write("notes/ports.md", b"http 80\nhttps 443\n")
    place.daemon.barrier()
    descriptor = place.inside.call("os.open", place.path("notes/ports.md"), os.O_WRONLY | os.O_TRUNC)
    place.inside.call("os.pwrite", descriptor, b"http 8080\nhttps 443\nssh 22\n", 0)
    bob.write("notes/ports.md", b"http 81\nhttps 443\n")
    place.inside.call("os.close", descriptor)
    place.daemon.barrier()
    place.inside.call("os.setxattr", bob.path(), "user.engramfs.message", b"a better place")
    place.inside.shell(f"mv {bob.path('notes')} {bob.path('facts')}; printf '\\0' > {bob.path('blob')}")
    place.daemon.barrier()
    place.daemon.ok("restore", f"{place.store}@3", "notes/ports.md")
    yield Shelf(place, bob)
    shared_daemon.end(bob)
    shared_daemon.end(place)


def test_versions_are_found_by_who_when_what_and_how(shelf: Shelf) -> None:
    ann, bob = shelf.ann, shelf.bob
    assert shelf.numbers() == [5, 4, 3, 2, 1]
    assert shelf.numbers("--author", "BOB") == [4, 2]
    assert shelf.numbers("--session", ann.session[:12]) == [3, 1]
    assert shelf.numbers("--session", bob.session, "-n", "1") == [4]
    assert shelf.numbers("--by", "person") == [5]
    assert shelf.numbers("--by", "agent") == [4, 3, 2, 1]
    assert shelf.numbers("--flag", "concurrent") == [3]
    assert shelf.numbers("--since", "1h") == [5, 4, 3, 2, 1]
    assert shelf.numbers("--since", "2999-01-01") == []
    assert shelf.numbers("--path", "blob") == [4]
    assert shelf.numbers("facts/ports.md") == [4]
    assert shelf.numbers("facts/ports.md", "--follow") == [4, 3, 2, 1]
    time_of_3 = ann.daemon.json("log", ann.store, "-n", "3")[-1]["time"]
    assert shelf.numbers("--since", time_of_3, "--author", "bob") == [4]


def test_a_flag_that_there_is_not_is_refused_and_an_unknown_author_or_session_is_said(shelf: Shelf) -> None:
    daemon, store = shelf.ann.daemon, shelf.ann.store
    refused = daemon.command("log", store, "--flag", "conflict")
    assert (refused.code, refused.out) == (2, "")
    for flag in FLAGS:
        assert flag in refused.err
        assert daemon.command("log", store, "--flag", flag).code == 0
    for option, value, said in (
        ("--author", "carol", f"no version of {store} has an author whose name contains carol"),
        ("--session", "nowhere", f"no version of {store} is of a session whose id begins with nowhere"),
    ):
        empty = daemon.command("log", store, option, value)
        assert (empty.code, empty.out, said in empty.err) == (0, "", True)
        as_json = daemon.command("log", store, option, value, "--json")
        assert (as_json.code, json.loads(as_json.out)) == (0, [])
        assert said in json.loads(as_json.err)["note"]
    known = daemon.command("log", store, "--author", "bob", "--since", "2999-01-01")
    assert (known.code, known.out, known.err) == (0, "", "")


def test_a_log_shows_how_much_changed_and_what(shelf: Shelf) -> None:
    stat = shelf.ok("log", "--flag", "concurrent", "--stat")
    assert "overwrites @2" in stat
    assert re.search(r"modified file notes/ports.md \| 3 \+\+ -\n1 changed, 2 lines added, 1 removed", stat)
    patch = shelf.ok("log", "-p", "--author", "bob")
    assert "renamed directory notes → facts" in patch
    assert "Binary files /dev/null and b/blob differ" in patch
    assert "-http 80\n+http 81\n" in patch
    [version] = shelf.ann.daemon.json("log", shelf.ann.store, "--flag", "concurrent", "--stat", "--patch")
    [difference] = version["differences"]
    assert (difference["path"], difference["added"], difference["removed"]) == ("notes/ports.md", 2, 1)
    assert "+ssh 22\n" in difference["patch"]


def test_a_version_shows_everything_that_is_known_of_it(shelf: Shelf) -> None:
    daemon, store, bob = shelf.ann.daemon, shelf.ann.store, shelf.bob
    shown = daemon.ok("show", f"{store}@4")
    assert f"(agent {bob.agent}, actor bob, session {bob.session})" in shown
    assert "came by  fs" in shown
    assert "message  a better place" in shown
    assert "renamed   notes → facts\nwith      facts/ports.md\n" in shown
    assert "concurrent, overwrites @2" in daemon.ok("show", f"{store}@3")
    restored = daemon.ok("show", f"{store}@5", "--stat")
    assert "came by  restore" in restored
    assert f"restore of {store}@3:notes/ports.md" in restored
    assert "created file notes/ports.md | 3 +++" in restored


def test_every_line_has_its_author(shelf: Shelf) -> None:
    daemon, store = shelf.ann.daemon, shelf.ann.store
    lines = daemon.json("blame", f"{store}@4", "facts/ports.md")
    assert [(line["number"], line["author"]["session"], line["text"]) for line in lines] == [
        (3, shelf.ann.session, "http 8080"),
        (1, shelf.ann.session, "https 443"),
        (3, shelf.ann.session, "ssh 22"),
    ]
    assert re.search(r"@1 +\d{4}-\d\d-\d\d .* 2 https 443\n", daemon.ok("blame", store, "facts/ports.md"))
    assert daemon.command("blame", store, "nothing").code == 3
    assert daemon.command("blame", store, "blob").code == 2


def test_a_tree_shows_names_and_sizes(shelf: Shelf) -> None:
    daemon, store = shelf.ann.daemon, shelf.ann.store
    assert daemon.ok("tree", f"{store}@4").splitlines()[1:] == [
        "├── blob  1 B",
        "└── facts/",
        "    └── ports.md  27 B",
        "1 directory, 2 files, 28 B",
    ]
    assert daemon.ok("tree", store, "-d", "1").splitlines()[1:4] == [
        "├── blob  1 B",
        "├── facts/",
        "└── notes/",
    ]
    entries = daemon.json("tree", f"{store}@1", "notes")
    assert [(entry["path"], entry["size"]) for entry in entries] == [("notes/ports.md", 18)]
    assert daemon.command("tree", store, "nothing").code == 3


def test_two_versions_differ_in_what_was_renamed_and_changed(shelf: Shelf) -> None:
    daemon, store = shelf.ann.daemon, shelf.ann.store
    found = daemon.json("diff", f"{store}@2", f"{store}@4")
    assert [(one["op"], one["from_path"], one["path"]) for one in found] == [
        ("created", None, "blob"),
        ("renamed", "notes", "facts"),
        ("renamed", "notes/ports.md", "facts/ports.md"),
    ]
    text = daemon.ok("diff", f"{store}@2", f"{store}@4", "facts")
    assert "created file facts/ports.md" in text
    assert "3 changed" in daemon.ok("diff", f"{store}@2", f"{store}@4", "--stat")


# Watching


class Watching:
    """`engramfs log STORE --watch`, beside the tests."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-m", "engramfs", "log", *arguments, "--watch"],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def line(self) -> str:
        assert self.child.stdout is not None
        assert select.select([self.child.stdout], [], [], 20)[0], "nothing came"
        return self.child.stdout.readline().decode()

    def settle(self) -> None:
        """Wait until it has looked at the head once."""
        fields: list[str] = []
        while "poll" not in "".join(fields):  # it waits in poll(2) from its first look on
            time.sleep(0.05)
            with open(f"/proc/{self.child.pid}/wchan", encoding="ascii") as file:
                fields = [file.read()]
            assert self.child.poll() is None, self.child.stderr

    def end(self, signal_number: int | None = None) -> tuple[int, str]:
        """Its exit code and what it said on stderr."""
        if signal_number is not None:
            self.child.send_signal(signal_number)
        code = self.child.wait(20)
        assert self.child.stderr is not None
        said = self.child.stderr.read().decode()
        for stream in (self.child.stdout, self.child.stderr):
            if stream is not None:
                stream.close()
        return code, said


def test_versions_are_shown_as_they_are_sealed(place: Place) -> None:
    place.write("a", b"0")
    watching = Watching(place.daemon.environment, place.store, "--json", "--path", "a")
    watching.settle()
    for number in (2, 4):
        place.write("a", b"%d" % number)
        place.daemon.barrier()
        place.write("other", b"%d" % number)
        place.daemon.barrier()
        assert json.loads(watching.line())["number"] == number
    assert watching.end(signal.SIGINT)[0] == 130


def test_watching_ends_after_n_and_begins_where_it_is_told_to(place: Place) -> None:
    place.write("a", b"1")
    place.daemon.barrier()
    watching = Watching(place.daemon.environment, place.store, "--since", "1h", "-n", "1", "--stat")
    assert "created a" in watching.line()
    assert watching.end() == (0, "")


def test_watching_works_without_a_daemon_and_ends_with_its_reader(handbook: Command) -> None:
    watching = Watching(handbook.environment, "contexts/handbook")
    watching.settle()
    handbook.write("tree/later.md", b"later\n")
    handbook.ok("import", "contexts/handbook", "tree", "-m", "sealed by another command")
    assert "sealed by another command" in watching.line()
    assert watching.child.stdout is not None
    watching.child.stdout.close()
    assert watching.end() == (141, "")


# Against a directory


def test_a_store_is_compared_with_a_directory(handbook: Command) -> None:
    store = "contexts/handbook"
    assert handbook.ok("diff", store, "./tree") == ""
    handbook.write("tree/notes.md", b"one\n2\nthree\n")
    handbook.write("tree/raw", b"\0")
    assert handbook.ok("diff", store, "./tree", "--stat").splitlines() == [
        "modified file notes.md | 1 +",
        "created file raw       | binary",
        "2 changed, 1 line added, 0 removed",
    ]
    absolute = str(handbook.directory / "tree")
    assert "+three" in handbook.ok("diff", store, absolute, "notes.md")
    found = handbook.json("diff", f"{store}@1", "--dir", "tree")
    assert {(one["op"], one["path"]) for one in found} == {
        ("modified", "notes.md"),
        ("created", "new.md"),
        ("created", "raw"),
        ("deleted", "old"),
        ("deleted", "old/a"),
    }
    (handbook.directory / "tree/empty").mkdir()
    assert handbook.ok("diff", f"{store}@1", "./tree", "--stat").splitlines() == [
        "created directory empty | 0",
        "created file new.md     | 1 +",
        "modified file notes.md  | 3 ++ -",
        "deleted directory old   | 0",
        "deleted file old/a      | 1 -",
        "created file raw        | binary",
        "6 changed, 3 lines added, 2 removed",
    ]
    assert "no tree" in handbook.refused(3, "diff", store, "tree"), "a plain name is a path in the store"
    handbook.refused(3, "diff", store, "./tree", "nothing")
    handbook.refused(2, "diff", store, f"{store}@1", "--dir", "tree")
    handbook.refused(2, "diff", store, "./nothing")


# Times, and what is wrong


def test_a_store_goes_back_to_a_time(handbook: Command) -> None:
    store = "contexts/handbook"
    first = handbook.json("log", store)[-1]["time"]
    restored = handbook.json("restore", store, "--at", first, "notes.md")
    assert restored["message"] == f"restore of {store}@1:notes.md"
    assert handbook.ok("show", f"{store}:notes.md") == "one\ntwo\n"
    assert "new.md" in handbook.ok("show", f"{store}:")
    assert "no version at" in handbook.refused(3, "restore", store, "--at", "2001-01-01")
    handbook.refused(2, "restore", store)
    handbook.refused(2, "restore", f"{store}@1", "--at", first)
    handbook.refused(2, "restore", store, "--at", "yesterday")


@pytest.mark.parametrize(
    "arguments",
    [
        ("log", "contexts/handbook", "--follow"),
        ("log", "contexts/handbook", "--since", "tuesday"),
        ("log", "contexts/handbook", "notes.md", "--path", "notes.md"),
        ("log", "contexts/handbook@1", "--watch"),
        ("log", "contexts/handbook", "--by", "robot"),
        ("blame", "contexts/handbook"),
        ("blame", "contexts/handbook", "old", "more"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(handbook: Command, arguments: tuple[str, ...]) -> None:
    handbook.refused(2, *arguments)


def test_a_note_needs_a_daemon(handbook: Command) -> None:
    assert "engramfs up" in handbook.refused(6, "note", "contexts/handbook", "text")


# Pagers


def on_a_terminal(engramfs: Command, *arguments: str, **environment: str) -> str:
    """What a command shows on a terminal."""
    primary, secondary = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "engramfs", *arguments],
        env={**engramfs.environment, "TERM": "xterm", **environment},
        stdout=secondary,
        stderr=secondary,
    )
    os.close(secondary)
    shown = b""
    try:
        while piece := os.read(primary, 65536):
            shown += piece
    except OSError:  # the last process that had the terminal has ended
        pass
    finally:
        os.close(primary)
    assert child.wait(20) == 0
    return shown.decode().replace("\r\n", "\n")


def test_a_terminal_gets_a_pager_and_colours(handbook: Command) -> None:
    paged: dict[str, Any] = {"ENGRAMFS_PAGER": "sed -u s/^/paged:/", "PAGER": "false"}
    for arguments in (
        ("log", "contexts/handbook", "-p"),
        ("show", "contexts/handbook:notes.md"),
        ("blame", "contexts/handbook", "notes.md"),
        ("tree", "contexts/handbook"),
    ):
        lines = on_a_terminal(handbook, *arguments, **paged).splitlines()
        assert lines
        assert all(line.startswith("paged:") for line in lines), arguments
    assert "paged:" not in on_a_terminal(handbook, "tree", "contexts/handbook", "--no-pager", **paged)
    assert "\x1b[32m+2\x1b[0m" in on_a_terminal(handbook, "diff", "contexts/handbook", **paged)
    assert "\x1b[" not in on_a_terminal(handbook, "diff", "contexts/handbook", NO_COLOR="1", **paged)
    assert "paged:" not in on_a_terminal(handbook, "log", "contexts/handbook", "--json", **paged)
    assert "paged:" in on_a_terminal(handbook, "log", "contexts/handbook", PAGER="sed -u s/^/paged:/")


def test_a_pager_that_is_left_early_ends_the_command_in_order(handbook: Command) -> None:
    handbook.write("tree/long", b"a line\n" * 100_000)
    handbook.ok("import", "contexts/handbook", "tree")
    shown = on_a_terminal(handbook, "show", "contexts/handbook:long", ENGRAMFS_PAGER="head -n 1")
    assert shown == "a line\n"


# Patches


@pytest.mark.parametrize("tool", [("git", "apply", "-"), ("patch", "-p1", "--quiet")])
def test_what_diff_prints_can_be_applied(engramfs: Command, tool: tuple[str, ...]) -> None:
    """A file that was edited and renamed, tabs, names with blanks, another mode."""
    engramfs.ok("store", "create", "contexts/a")
    engramfs.write("tree/before", b"one\n\ttwo\nthree\n")
    engramfs.write("tree/old place/\xfc\t漢", b"same\n")
    engramfs.write("tree/run", b"#!\n")
    engramfs.ok("import", "contexts/a", "tree")
    shutil.copytree(engramfs.directory / "tree", engramfs.directory / "copy")
    with Repository.open(str(engramfs.state), write="a test") as repository:
        # As an agent does it in a mount: an import knows of no renames.
        with repository.engine.reading() as reader:
            store = catalog.named(reader, "contexts/a")
        edits: list[FileEdit] = [
            Rename("before", "after it"),
            Edit("after it", "\ttwo", "\t2"),
            Rename("old place", "new place"),
            Create("new place/made", "new"),
        ]
        repository.transact(
            lambda writer: commit.apply(
                writer,
                edit.plan(writer, store, edits, author=SYSTEM, via="fs", now=store.created).commit,
            )
        )
    shown = engramfs.ok("diff", "contexts/a@1", "contexts/a@2")
    assert "renamed file before → after it\n" in shown
    assert "rename from before\nrename to after it\n" in shown
    assert "renamed directory old place → new place\n" in shown
    assert engramfs.ok("diff", "contexts/a@1", "contexts/a@2", "--stat").splitlines() == [
        "renamed file before → after it                 | 2 + -",
        "renamed directory old place → new place        | 0",
        "created file new place/made                    | 1 +",
        "renamed file old place/ü\\t漢 → new place/ü\\t漢 | 0",
        "4 changed, 2 lines added, 1 removed",
    ]
    for form in (("show", "contexts/a", "-p"), ("log", "contexts/a", "-p", "-n", "1")):
        assert "rename from before\nrename to after it\n" in engramfs.ok(*form)
    listed = [line.split(maxsplit=1) for line in engramfs.ok("show", "contexts/a").splitlines()]
    assert [line[1] for line in listed if line and line[0] == "with"] == ["new place/ü\\t漢"]
    engramfs.ok("export", "contexts/a", "wanted")
    subprocess.run(tool, input=os.fsencode(shown), cwd=engramfs.directory / "copy", check=True, timeout=20)
    same = ["diff", "-r", "copy", "wanted"]
    assert subprocess.run(same, cwd=engramfs.directory, capture_output=True, timeout=20).stdout == b""


def test_git_can_apply_a_binary_file_when_it_was_asked_for(engramfs: Command) -> None:
    engramfs.ok("store", "create", "contexts/a")
    content = {"tree/first": bytes(range(256)), "tree/second": b"\0" * 500, "tree/text": b"plain\n"}
    for path, one in content.items():
        engramfs.write(path, one)
    engramfs.ok("import", "contexts/a", "tree")
    (engramfs.directory / "copy").mkdir()
    for command in (("diff", "contexts/a@0", "contexts/a@1"), ("show", "contexts/a")):
        without, patch = (engramfs(*command, *more).out for more in ((), ("--binary",)))
        assert ("first" in without, "GIT binary patch" in without) == (True, False)
        apply = ["git", "apply", "-"] if command[0] == "diff" else ["git", "apply", "--reverse", "-"]
        subprocess.run(apply, input=patch.encode(), cwd=engramfs.directory / "copy", check=True)
        left = {f"tree/{one.name}": one.read_bytes() for one in (engramfs.directory / "copy").iterdir()}
        assert left == (content if command[0] == "diff" else {})
