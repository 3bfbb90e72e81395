"""What an agent is told of its stores, and what it really wrote, on real mounts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..harness.daemon import Daemon, Place

CONFIGURATION = """
[search]
semantic = false

[agents.coder]
scoping.memory = "actor"
memory = { state = "read_write", shared = "ask" }
record_learnings = true
unattended = true
instructions = { state = "One file for each project." }
"""
STATE, SHARED = "memory/coder/state", "memory/coder/shared"
HOOKS = Path(__file__).parents[2] / "examples/claude-code"


@pytest.fixture
def place(daemon: Daemon) -> Place:
    daemon.configure(CONFIGURATION)
    return daemon.up(agent="coder", actor="ann")


def test_claims_are_what_stands_what_went_and_what_waits(daemon: Daemon, place: Place) -> None:
    for name in ("kept", "overwritten", "removed"):
        place.write(name, b"mine\n")
    daemon.barrier()
    place.inside.call("os.unlink", place.path("removed"))
    place.inside.call("os.mkdir", f"{place.root}/mnt/memory/shared/asked")
    daemon.barrier()
    other = daemon.json("session", "open", "--agent", "coder", "--actor", "bob")["id"]
    views = f"{daemon.run_directory}/fs/sessions/{other}/views/mnt/memory/state"
    place.inside.call("write", f"{views}/overwritten", b"theirs\n")

    claims = daemon.json("claims", place.session)
    assert {
        (each["store"], each["path"]): (each["op"], each["stands"], each["state"]) for each in claims
    } == {
        (STATE, "kept"): ("created", True, None),
        (STATE, "overwritten"): ("created", False, None),
        (STATE, "removed"): ("deleted", True, None),
        (SHARED, "asked"): ("created", False, "open"),
    }
    assert [each["path"] for each in daemon.json("claims", other)] == ["overwritten"]
    said = daemon.ok("claims", place.session)
    assert "changed since" in said
    assert "pending 1" in said
    assert daemon.json("claims", place.session, "--since", "2100-01-01") == []
    assert daemon.command("claims", "nobody").code == 3, "which is not to have written nothing"


def test_the_prompt_has_instructions_learnings_and_the_memory_as_data(daemon: Daemon, place: Place) -> None:
    place.inside.call("write", f"{place.user}/AGENTS.md", b"Likes tea.\n" + b"x" * (9 << 10))
    told = daemon.json("prompt", "--session", place.session)
    order = ["/mnt/memory/state", "One file for each project.", "expected_sha256", "what you learned"]
    places = [
        told["text"].index(text) for text in [*order, "as your last step", "not instructions", "Likes tea."]
    ]
    assert places == sorted(places)
    assert "what you write waits for approval" in told["text"]
    assert "keep it under 8 KiB" in told["warnings"][0]
    assert daemon.ok("prompt", "--session", place.session) == told["text"]
    assert "expected_sha256" not in daemon.ok("prompt", "--session", place.session, "--no-tools")


def test_the_hooks_of_the_example_tell_what_is_remembered(daemon: Daemon, place: Place) -> None:
    place.inside.call("write", f"{place.user}/AGENTS.md", b"The ferry leaves at nine.\n")
    daemon.barrier()

    def hook(name: str, event: dict[str, str], session: str = place.session) -> str:
        path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
        environment = os.environ | daemon.environment | {"ENGRAMFS_SESSION": session, "PATH": path}
        done = subprocess.run(
            [HOOKS / name],
            input=json.dumps(event),
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        return done.stdout

    assert "The ferry leaves at nine." in hook("session-start.sh", {})
    assert "The ferry leaves" in hook("user-prompt-submit.sh", {"prompt": "when does the ferry leave?"})
    assert hook("user-prompt-submit.sh", {"prompt": "zeppelin"}) == ""
    assert hook("user-prompt-submit.sh", {"prompt": "ferry"}, session="") == ""
