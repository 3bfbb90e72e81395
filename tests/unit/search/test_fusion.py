"""How two rankings become one."""

from engramfs.search.fusion import fuse


def test_what_both_rankings_find_comes_first() -> None:
    fused = fuse({"keyword": ["a", "b", "c"], "semantic": ["d", "b", "e"]})
    assert fused[0][0] == "b"
    assert fused[0][1].matched == ("keyword", "semantic")
    assert {key for key, _ in fused} == {"a", "b", "c", "d", "e"}


def test_one_ranking_keeps_its_order() -> None:
    assert [key for key, _ in fuse({"keyword": [3, 1, 2]})] == [3, 1, 2]
