"""Sessions that have to ask, with real mounts, beside one that writes."""

import pytest

from ..harness.daemon import Daemon, Place

CONFIGURATION = """
[agents.asking]
memory = { shared = "ask" }

[agents.writing]
memory = { state = "read_write" }
"""
STORE = "memory/asking/shared"
LINES = b"one\ntwo\nthree\nfour\nfive\n"


class Desk:
    """Two sessions at one store: `asking` has to ask, `writing` writes."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        daemon.configure(CONFIGURATION)
        self.asking: Place = SharedPlace.of(daemon.up(agent="asking", actor="ann"))
        self.writing: Place = self.session("bob", "read_write")

    def session(self, actor: str, access: str) -> Place:
        """One more session at the store, used where the hub has it."""
        attach = f"{STORE}=/mnt/memory/shared:{access}"
        who = ["--agent", "writing", "--actor", actor]
        document = self.daemon.json("session", "open", *who, "--attach", attach)
        root = f"{self.daemon.run_directory}/fs/sessions/{document['id']}/views"
        return SharedPlace(self.daemon, root, document)


class SharedPlace(Place):
    @classmethod
    def of(cls, place: Place) -> "SharedPlace":
        document = {"id": place.session, "agent": place.agent, "attachments": place.attachments}
        return cls(place.daemon, place.root, document)

    @property
    def state(self) -> str:
        return f"{self.root}/mnt/memory/shared"


@pytest.fixture
def desk(daemon: Daemon) -> Desk:
    desk = Desk(daemon)
    desk.writing.write("file", LINES)
    desk.writing.write("other", b"other\n")
    daemon.barrier()
    return desk


def test_what_is_asked_for_is_seen_by_its_session_until_it_is_approved(desk: Desk) -> None:
    daemon, asking, writing = desk.daemon, desk.asking, desk.writing
    asking.write("file", b"asked\n")
    asking.write("new", b"new\n")
    asking.inside.call("os.unlink", asking.path("other"))
    assert (asking.read("file"), asking.names()) == (b"asked\n", ["file", "new"])
    assert (writing.read("file"), writing.names()) == (LINES, ["file", "other"])
    [waiting] = daemon.json("pending", "list", STORE)
    assert [f"{each['op']} {each['path']}" for each in waiting["changes"]] == [
        "modified file",
        "created new",
        "deleted other",
    ]
    assert (waiting["number"], waiting["base"], waiting["state"]) == (1, 1, "open")
    assert waiting["author"]["actor"] == "ann"
    [shown] = daemon.json("status")["pending"]
    assert (shown["store"], shown["number"], shown["changes"]) == (STORE, 1, 3)
    assert "pending  1" in asking.read(".versions/status").decode()
    approved = daemon.json("pending", "approve", STORE, "1", "--reason", "fine")
    assert (approved["state"], approved["result"], approved["reason"]) == ("approved", 2, "fine")
    assert (writing.read("file"), writing.names()) == (b"asked\n", ["file", "new"])
    newest = daemon.log(STORE)[-1]
    assert (newest["via"], newest["flags"], newest["author"]["actor"]) == ("approval", ["approved"], "ann")
    assert newest["message"] == "pending 1, approved by root: fine"
    writing.write("new", b"writing\n")
    assert asking.read("new") == b"writing\n"
