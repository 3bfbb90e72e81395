"""`STORE@N:PATH`, although an actor's id may hold `@` and `:` itself."""

import pytest

from engramfs.errors import InvalidName, UsageError
from engramfs.model.reference import Reference, parse_reference


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("contexts/a", Reference("contexts/a")),
        ("contexts/a@3", Reference("contexts/a", 3)),
        ("contexts/a@0", Reference("contexts/a", 0)),
        ("contexts/a:b/c", Reference("contexts/a", None, b"b/c")),
        ("contexts/a@3:b/c", Reference("contexts/a", 3, b"b/c")),
        ("contexts/a@3:b@2:c", Reference("contexts/a", 3, b"b@2:c")),
        ("contexts/a@3:/b/", Reference("contexts/a", 3, b"b")),
        ("contexts/a:", Reference("contexts/a", None, b"")),
        ("contexts/a:\udcff\n", Reference("contexts/a", None, b"\xff\n")),
        ("memories/alice", Reference("memories/alice")),
        ("memories/alice@7", Reference("memories/alice", 7)),
        ("memories/alice@example.org", Reference("memories/alice@example.org")),
        ("memories/alice@example.org@7", Reference("memories/alice@example.org", 7)),
        ("memories/alice@example.org@7:notes", Reference("memories/alice@example.org", 7, b"notes")),
        ("memories/acme/u:1@7:notes", Reference("memories/acme/u:1", 7, b"notes")),
    ],
)
def test_references(text: str, expected: Reference) -> None:
    assert parse_reference(text) == expected


def test_a_store_of_that_very_name_wins() -> None:
    assert parse_reference("memories/alice@7", {"memories/alice@7"}.__contains__) == Reference(
        "memories/alice@7"
    )
    assert parse_reference("memories/u:1", {"memories/u:1"}.__contains__) == Reference("memories/u:1")


@pytest.mark.parametrize("text", ["contexts/a@", "contexts/a@x", "contexts/a@1@2", "contexts/a@٣"])
def test_a_version_that_is_no_number_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="a version is a number"):
        parse_reference(text)


@pytest.mark.parametrize("text", ["", "../a", "/a@1", "@1", "a//b:c"])
def test_a_store_name_that_is_not_allowed_is_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        parse_reference(text)
