"""Arguments that mean nothing are refused in one line that says what is wrong, and nothing is done."""

from ..harness.command import Command

STORE = "contexts/handbook"


def test_the_root_cannot_be_redacted_under_any_of_its_names(handbook: Command) -> None:
    before = handbook.ok("log", STORE, "-p")
    for path in ("", "/", ".", "/./"):
        for more in ((), ("--recursive",)):
            said = handbook.refused(2, "redact", STORE, "1", path, "--reason", "a reason", *more)
            assert said == f"the root of {STORE} has no name; name what is in it"
    assert handbook.ok("log", STORE, "-p") == before
    assert handbook.json("redact", STORE, "1", "./old//a", "--reason", "a reason")["changes"] == 2


def test_a_reason_that_says_nothing_is_none(handbook: Command) -> None:
    for arguments in (("redact", STORE, "1", "old/a"), ("pending", "reject", STORE, "1")):
        for reason in ("", " "):
            said = handbook.refused(2, *arguments, "--reason", reason)
            assert said == "the reason is empty; say why with --reason TEXT"


def test_a_name_that_no_store_can_have_is_said_to_be_that(handbook: Command) -> None:
    assert "store name '' is empty" in handbook.refused(2, "log", "")
    assert "is 600 bytes long" in handbook.refused(2, "log", "/".join(["a" * 149] * 4) + "b")


def test_a_state_without_stores_has_nothing_to_collect(engramfs: Command) -> None:
    for _ in range(2):
        assert "holds no stores yet" in engramfs.refused(3, "gc")
        engramfs.state.mkdir(exist_ok=True)
