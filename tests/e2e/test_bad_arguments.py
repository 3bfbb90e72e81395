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
