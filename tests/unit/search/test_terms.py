"""What counts as a term: words, identifiers whole and in parts, CJK characters and pairs."""

import pytest

from engramfs.search.terms import index_terms, query_terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("batch.max_age", {"batch.max_age", "batch", "max_age", "max", "age"}),
        ("readOnlyView", {"readonlyview", "read", "only", "view"}),
        ("HTTPServer2", {"httpserver2", "http", "server", "2"}),
        ("src/vfs/cut.py", {"src/vfs/cut.py", "src", "vfs", "cut.py", "cut", "py"}),
        ("git@example.org", {"git@example.org", "git", "example.org", "example", "org"}),
        ("ＦＵＬＬ　ｗｉｄｔｈ", {"full", "width"}),
        ("naïve Straße", {"naïve", "strasse"}),
        ("--dry-run,", {"dry-run", "dry", "run"}),
        ("E0502", {"e0502", "e", "0502"}),
    ],
)
def test_an_identifier_is_kept_whole_and_in_its_parts(text: str, expected: set[str]) -> None:
    assert expected <= set(index_terms(text))


@pytest.mark.parametrize("text", ["茶", "喝茶", "お茶", "서울", "カメラ"])
def test_each_character_and_pair_of_a_word_without_blanks_is_a_term(text: str) -> None:
    terms = set(index_terms(f"前{text}後"))
    assert set(text) <= terms
    assert {text[at : at + 2] for at in range(len(text) - 1)} <= terms


def test_a_question_is_asked_for_what_it_is_about() -> None:
    assert {one.term for one in query_terms("what is the name of the cat?")} == {"name", "cat"}
    pairs = {one.term for one in query_terms("猫叫什么名字")}
    assert "名字" in pairs
    assert "什么" not in pairs


def test_an_identifier_is_not_asked_for_by_its_single_letters_and_digits() -> None:
    asked = {one.term for one in query_terms("AKIAQ3EGRZ7LMNBVCX2T")}
    assert asked == {"akiaq3egrz7lmnbvcx2t", "akiaq", "egrz", "lmnbvcx"}
    assert {one.term for one in query_terms("C 7")} == {"c", "7"}


def test_a_question_of_nothing_but_such_words_is_asked_all_the_same() -> None:
    assert [one.term for one in query_terms("The Who")] == ["the", "who"]


def test_a_pair_counts_more_than_a_character_of_it() -> None:
    weights = {one.term: one.weight for one in query_terms("上海 茶")}
    assert weights["上海"] == weights["茶"] > weights["海"] > 0


def test_what_is_too_long_for_a_word_is_no_term() -> None:
    assert index_terms("a" * 10_000) == []
    assert query_terms("") == []
