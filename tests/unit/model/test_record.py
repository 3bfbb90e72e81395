"""A record's file: written by programs, edited by people, read leniently."""

import pytest

from engramfs.model import front_matter
from engramfs.model.record import Record, parse, render

RECORD = Record(
    id="0a1b",
    content="Tea, never coffee.\n---\n茶",
    category="preferences",
    tags=("drink", "home: yes"),
    agent="digest",
    session="s1",
    metadata={"history": [{"value": "Coffee.", "updatedAt": "2026-01-01T00:00:00Z"}]},
    created="2026-01-01T00:00:00Z",
    updated="2026-01-02T00:00:00Z",
)


def test_what_is_written_is_read_back() -> None:
    text = render(RECORD)
    parsed = parse(text, RECORD.path)
    assert parsed == Record(
        **{**{f: getattr(RECORD, f) for f in RECORD.__struct_fields__}, "line": parsed.line}
    )
    assert text.split("\n")[parsed.line - 1] == "Tea, never coffee."


def test_what_is_in_two_places_is_written_twice() -> None:
    shared = ["a"]
    text = front_matter.join({"one": shared, "two": shared}, "x")
    assert front_matter.split(text)[0] == {"one": ["a"], "two": ["a"]}


def test_times_stay_text() -> None:
    fields, _, _ = front_matter.split("---\ncreated: 2026-01-01T00:00:00Z\n---\nx")
    assert fields == {"created": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no front matter",
        "---\nnever closed",
        "---\n- a list\n---\nx",
        "---\na: [\n---\nx",
        "---\n: :\n\t\n---",
    ],
)
def test_what_cannot_be_read_is_content(text: str) -> None:
    assert front_matter.split(text) == ({}, text, 1)
    parsed = parse(text, "records/work/7f.md")
    assert (parsed.id, parsed.category, parsed.content) == ("7f", "work", text)


def test_fields_of_another_type_count_as_missing() -> None:
    parsed = parse(
        "---\nid: [1]\ntags: one\nmetadata: 3\ncreated: true\nagentId: 7\n---\nx\n", "records/a/b.md"
    )
    assert (parsed.id, parsed.tags, parsed.metadata, parsed.created) == ("b", (), {}, "")
    assert (parsed.agent, parsed.content) == ("7", "x")


def test_the_path_says_the_category() -> None:
    """So that a file which was moved by hand is where its directory says."""
    assert parse("---\ncategory: old\n---\nx", "records/new/a.md").category == "new"
