"""What examples/ tells people to write works."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from engramfs.client import Client

EXAMPLES = Path(__file__).parents[2] / "examples/mcp"
HOOKS = EXAMPLES.parent / "claude-code"


def test_the_client_lists_writes_is_refused_and_remembers(client: Client) -> None:
    locations = client.state.locations
    environment = {
        **os.environ,
        "ENGRAMFS_STATE": locations.state,
        "ENGRAMFS_RUN": locations.run,
        "ENGRAMFS_CONFIG": locations.config,
    }
    said = subprocess.run(
        [sys.executable, EXAMPLES / "client.py", "--agent", "digest", "--actor", "alice"],
        env=environment,
        capture_output=True,
        timeout=60,
        check=True,
    ).stdout.decode()
    offered, written, refused, remembered = said.splitlines()
    assert "write_context" in offered
    assert "'changed': True" in written
    assert "'code': 'stale'" in refused
    assert "'decision': 'added'" in remembered
    assert client.read("memories/alice", "notes.md").content == b"# Notes\n"


@pytest.mark.parametrize(
    ("name", "key"), [("mcp-servers.json", "mcpServers"), ("vscode-mcp.json", "servers")]
)
def test_the_command_that_clients_are_given_is_one(name: str, key: str) -> None:
    (server,) = json.loads((EXAMPLES / name).read_text())[key].values()
    assert server["command"] == "engramfs"
    command = [sys.executable, "-m", "engramfs", *server["args"], "--help"]
    helped = subprocess.run(command, capture_output=True, timeout=30, check=True)
    assert b"Usage: engramfs mcp" in helped.stdout


@pytest.mark.parametrize(
    "event", [b"", b"hello", b"[1]", b'{"prompt": 3}', b'{"prompt": null}', b"{}", b"\xff", b"[" * 100_000]
)
def test_what_is_no_event_with_a_question_keeps_nobody_from_asking(event: bytes) -> None:
    hook = subprocess.run(
        ["sh", HOOKS / "user-prompt-submit.sh"],
        env={**os.environ, "ENGRAMFS_SESSION": "none"},
        input=event,
        capture_output=True,
        timeout=30,
    )
    assert (hook.returncode, hook.stdout, hook.stderr) == (0, b"", b"")
