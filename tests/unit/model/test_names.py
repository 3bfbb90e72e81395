"""Names become paths below a mount, so nothing that a path walk would interpret is let through."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engramfs.errors import InvalidName
from engramfs.model.names import MAX_NAME, check_id, check_store_name, kind_of, printable, raw


@pytest.mark.parametrize(
    "name",
    [
        "contexts/handbook",
        "memory/digest/state",
        "memories/alice",
        "memories/acme/alice@example.org:2",
        "org-memory",
        "agents/digest",
        "contexts/größe",
        "contexts/..a",
        "x" * 255,
        "memories/a..b",
    ],
)
def test_allowed_store_names(name: str) -> None:
    assert check_store_name(name) == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "is empty"),
        ("/etc", "is an absolute path"),
        ("contexts/../x", "holds the part '..'"),
        ("..", "holds the part '..'"),
        ("contexts/.", "holds the part '.'"),
        ("contexts//x", "has an empty part"),
        ("contexts/", "has an empty part"),
        ("a\nb", "holds a control character"),
        ("a\0b", "holds a control character"),
        ("a\x7fb", "holds a control character"),
        ("contexts/" + "x" * 256, "has a part of 256 bytes"),
        ("contexts/" + "ü" * 128, "has a part of 256 bytes"),
        ("/".join(["x" * 200] * 3), "is 602 bytes long"),
        ("contexts/a@1", "holds '@' or ':'"),
        ("contexts/a:b", "holds '@' or ':'"),
        ("contexts/\udcff", "is not valid UTF-8"),
    ],
)
def test_refused_store_names_say_why_in_one_line(name: str, why: str) -> None:
    with pytest.raises(InvalidName) as caught:
        check_store_name(name)
    assert why in caught.value.message
    assert caught.value.message.isprintable()


@settings(deadline=None)
@given(st.text(max_size=300))
def test_a_name_that_is_let_through_stays_below_its_directory(name: str) -> None:
    try:
        check_store_name(name)
    except InvalidName:
        return
    parts = name.split("/")
    assert not {"", ".", ".."} & set(parts)
    assert all(0 < len(part.encode()) <= 255 for part in parts)
    assert len(name.encode()) <= MAX_NAME
    assert not any(ord(character) < 32 for character in name)


@pytest.mark.parametrize("value", ["a", "alice@example.org", "a+b:c", "0", "x" * 128, "..."])
def test_allowed_ids(value: str) -> None:
    assert check_id(value, "actor") == value


@pytest.mark.parametrize("value", ["", ".", "..", "a/b", "a b", "a\n", "ü", "x" * 129, "a\0"])
def test_refused_ids_say_which(value: str) -> None:
    with pytest.raises(InvalidName, match=r"tenant id .* is not allowed"):
        check_id(value, "tenant")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("contexts/a", "context"),
        ("memory/a/b", "memory"),
        ("memories/a", "memories"),
        ("org-memory", "org"),
        ("agents/a", "agent"),
        ("else", "other"),
    ],
)
def test_the_kind_is_read_off_the_name(name: str, kind: str) -> None:
    assert kind_of(name) == kind


@settings(deadline=None)
@given(st.binary())
def test_any_file_name_survives_being_text(name: bytes) -> None:
    assert raw(printable(name)) == name
