"""A session of a state that no daemon serves. The log is verified after every test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engramfs.client import Client, Session
from engramfs.history.repository import Repository
from engramfs.history.verify import verify

Open = Callable[..., Session]
CONFIGURATION = """
[agents.digest]
scoping.memory = "actor"
contexts = ["handbook"]
memory = { preferences = "read_only", state = "read_write" }
org = true
"""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    from engramfs.daemon import stores
    from engramfs.model.store import Limits

    config = tmp_path / "engramfs.toml"
    config.write_text(CONFIGURATION)
    state = str(tmp_path / "state")
    with Client(state, str(tmp_path / "run"), str(config)) as client:
        with client.state.writing("the tests") as repository:
            stores.create(repository, Limits(), name="contexts/handbook", now=1, description="how we work")
        yield client
    with Repository.open(state) as repository:
        assert verify(repository).findings == []


@pytest.fixture
def open_session(client: Client) -> Open:
    def open_session(actor: str = "alice", agent: str = "digest", **more: object) -> Session:
        return client.open_session(agent, actor, **more)  # type: ignore[arg-type]

    return open_session


@pytest.fixture
def session(open_session: Open) -> Session:
    return open_session()
