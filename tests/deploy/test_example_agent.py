"""The example agent, run for real against a session: what it reports, keeps and proposes."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from engramfs.mount.mountinfo import read_mounts

EXAMPLE = Path(__file__).parents[2] / "examples/agent"
SHELLS = [["dash"], ["bash", "--posix"], ["busybox", "sh"]]


class Sandbox:
    """A session of the agent `digest` for alice, attached at `root`; and the owner outside of it."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "root"
        self.root.mkdir()
        self._directory = directory
        self._script = shutil.copy(EXAMPLE / "agent.sh", directory)  # where anyone may read it
        self.state = self.root / "mnt/memory/state"
        self.notes = self.root / "memories/user/notes.txt"

    def engramfs(self, *command: str) -> str:
        places = ["--state", str(self._directory / "state"), "--run", str(self._directory / "run")]
        config = ["--config", str(EXAMPLE.parents[1] / "deploy/engramfs.toml")]
        done = subprocess.run(
            [sys.executable, "-m", "engramfs", *places, *config, *command],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def prefer(self, *sources: str) -> None:
        """The owner says what is to be read."""
        preferences = self._directory / "preferences"
        preferences.mkdir(exist_ok=True)
        (preferences / "sources").write_text("".join(f"{line}\n" for line in sources))
        self.engramfs("import", "memory/digest/preferences", str(preferences))

    def agent(self, *shell: str, uid: int = 0) -> tuple[int, list[str]]:
        """One run: its exit code, and the lines that it said."""
        as_user = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all", "--"]
        done = subprocess.run(
            [*as_user, *(shell or ("sh",)), self._script],
            stdin=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "AGENT_ROOT": str(self.root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout.splitlines()

    def ledger(self) -> list[list[str]]:
        lines = (self.state / "ledger.tsv").read_text().splitlines()
        return [line.split("\t")[1:] for line in lines]


@pytest.fixture
def sandbox(private_namespace: None) -> Iterator[Sandbox]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        os.chmod(directory, 0o755)  # for agents that are not root
        sandbox = Sandbox(Path(directory))
        sandbox.engramfs("up", "--root", str(sandbox.root), "--agent", "digest", "--actor", "alice")
        yield sandbox
        sandbox.engramfs("down")
        assert not [mount for mount in read_mounts() if mount.is_ours and mount.point.startswith(directory)]


@pytest.mark.parametrize("uid", [0, 12345])
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_it_tells_what_is_new_and_remembers_how_far_it_was(
    sandbox: Sandbox, shell: list[str], uid: int
) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"needs {shell[0]}")
    sandbox.prefer("# what I read", "", "notes /memories/user/notes.txt")
    sandbox.notes.write_text("one\ntwo\nnot yet whole")
    assert sandbox.agent(*shell, uid=uid) == (0, ["notes: 2 new", "    one", "    two"])
    assert sandbox.agent(*shell, uid=uid) == (0, ["notes: nothing new"])
    sandbox.notes.write_text("one\ntwo\nnow it is\n")
    assert sandbox.agent(*shell, uid=uid) == (0, ["notes: 1 new", "    now it is"])
    assert (sandbox.state / "bookmarks/notes").read_text() == "3\n"
    assert sandbox.ledger() == [["notes", "new", "2"], ["notes", "nothing", ""], ["notes", "new", "1"]]


def test_a_source_that_shrank_is_told_from_the_start(sandbox: Sandbox) -> None:
    sandbox.prefer("notes /memories/user/notes.txt")
    sandbox.notes.write_text("one\ntwo\n")
    sandbox.agent()
    sandbox.notes.write_text("another\n")
    said = ["notes: shorter than before, so from the start", "notes: 1 new", "    another"]
    assert sandbox.agent() == (0, said)


def test_a_source_that_cannot_be_read_is_unreadable_and_not_empty(sandbox: Sandbox) -> None:
    sandbox.prefer("gone /memories/user/gone.txt", "notes /memories/user/notes.txt")
    sandbox.notes.write_text("one\n")
    code, said = sandbox.agent()
    assert code == 1
    assert said[0].startswith("gone: UNREADABLE: cat: ")
    assert said[0].endswith("No such file or directory")
    assert said[1:] == ["notes: 1 new", "    one"], "and the others are read all the same"
    assert sandbox.ledger()[0][:2] == ["gone", "unreadable"]
    assert not (sandbox.state / "bookmarks/gone").exists()


def test_what_it_would_change_in_its_preferences_it_proposes(sandbox: Sandbox) -> None:
    sandbox.prefer("gone /nowhere/gone.txt", "notes /memories/user/notes.txt")
    sandbox.notes.write_text("one\n")
    for _ in range(2):
        sandbox.agent()
    proposal = sandbox.state / "proposals/drop-gone.patch"
    assert not proposal.exists()
    _, said = sandbox.agent()
    assert "gone: proposed to drop it, in /mnt/memory/state/proposals/drop-gone.patch" in said
    lines = proposal.read_text().splitlines()
    assert lines[0].startswith("Read gone no longer? It could not be read 3 times in a row: ")
    assert lines[1:3] == ["--- a/sources", "+++ b/sources"]
    assert [line for line in lines[3:] if line[0] in "+-"] == ["-gone /nowhere/gone.txt"]
    sandbox.agent()
    assert "proposed" not in str(sandbox.agent()), "it proposes once"
    preferences = sandbox.root / "mnt/memory/preferences/sources"
    assert preferences.read_text().startswith("gone"), "which stay as they are"
    with pytest.raises(OSError, match="Read-only file system"):
        preferences.write_text("")


def test_every_run_that_changed_something_is_in_the_log(sandbox: Sandbox) -> None:
    sandbox.prefer("notes /memories/user/notes.txt")
    sandbox.notes.write_text("one\n")
    sandbox.agent()
    log = sandbox.engramfs("log", "memory/digest/state")
    assert "digest for alice" in log
    assert "ledger.tsv" in log
    assert ".tmp-" not in log
    assert not [name for name in os.listdir(sandbox.state) if name.startswith(".tmp-")]


def test_without_preferences_it_says_what_is_missing(sandbox: Sandbox) -> None:
    code, (said,) = sandbox.agent()
    assert code == 2
    assert said.startswith(f"agent: no preferences at {sandbox.root}/mnt/memory/preferences/sources; ")


def test_a_name_that_would_lead_elsewhere_is_refused(sandbox: Sandbox) -> None:
    sandbox.prefer("../../preferences/x /etc/hostname")
    code, said = sandbox.agent()
    assert code == 2
    assert "names a source ../../preferences/x" in said[0]


def test_the_preferences_of_the_example_are_what_the_agent_takes(sandbox: Sandbox) -> None:
    sandbox.engramfs("import", "memory/digest/preferences", str(EXAMPLE / "preferences"))
    sandbox.notes.write_text("one\n")
    code, said = sandbox.agent()
    assert code in (0, 1)
    assert said[-2:] == ["notes: 1 new", "    one"]
