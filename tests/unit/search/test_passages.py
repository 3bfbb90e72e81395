"""Where a text is cut."""

from engramfs.search.passages import LONGEST, passages


def test_a_short_text_is_one_passage() -> None:
    (only,) = passages("one\ntwo\n", first_line=8)
    assert (only.first, only.last, only.text) == (8, 9, "one\ntwo")


def test_a_blank_text_has_none() -> None:
    assert passages("\n  \n") == []


def test_a_heading_begins_a_passage_and_names_those_below_it() -> None:
    text = "# Deploying\nOn Tuesdays.\n\n## Rollback\nRun make down.\n\n# People\nAnn."
    found = [(one.first, one.last, one.headings) for one in passages(text)]
    assert found == [(1, 2, ()), (4, 5, ("Deploying",)), (7, 8, ())]


def test_a_heading_in_a_code_block_is_none() -> None:
    assert len(passages("```\nmake\n# not a heading\n```\n")) == 1


def test_a_long_text_is_cut_at_paragraphs_and_every_line_is_in_a_passage() -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "word " * 60 for number in range(20))
    found = passages(text)
    assert len(found) > 5
    assert all(len(one.text) <= LONGEST for one in found)
    lines = text.split("\n")
    covered = {number for one in found for number in range(one.first, one.last + 1)}
    assert {number for number, line in enumerate(lines, 1) if line.strip()} <= covered
    assert all(one.text.startswith("Paragraph") for one in found)


def test_where_a_paragraph_is_cut_the_last_line_is_repeated() -> None:
    found = passages("\n".join(f"line {number} " + "x" * 90 for number in range(40)))
    assert [one.first for one in found[1:]] == [one.last for one in found[:-1]]


def test_a_line_without_end_is_cut_too() -> None:
    found = passages("x " * (1 << 16))
    assert all(one.first == one.last == 1 and len(one.text) <= LONGEST for one in found)
    assert "".join(one.text for one in found).count("x") == 1 << 16


def test_wide_characters_fill_a_passage_sooner() -> None:
    assert len(passages("\n".join(["记忆" * 50] * 12))) > len(passages("\n".join(["memory" * 17] * 12)))
