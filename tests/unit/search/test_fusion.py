"""How two rankings become one."""

import pytest

from engramfs.search.fusion import fuse


def test_what_both_rankings_find_comes_first() -> None:
    fused = fuse(
        {"keyword": [(key, 1.0) for key in "abc"], "semantic": [(key, 1.0) for key in "dbe"]},
    )
    assert fused[0][0] == "b"
    assert fused[0][1].matched == ("keyword", "semantic")
    assert {key for key, _ in fused} == set("abcde")


def test_one_ranking_keeps_its_order() -> None:
    fused = fuse({"keyword": [(3, 1.0), (1, 1.0), (2, 1.0)]})
    assert [key for key, _ in fused] == [3, 1, 2]
    assert fused[0][1].score == 1


def test_a_first_place_with_little_of_the_question_gives_way() -> None:
    fused = fuse({"keyword": [("word", 0.1)], "semantic": [("other", 1.0), ("meaning", 1.0)]})
    assert [key for key, _ in fused] == ["other", "meaning", "word"]


def test_the_first_of_all_with_full_weight_scores_one() -> None:
    fused = fuse({"keyword": [("a", 1.0)], "semantic": [("a", 1.0)]})
    assert fused[0][1].score == pytest.approx(1)
