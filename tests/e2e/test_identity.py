"""Whose memory `/memories/user` is: made, claimed and seeded at its first use, and nobody else's ever."""

from pathlib import Path
from typing import Any

import pytest

from engramfs.daemon.seed import TEMPLATE
from engramfs.errors import AlreadyExists, Refused, UsageError

from ..harness.daemon import Daemon
from .session import Session


def opened(daemon: Daemon, *options: str) -> dict[str, Any]:
    """A session that is closed again: what it needed is there from now on."""
    session: dict[str, Any] = daemon.json("session", "open", *options)
    daemon.ok("session", "close", session["id"])
    return session


def store_of(session: dict[str, Any], path: str = "/memories/user") -> str | None:
    return next((each["store"] for each in session["attachments"] if each["path"] == path), None)


# Scoping


def test_the_scope_decides_whose_memory_it_is(daemon: Daemon) -> None:
    daemon.configure(
        "[agents.default]\n"
        '[agents.single]\nscoping.memory = "actor"\n'
        '[agents.multi]\nscoping.memory = "actor"\ntenancy = "multi"\n'
        '[agents.tenant]\npreset = "multi-tenant"\n'
        '[agents.service]\npreset = "service"\n'
        '[agents.none]\nscoping.memory = "none"\n'
    )
    daemon.up(agent="default")
    expected = {
        ("single", "--actor", "ann"): "memories/ann",
        ("multi", "--actor", "ann", "--tenant", "acme"): "memories/acme/ann",
        ("tenant", "--actor", "ann", "--tenant", "corp"): "memories/corp",
        ("service", "--actor", "ann"): "memories/agent",
        ("none", "--actor", "ann"): None,
    }
    for (agent, *options), store in expected.items():
        assert store_of(opened(daemon, "--agent", agent, *options)) == store
    finished = daemon.command("run", "--agent", "none", "--", "mkdir", "/memories/user")
    assert finished.code == 1
    assert "Read-only file system" in finished.err, "nothing can be created there"


def test_a_memory_is_of_whoever_used_it_first(daemon: Daemon) -> None:
    """An actor, a tenant and the agent whose names would make the same store."""
    daemon.configure(
        "[agents.default]\n"
        '[agents.tenant]\nscoping.memory = "tenant"\n'
        '[agents.multi]\nscoping.memory = "actor"\ntenancy = "multi"\n'
    )
    daemon.up(agent="default")  # memories/agent is the agent's
    opened(daemon, "--agent", "tenant", "--actor", "ann", "--tenant", "acme")
    opened(daemon, "--agent", "default", "--actor", "solo")
    before = daemon.ok("store", "list")
    clashes = [
        (["default", "--actor", "acme"], Refused, "is the memory of tenant acme, and of actor acme it would"),
        (["default", "--actor", "agent"], Refused, "is the memory of agent, and of actor agent it would"),
        (["tenant", "--tenant", "agent"], Refused, "is the memory of agent, and of tenant agent it would"),
        (
            ["multi", "--actor", "a", "--tenant", "solo"],
            AlreadyExists,
            "would lie in the store memories/solo",
        ),
    ]
    for options, error, said in clashes:
        finished = daemon.command("session", "open", "--agent", *options)
        assert (finished.code, finished.err.count("\n")) == (error.exit_code, 1), finished
        assert said in finished.err
    assert daemon.ok("store", "list") == before
    assert len(daemon.json("session", "list")) == 1


def test_a_memory_that_was_imported_belongs_to_its_first_user(served: Daemon, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("by hand")
    served.ok("store", "create", "memories/imported")
    served.ok("import", "memories/imported", str(tmp_path))
    assert served.ok("run", "--actor", "imported", "--", "cat", "/memories/user/note") == "by hand"
    assert [version["via"] for version in served.log("memories/imported")] == ["import", "seed"]


# AGENTS.md


def test_a_new_memory_begins_with_the_guard(served: Daemon) -> None:
    opened(served, "--actor", "new")
    text = served.ok("show", "memories/new:AGENTS.md")
    assert text.encode() == TEMPLATE
    assert "before you say that you will remember it" in text
    (version,) = served.log("memories/new")
    assert (version["via"], version["author"]["kind"]) == ("seed", "system")
    assert [f"{change['op']} {change['path']}" for change in version["changes"]] == ["created AGENTS.md"]


def test_a_memory_is_seeded_once_and_never_over_what_is_there(served: Daemon, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("mine")
    served.ok("store", "create", "memories/own")
    served.ok("import", "memories/own", str(tmp_path))
    assert served.ok("run", "--actor", "own", "--", "cat", "/memories/user/AGENTS.md") == "mine"
    served.ok("run", "--actor", "own", "--", "rm", "/memories/user/AGENTS.md")
    assert served.ok("run", "--actor", "own", "--", "ls", "/memories/user") == "", "it was deleted on purpose"


def test_the_seed_of_the_agent_comes_before_the_template(served: Daemon, tmp_path: Path) -> None:
    (tmp_path / "memories/agent").mkdir(parents=True)
    (tmp_path / "memories/agent/AGENTS.md").write_text("as this agent likes it\n")
    served.ok("store", "create", "agents/seeding")
    served.ok("import", "agents/seeding", str(tmp_path))
    opened(served, "--agent", "seeding", "--actor", "seeded")
    assert served.ok("show", "memories/seeded:AGENTS.md") == "as this agent likes it\n"
    assert served.log("memories/seeded")[0]["message"] == "first use: AGENTS.md from agents/seeding"


def test_a_memory_that_somebody_looks_at_is_seeded_all_the_same(served: Daemon) -> None:
    """Its live tree is in the worker's memory before anybody has claimed it."""
    served.ok("store", "create", "memories/looked-at")
    hub = f"{served.run_directory}/fs/stores/memories/looked-at"
    assert served.inside.call("names", hub) == []
    script = "echo x > /memories/user/a; echo y > /memories/user/b; cat /memories/user/AGENTS.md"
    assert served.ok("run", "--actor", "looked-at", "--", "sh", "-c", script).encode() == TEMPLATE
    assert served.inside.call("names", hub) == ["AGENTS.md", "a", "b"]


# The organisation's memory


def test_the_memory_of_the_organisation_can_be_read_by_all_and_written_by_none(
    daemon: Daemon, tmp_path: Path
) -> None:
    (tmp_path / "org").mkdir()
    (tmp_path / "org/rules").write_text("be kind")
    daemon.up(actor="first")
    daemon.ok("store", "create", "org-memory")
    daemon.ok("import", "org-memory", str(tmp_path / "org"))
    script = "cat /memories/org/rules; echo x > /memories/org/rules"
    for actor in ("ann", "ben"):
        finished = daemon.command("run", "--actor", actor, "--", "sh", "-c", script)
        assert finished.out == "be kind"
        assert "Read-only file system" in finished.err
    assert len(daemon.log("org-memory")) == 1


# The program of an agent


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "program/skills/search").mkdir(parents=True)
    (tmp_path / "program/instructions.md").write_text("be brief")
    (tmp_path / "program/skills/search/run.sh").write_text("#!/bin/sh\necho found\n")
    (tmp_path / "program/skills/search/run.sh").chmod(0o755)
    (tmp_path / "program/README").write_text("not part of it")
    (tmp_path / "program/memories/agent").mkdir(parents=True)
    (tmp_path / "program/memories/agent/AGENTS.md").write_text("never deployed")
    return tmp_path / "program"


def test_what_is_deployed_is_at_instructions_and_skills_read_only(session: Session, program: Path) -> None:
    daemon = session.daemon
    version = daemon.json("deploy", session.agent, str(program))
    assert [change["path"] for change in version["changes"]] == [
        "instructions.md",
        "skills",
        "skills/search",
        "skills/search/run.sh",
    ]
    later = daemon.json("session", "open", "--agent", session.agent, "--actor", session.actor)
    daemon.ok("attach", later["id"], "--root", session.root)
    inside = daemon.inside
    assert inside.call("read", f"{session.root}/instructions.md") == b"be brief"
    assert inside.shell(f"{session.root}/skills/search/run.sh") == "found\n"
    for path in ("instructions.md", "skills/new", "skills/search/run.sh"):
        finished = inside.run("sh", "-c", f"echo x > {session.root}/{path}")
        assert "Read-only file system" in finished.err, finished
    assert store_of(later, "/skills") == f"agents/{session.agent}"


def test_a_running_session_keeps_the_program_with_which_it_began(session: Session, program: Path) -> None:
    daemon, inside = session.daemon, session.daemon.inside
    daemon.ok("deploy", session.agent, str(program))
    place = daemon.up(agent=session.agent, actor=session.actor, root=session.root)
    (program / "instructions.md").write_text("be thorough")
    (program / "skills/search/run.sh").unlink()
    daemon.ok("deploy", session.agent, str(program))
    assert inside.call("read", f"{session.root}/instructions.md") == b"be brief"
    assert inside.call("names", f"{session.root}/skills/search") == ["run.sh"]
    daemon.end(place)
    daemon.up(agent=session.agent, actor=session.actor, root=session.root)
    assert inside.call("read", f"{session.root}/instructions.md") == b"be thorough"
    assert inside.call("names", f"{session.root}/skills/search") == []


def test_deploying_touches_nothing_but_the_program(session: Session, program: Path, tmp_path: Path) -> None:
    daemon = session.daemon
    store = f"agents/{session.agent}"
    (tmp_path / "kept/memories/agent").mkdir(parents=True)
    (tmp_path / "kept/memories/agent/AGENTS.md").write_text("the seed")
    (tmp_path / "kept/notes").write_text("kept")
    daemon.ok("store", "create", store)
    daemon.ok("import", store, str(tmp_path / "kept"))
    daemon.ok("deploy", session.agent, str(program), "-m", "as it should be")
    (program / "instructions.md").unlink()
    daemon.ok("deploy", session.agent, str(program))
    assert daemon.json("deploy", session.agent, str(program)) is None, "nothing changed, no version"
    daemon.ok("export", store, str(tmp_path / "exported"))
    found = {str(path.relative_to(tmp_path / "exported")) for path in (tmp_path / "exported").rglob("*")}
    assert found == {
        *("memories", "memories/agent", "memories/agent/AGENTS.md", "notes"),
        *("skills", "skills/search", "skills/search/run.sh"),
    }
    assert (tmp_path / "exported/memories/agent/AGENTS.md").read_text() == "the seed"
    assert [version["message"] for version in daemon.log(store)][1] == "as it should be"


def test_deploying_works_without_a_daemon(daemon: Daemon, program: Path) -> None:
    daemon.ok("deploy", "writer", str(program))
    assert daemon.ok("show", "agents/writer:instructions.md") == "be brief"
    daemon.up(agent="writer", actor="ann")
    assert daemon.inside.call("read", "/mnt/0/instructions.md") == b"be brief"


@pytest.mark.parametrize(
    ("agent", "made", "said"),
    [
        ("a", {}, "has neither instructions.md nor skills/"),
        ("a", {"skills": "a file"}, "skills is no directory"),
        ("../a", {"instructions.md": "x"}, "agent id '../a' is not allowed"),
        ("missing/", {"instructions.md": "x"}, "is not allowed"),
    ],
)
def test_what_is_no_program_is_refused_in_one_line(
    served: Daemon, tmp_path: Path, agent: str, made: dict[str, str], said: str
) -> None:
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    finished = served.command("deploy", agent, str(tmp_path))
    assert (finished.code, finished.err.count("\n")) == (UsageError.exit_code, 1)
    assert said in finished.err
