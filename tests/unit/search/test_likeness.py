"""When a memory says what another says already, and when it only looks so."""

import pytest

from engramfs.search.likeness import RELATED, SAME, likeness

LONG = """
The nightly import of the warehouse runs at 02:30 on the machine batch-7, writes its log to /var/log/import,
retries three times and then tells Ann in the channel of the data team, who looks at it before nine
and decides with the people of the warehouse whether the report of the day waits for it or goes out without.
"""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Likes tea.", "likes  TEA"),
        ("喜欢喝茶。", "喜欢喝茶"),
        (LONG, LONG.replace("on the machine", "at the machine")),
        ("ＡＰＩ key rotates monthly", "API key rotates monthly."),
    ],
)
def test_what_differs_in_nothing_that_counts_is_the_same(one: str, other: str) -> None:
    found = likeness(one, other)
    assert found.kind == "same"
    assert found.score > SAME


@pytest.mark.parametrize(
    ("old", "new"),
    [("02:30", "03:30"), ("batch-7", "batch-8"), ("Ann", "Ben"), ("and then tells", "and never tells")],
)
def test_another_number_name_or_negation_is_another_memory(old: str, new: str) -> None:
    found = likeness(LONG.replace(old, new), LONG)
    assert found.kind == "differs"
    assert RELATED <= found.score <= SAME


def test_whole_sentences_are_contained() -> None:
    known = "Deploys on Tuesdays. The port is 8080.\nRollback with make down."
    assert likeness("the port is 8080", known).kind == "contained"
    assert likeness("The port is 8080. Rollback with make down", known).kind == "contained"
    assert likeness(known, "Deploys on Tuesdays!").kind == "contains"
    assert likeness("端口是8080。", "周二部署。端口是8080。回滚用 make down。").kind == "contained"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("likes tea", "He no longer likes tea."),
        ("喜欢喝茶", "不喜欢喝茶"),
        ("Port 8080", "Port 8080 was closed in May"),
        (
            "Deploys on Tuesdays. Rollback with make down.",
            "Deploys on Tuesdays. Port 8080. Rollback with make down.",
        ),
    ],
)
def test_a_part_of_a_sentence_is_not(one: str, other: str) -> None:
    assert likeness(one, other).kind == "differs"
    assert likeness(other, one).kind == "differs"


def test_nothing_is_contained_in_nothing() -> None:
    assert likeness("", "tea").kind == "differs"
    assert likeness("tea", "…").kind == "differs"


def test_long_texts_are_compared_too() -> None:
    text = " ".join(f"word{number}" for number in range(20_000))
    found = likeness(text, text.replace("word77 ", "word77x "))
    assert found.kind == "differs"
    assert found.score == SAME
