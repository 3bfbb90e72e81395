"""What the commands say of a version of which retention left only part, and do with what is left."""

import pytest

from ..harness.command import Command

STORE = "memory/default/state"


@pytest.fixture
def pruned(engramfs: Command) -> Command:
    """Versions 1 and 2 are kept in part: the first brought `kept`, which is live, and `log`, which is not."""
    engramfs.ok("store", "create", STORE)
    for number in range(1, 7):
        engramfs.write("tree/log", b"%d\n" % number)
        engramfs.write("tree/kept", b"one\ntwo\n")
        if number > 1:
            engramfs.write("tree/notes/also", b"kept\n")
        engramfs.ok("import", STORE, "tree")
    engramfs.ok("store", "set", STORE, "--keep-versions", "2")
    engramfs.ok("gc")
    return engramfs


def test_log_and_show_mark_it(pruned: Command) -> None:
    found = pruned.json("log", STORE)
    assert [(one["number"], one.get("partial", False)) for one in found] == [
        (6, False),
        (5, False),
        (2, True),
        (1, True),
    ]
    lines = pruned.ok("log", STORE).splitlines()
    assert ["(partial)" in line for line in lines] == [False, False, True, True]
    assert pruned.json("show", f"{STORE}@1")["partial"] is True
    shown = pruned.ok("show", f"{STORE}@1")
    assert "kept     in part: retention removed the rest of its tree" in shown
    assert f"the oldest whole version is {STORE}@5" in shown
    assert "in part" not in pruned.ok("show", f"{STORE}@5")


def test_commands_about_one_path_work_where_its_content_is_kept(pruned: Command) -> None:
    assert pruned.ok("show", f"{STORE}@1:kept") == "one\ntwo\n"
    assert pruned.ok("show", f"{STORE}@2:kept") == "one\ntwo\n"
    assert pruned.ok("blame", f"{STORE}@2", "kept").count("@1") == 2
    assert "@1" in pruned.ok("blame", STORE, "kept")
    pruned.write("tree/kept", b"one\n2\n")
    pruned.ok("import", STORE, "tree")
    patch = pruned.ok("diff", f"{STORE}@1", "kept").splitlines()
    assert [line for line in patch if line.startswith(("-t", "+2"))] == ["-two", "+2"]
    pruned.ok("restore", f"{STORE}@1", "kept")
    assert pruned.ok("show", f"{STORE}:kept") == "one\ntwo\n"
    assert "is not kept any more" in pruned.refused(3, "show", f"{STORE}@1:log")
    assert pruned("redact", STORE, "1", "log", "--reason", "a reason").code == 0
    assert "(redacted)" in pruned.ok("show", f"{STORE}@1")
    pruned.ok("verify")


def test_commands_about_the_whole_say_why_not_and_what_to_do(pruned: Command) -> None:
    old = f"{STORE}@1"
    for arguments in (
        ("diff", old),
        ("restore", old),
        ("tree", old),
        ("show", f"{old}:"),
        ("export", old, "x"),
    ):
        assert pruned.refused(3, *arguments) == (
            f"{old} is kept only in part: retention removed the rest of its tree; name one PATH that it "
            f"brought (engramfs show {old}), or a version from 5 on"
        )
    assert "not kept any more as a whole" in pruned.refused(3, "revert", STORE, "2")
    assert "nothing to compare with" in pruned.ok("show", f"{STORE}@2", "--stat")
    assert f"{STORE}@2 is not kept any more as a whole" in pruned.ok("log", STORE, "-p")
    time = pruned.json("show", f"{STORE}@2")["time"]
    assert "kept only in part" in pruned.refused(3, "restore", STORE, "kept", "--at", time)
