"""What agents wrote reaches people as text, never as control sequences."""

import pytest

from engramfs.model.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 漢", "plain ü 漢"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("two\nlines\t", r"two\nlines\t"),
        ("a\udcffb", r"a\xffb"),
        ("‮txt.exe", r"\u202etxt.exe"),
    ],
)
def test_what_does_not_print_is_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown
