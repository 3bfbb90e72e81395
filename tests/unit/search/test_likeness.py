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
        (LONG, LONG.replace("02:30", "03:30")),
        (LONG.replace("Ann", "Ben"), LONG),
        ("ＡＰＩ key rotates monthly", "API key rotates monthly."),
    ],
)
def test_what_has_over_95_percent_in_common_is_the_same(one: str, other: str) -> None:
    found = likeness(one, other)
    assert found.kind == "same"
    assert found.score > SAME


def test_a_negation_makes_another_memory() -> None:
    found = likeness(LONG.replace("and then tells", "and never tells"), LONG)
    assert found.kind == "differs"
    assert RELATED <= found.score <= SAME


def test_sentences_and_words_in_a_row_are_contained() -> None:
    known = "Deploys on Tuesdays. The port is 8080.\nRollback with make down."
    assert likeness("the port is 8080", known).kind == "contained"
    assert likeness("The port is 8080. Rollback with make down", known).kind == "contained"
    assert likeness(known, "Deploys on Tuesdays!").kind == "contains"
    assert likeness("端口是8080。", "周二部署。端口是8080。回滚用 make down。").kind == "contained"
    assert likeness("Rollback with make down. The port is 8080.", known).kind == "differs"
    assert likeness("Deploys on Tuesdays. Rollback with make down.", known).kind == "contained"
    assert likeness("Port 8080", "It is port 8080 that was closed in May").kind == "contained"
    assert likeness("Tuesdays. The port", known).kind == "contained"
    assert likeness("喝茶", "她喜欢喝茶。").kind == "contained"
    assert likeness("port 80", "port 8080").kind == "differs"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("likes tea", "He no longer likes tea."),
        ("喜欢喝茶", "不喜欢喝茶"),
        ("drink coffee", "I don't drink coffee."),
        ("drink coffee", "I don’t drink coffee."),
        ("The port is open. It is 8080", "The port is open. It is 8080 no more. Ask Ann."),
    ],
)
def test_what_another_text_denies_is_not_contained_in_it(one: str, other: str) -> None:
    assert likeness(one, other).kind == "differs"
    assert likeness(other, one).kind == "differs"


def test_nothing_is_contained_in_nothing() -> None:
    assert likeness("", "tea").kind == "differs"
    assert likeness("tea", "…").kind == "differs"


def test_long_texts_are_compared_too() -> None:
    text = " ".join(f"word{number}" for number in range(20_000))
    assert likeness(text, text.replace("word77 ", "word77x ")).kind == "same"
    found = likeness(text, text.replace("word7", "other7"))
    assert (found.kind, RELATED < found.score < SAME) == ("differs", True)
    assert likeness(text, f"{text} and more").kind == "same"
    assert likeness(text[:20_000], text).kind == "differs"  # it ends within a word
    assert likeness("word19 word20", text).kind == "contained"


def test_texts_without_words_are_the_same_only_as_they_are() -> None:
    assert likeness("🙂 !", "🙂!").kind == "same"
    assert likeness("🙂", "🙁").kind == "differs"
