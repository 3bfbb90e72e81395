"""Writes that look like a secret: flagged and shown, or refused, by every way in."""

import errno

import pytest

from engramfs.errors import HoldsSecret

from ..harness.command import Command
from ..harness.daemon import eventually
from .session import Session

TOKEN = "ghp_" + "Q7w2E9r4T6" * 3 + "abcdef"
NOTE = f"# Deploying\n\nuse {TOKEN}\n"


@pytest.fixture
def store(session: Session) -> str:
    session.attach()
    return f"memory/{session.agent}/state"


@pytest.fixture
def without_library(engramfs: Command) -> Command:
    """As in an installation without the extra."""
    engramfs.write("modules/sitecustomize.py", b'import sys\nsys.modules["detect_secrets"] = None\n')
    engramfs.environment["PYTHONPATH"] = str(engramfs.directory / "modules")
    return engramfs


def test_a_version_is_flagged_whether_a_mount_or_a_tool_wrote_it_and_people_see_where(
    session: Session, store: str
) -> None:
    daemon = session.daemon
    daemon.inside.call("write", f"{session.root}/mnt/memory/state/plain.md", b"an ordinary note\n")
    daemon.barrier()
    daemon.inside.call("write", f"{session.root}/mnt/memory/state/deploy.md", NOTE.encode())
    daemon.barrier()
    edits = [{"mode": "create", "path": "tool.md", "content": f"{TOKEN}\n"}]
    daemon.client.call("edit", session=session.id, store=store, edits=edits)
    assert [version["flags"] for version in daemon.log(store)] == [[], ["secret"], ["secret"]]
    newest, older = daemon.json("log", store, "--flag", "secret")
    found = {"line": 1, "kind": "GitHub Token", "where": "content"}
    assert newest["secrets"] == [{**found, "path": "tool.md"}]
    assert older["secrets"] == [{**found, "path": "deploy.md", "line": 3}]
    said = daemon.ok("log", store, "--flag", "secret")
    assert "deploy.md:3" in said
    assert "tool.md:1" in said
    listed = [each for each in daemon.json("status")["secrets"] if each["store"] == store]
    assert [(each["version"], each["paths"]) for each in listed] == [(3, 1), (2, 1)]
    shown = daemon.inside.call("read", f"{session.root}/mnt/memory/state/.versions/status").decode()
    assert "version 3 looks like it holds a secret" in shown
    for text in (said, shown, daemon.ok("status"), daemon.ok("show", f"{store}@2")):
        assert TOKEN not in text
    review = daemon.json("log", store, "--by", "agent", "--since", "1h")
    assert [version["number"] for version in review] == [3, 2, 1]
    assert daemon.json("log", store, "--by", "person", "--since", "1h") == []


def test_a_message_and_a_name_that_look_like_one_flag_their_version_too(session: Session, store: str) -> None:
    daemon = session.daemon
    daemon.ok("note", store, f"with {TOKEN}")
    daemon.inside.call("os.mkdir", f"{session.root}/mnt/memory/state/{TOKEN}")
    daemon.barrier()
    (version,) = daemon.json("log", store, "--flag", "secret")
    assert [(each["where"], each["path"]) for each in version["secrets"]] == [
        ("message", ""),
        ("name", TOKEN),
    ]
    said = daemon.ok("log", store, "--flag", "secret")
    assert "the message  GitHub Token" in said
    assert f"the name {TOKEN}  GitHub Token" in said
    (listed,) = (each for each in daemon.json("status")["secrets"] if each["store"] == store)
    assert (listed["version"], listed["paths"], listed["message"]) == (1, 1, True)


def test_a_store_that_refuses_answers_close_with_eperm_and_a_tool_with_an_error(
    session: Session, store: str
) -> None:
    daemon, place = session.daemon, f"{session.root}/mnt/memory/state"
    daemon.inside.call("write", f"{place}/deploy.md", b"ask Ann\n")
    daemon.ok("store", "set", store, "--secrets", "refuse")
    assert daemon.json("store", "show", store)["secrets"] == "refuse"
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the errno is what counts
        daemon.inside.call("write", f"{place}/deploy.md", NOTE.encode())
    assert caught.value.errno == errno.EPERM
    assert daemon.inside.call("read", f"{place}/deploy.md") == b"ask Ann\n"
    with pytest.raises(HoldsSecret, match=r"tool\.md: line 3 looks like a secret \(GitHub Token\)"):
        daemon.client.call(
            "edit",
            session=session.id,
            store=store,
            edits=[{"mode": "create", "path": "tool.md", "content": NOTE}],
        )
    with pytest.raises(PermissionError):
        daemon.inside.call("os.mkdir", f"{place}/{TOKEN}")
    with pytest.raises(PermissionError):
        daemon.inside.call("os.setxattr", place, "user.engramfs.message", TOKEN.encode())
    with pytest.raises(HoldsSecret, match="refused a message: line 1 looks like a secret"):
        daemon.client.call("note", store=store, text=TOKEN)
    status = daemon.inside.call("read", f"{place}/.versions/status").decode()
    assert "refused a name: it looks like a secret (GitHub Token)" in status
    assert "refused to write deploy.md: line 3 looks like a secret (GitHub Token)" in status
    assert [len(version["changes"]) for version in daemon.log(store)] == [1]
    daemon.ok("store", "set", store, "--secrets", "flag")
    daemon.inside.call("write", f"{place}/deploy.md", NOTE.encode())
    assert daemon.log(store)[-1]["flags"] == ["secret"]


WRITERS = {
    "a shell": f"echo 'use {TOKEN}' > new.md",
    "dd": f"! printf 'use {TOKEN}' | dd of=new.md status=none",
    "an editor": f"! (printf 'use {TOKEN}' | dd of=new.md status=none && mv new.md deploy.md)",
}


@pytest.mark.parametrize("who", WRITERS)
def test_a_new_file_of_which_all_was_refused_is_neither_there_nor_in_the_log(
    session: Session, store: str, who: str
) -> None:
    daemon, place = session.daemon, f"{session.root}/mnt/memory/state"
    daemon.inside.call("write", f"{place}/deploy.md", b"ask Ann\n")
    daemon.ok("store", "set", store, "--secrets", "refuse")
    daemon.inside.shell(WRITERS[who], cwd=place)
    eventually(lambda: daemon.inside.call("names", place) == ["deploy.md"])
    eventually(lambda: not daemon.inside.call("os.path.exists", f"{place}/new.md"))  # the kernel is told
    assert daemon.inside.call("read", f"{place}/deploy.md") == b"ask Ann\n"
    paths = [change["path"] for version in daemon.log(store) for change in version["changes"]]
    assert paths == ["deploy.md"]
    status = daemon.inside.call("read", f"{place}/.versions/status").decode()
    assert "refused to write new.md: line 1 looks like a secret (GitHub Token)" in status


def test_what_is_imported_or_restored_is_flagged_and_what_is_redacted_is_told_no_more(
    engramfs: Command,
) -> None:
    engramfs.ok("store", "create", "contexts/handbook")
    engramfs.write("tree/deploy.md", NOTE.encode())
    engramfs.ok("import", "contexts/handbook", "tree")
    engramfs.write("tree/deploy.md", b"ask Ann\n")
    engramfs.ok("import", "contexts/handbook", "tree")
    engramfs.ok("restore", "contexts/handbook@1")
    engramfs.ok("import", "contexts/handbook", "tree")
    flags = [version["flags"] for version in engramfs.json("log", "contexts/handbook")]
    assert flags == [[], ["secret"], [], ["secret"]]
    redact = ("redact", "contexts/handbook", "1", "deploy.md", "--everywhere", "--reason", "a token")
    assert engramfs(*redact).code == 0
    for version in engramfs.json("log", "contexts/handbook", "--flag", "secret"):
        assert version["secrets"] == []


def test_without_the_library_no_store_can_be_told_to_refuse_and_doctor_says_what_to_install(
    without_library: Command,
) -> None:
    plain = without_library
    said = plain.refused(1, "store", "create", "contexts/handbook", "--secrets", "refuse")
    assert "pip install 'engramfs[secrets]'" in said
    plain.ok("store", "create", "contexts/handbook")
    assert "engramfs[secrets]" in plain.refused(1, "store", "set", "contexts/handbook", "--secrets", "refuse")
    assert plain.json("store", "show", "contexts/handbook")["secrets"] == "flag"
    plain.write("tree/deploy.md", NOTE.encode())
    plain.ok("import", "contexts/handbook", "tree")
    assert [version["flags"] for version in plain.json("log", "contexts/handbook")] == [[]]
    assert "the extra [secrets] is not installed" in plain("doctor").out
