"""An import makes the store that it goes to when that is asked for, and only then."""

import subprocess

import pytest

from ..harness.command import Command
from ..harness.daemon import Daemon


@pytest.fixture
def repository(engramfs: Command) -> str:
    """A repository with one commit, of what is in `tree`."""
    engramfs.write("tree/notes.md", b"one\n")
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *arguments], cwd=engramfs.directory / "tree", check=True, timeout=30)
    return str(engramfs.directory / "tree")


def test_a_missing_store_is_made_when_asked_for(engramfs: Command, repository: str) -> None:
    engramfs.write("plain/notes.md", b"one\n")
    for name, source in (("contexts/a", ["plain"]), ("contexts/b", ["--git", repository])):
        assert "--create makes it" in engramfs.refused(3, "import", name, *source)
        made = engramfs("import", name, *source, "--create")
        assert (made.code, made.err) == (0, f"created {name}\n")
        assert engramfs.ok("show", f"{name}:notes.md") == "one\n"
        assert engramfs("import", name, *source, "--create").err == ""
    assert [store["name"] for store in engramfs.json("store", "list")] == ["contexts/a", "contexts/b"]


def test_nothing_is_made_for_a_source_that_is_not_there(engramfs: Command) -> None:
    engramfs.refused(2, "import", "contexts/a", "absent", "--create")
    engramfs.refused(2, "import", "contexts/a", "--git", "absent", "--create")
    assert engramfs.json("store", "list") == []


def test_a_running_daemon_makes_it_too(served: Daemon, repository: str) -> None:
    made = served.command("import", "other/made", "--git", repository, "--create")
    assert (made.code, made.err) == (0, "created other/made\n")
    assert served.log("other/made")[0]["message"] == "first"
