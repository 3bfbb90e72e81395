"""What agents hear of errors: no path of the host."""

from pathlib import Path

import pytest

pytest.importorskip("anthropic")
pytest.importorskip("deepagents")

from anthropic.lib.tools import ToolError

from engramfs.client import Client, Session
from engramfs.daemon.paths import Locations
from engramfs.errors import EngramError, NoDaemon, NotFound, OtherState, Unavailable
from engramfs.integrations.anthropic import MemoryTool
from engramfs.integrations.deepagents import EngramBackend
from engramfs.storage.lock import StoreLock
from engramfs.tools.telling import told

HOST = Locations("/srv/state", "/srv/state/run", "/etc/e.toml")


@pytest.mark.parametrize(
    ("error", "heard"),
    [
        (NoDaemon("no /srv/state/run/control here; start one"), "no the run directory here; start one"),
        (NotFound("/srv/state holds no stores yet"), "the state directory holds no stores yet"),
        (NotFound("/memories/user/a.md does not exist"), "/memories/user/a.md does not exist"),
        (NotFound("/srv/stately is not in this session"), "/srv/stately is not in this session"),
        (
            OtherState("serves /other/one and not /srv/state; give --state /other/one"),
            "serves a path of the host and not the state directory; give --state a path of the host",
        ),
        (Unavailable("needs http://127.0.0.1:9/v1/x"), "needs http://127.0.0.1:9/v1/x"),
        (EngramError("silent; see /else/daemon.log"), "silent; see a path of the host"),
    ],
)
def test_paths_of_the_host_have_names_and_those_of_agents_stay(error: EngramError, heard: str) -> None:
    assert told(error, HOST) == heard


def test_a_busy_store_is_not_said_to_be_where_it_is(session: Session, client: Client) -> None:
    state = client.state.locations.state
    backend, tool = EngramBackend(session), MemoryTool(session)
    lock = StoreLock(state, "a test")
    try:
        with pytest.raises(ToolError) as caught:
            tool.call({"command": "create", "path": "/memories/a.md", "file_text": "x"})
        refused = backend.write("/memories/user/a.md", "x").error or ""
    finally:
        lock.close()
    for said in (str(caught.value), refused):
        assert "the state directory is in use by a test" in said
        assert str(Path(state)) not in said
