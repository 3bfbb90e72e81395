"""`engramfs forget`: one actor's memory is deleted, and what of it is elsewhere is said."""

import shlex

from ..harness.daemon import Daemon

TEXT = b"alice likes tea, and nobody else shall know"


def test_the_actors_stores_go_and_the_redactions_needed_elsewhere_are_printed(daemon: Daemon) -> None:
    alice = daemon.up(actor="alice")
    alice.inside.call("write", f"{alice.user}/likes", TEXT, "wb")
    alice.write("shared", b"written by alice")
    bob = daemon.up(actor="bob")
    bob.inside.call("write", f"{bob.user}/copied", TEXT, "wb")
    daemon.barrier()

    attached = daemon.command("forget", "alice", "--yes")
    assert (attached.code, alice.session in attached.err) == (4, True)
    daemon.end(alice)

    unsaid = daemon.command("forget", "alice")
    assert unsaid.code == 2
    assert "would delete  memories/alice" in unsaid.out
    commands = [line for line in unsaid.out.splitlines() if "engramfs redact" in line]
    assert [line[0] for line in commands] == [
        "#",
        "#",
    ]  # the heads have it, so nothing to run yet
    assert daemon.json("store", "list", "memories/alice") != []

    found = daemon.json("forget", "alice", "--yes")
    assert found["stores"] == ["memories/alice"]
    assert daemon.json("store", "list", "memories/alice") == []
    elsewhere = {(trace["store"], trace["path"]): trace for trace in found["elsewhere"]}
    assert set(elsewhere) == {(alice.store, "shared"), ("memories/bob", "copied")}
    assert elsewhere[alice.store, "shared"]["why"] == "wrote it"
    assert bob.inside.call("read", f"{bob.user}/copied") == TEXT

    bob.inside.call("os.unlink", f"{bob.user}/copied")
    bob.inside.call("os.unlink", bob.path("shared"))
    for trace in elsewhere.values():
        daemon.ok(*shlex.split(trace["command"])[1:])
    nothing = daemon.command("forget", "alice", "--yes")
    assert (nothing.code, "nothing of actor alice" in nothing.err) == (3, True)


def test_an_actor_of_a_tenant_is_another_than_one_without(daemon: Daemon) -> None:
    daemon.configure('[agents.default]\nscoping.memory = "actor"\ntenancy = "multi"\n')
    daemon.inside.call("os.makedirs", "/mnt/acme")
    document = daemon.json("up", "--root", "/mnt/acme", "--actor", "alice", "--tenant", "acme")
    daemon.inside.call("engramfs.mount.detach.detach", daemon.mounts()[:-1])
    daemon.client.call("session.close", id=document["id"])
    assert daemon.command("forget", "alice", "--yes").code == 3
    assert daemon.json("forget", "alice", "--tenant", "acme", "--yes")["stores"] == ["memories/acme/alice"]
