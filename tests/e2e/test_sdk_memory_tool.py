"""The Anthropic SDK's own memory tool, pointed at a mount: each edit one version, and no temporary name."""

import sys

import pytest

pytest.importorskip("anthropic")

from .session import Session

PROGRAM = """
import sys, time
from anthropic.tools import BetaLocalFilesystemMemoryTool

tool = BetaLocalFilesystemMemoryTool(sys.argv[1])
for command in (
    {"command": "create", "path": "/memories/notes.md", "file_text": "one\\ntwo\\n"},
    {"command": "str_replace", "path": "/memories/notes.md", "old_str": "two", "new_str": "2"},
    {"command": "insert", "path": "/memories/notes.md", "insert_line": 0, "insert_text": "zero"},
    {"command": "rename", "old_path": "/memories/notes.md", "new_path": "/memories/kept.md"},
    {"command": "view", "path": "/memories/kept.md"},
    {"command": "delete", "path": "/memories/kept.md"},
):
    print(tool.call(command))
    time.sleep(0.3)  # a model takes its time between two commands
"""


def test_each_edit_is_one_version_and_no_temporary_name_is_recorded(session: Session) -> None:
    session.attach()
    inside, state = session.daemon.inside, f"{session.root}/mnt/memory/state"
    inside.call("os.mkdir", f"{state}/memories")
    session.daemon.barrier()
    finished = inside.run(sys.executable, "-c", PROGRAM, state, timeout=60)
    assert finished.code == 0, finished
    log = session.daemon.log(f"memory/{session.agent}/state")
    assert [[f"{one['op']} {one['path']}" for one in each["changes"]] for each in log] == [
        ["created memories"],
        ["created memories/notes.md"],
        ["modified memories/notes.md"],
        ["modified memories/notes.md"],
        ["renamed memories/kept.md"],
        ["deleted memories/kept.md"],
    ]
