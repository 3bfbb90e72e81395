"""An edit of a text keeps how its lines end."""

import pytest

from engramfs.model.line_endings import replace_text, with_newlines


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("a\nb\nc\n", "b", "B", "a\nB\nc\n"),
        ("a\r\nb\r\nc\r\n", "a\nb", "a\nnew\nb", "a\r\nnew\r\nb\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nb", "A\r\nB", "A\r\nB\r\nc\r\n"),
        ("a\r\nb\nc\rd", "b", "1\n2", "a\r\n1\n2\nc\rd"),
        ("a\r\nb\nc\rd", "c", "1\n2", "a\r\nb\n1\r2\rd"),
        ("a\r\nb\nc\rd", "d", "1\n2", "a\r\nb\nc\r1\r2"),
        ("a\r\nb\nc\rd", "a\nb\n", "", "c\rd"),
        ("x\r\nx\nx", "x", "y\nz", "y\r\nz\r\ny\nz\ny\nz"),
        ("one line", "one", "1\n2", "1\n2 line"),
        ("a\r\n\r\nb", "\n\n", "\n", "a\r\nb"),
        ("a\r\nb", "none", "x", "a\r\nb"),
    ],
)
def test_what_is_left_alone_keeps_its_endings_and_what_is_new_takes_those_of_its_place(
    text: str, old: str, new: str, after: str
) -> None:
    assert replace_text(text, old, new) == after
    assert with_newlines(after) == with_newlines(text).replace(with_newlines(old), with_newlines(new))
