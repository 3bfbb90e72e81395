"""Moments as text, to the nanosecond."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engramfs.errors import UsageError
from engramfs.model.times import format_time, parse_time


def test_a_moment_has_every_digit() -> None:
    assert format_time(0) == "1970-01-01T00:00:00.000000000Z"
    assert format_time(1_700_000_000_123_456_789) == "2023-11-14T22:13:20.123456789Z"


@settings(deadline=None)
@given(st.integers(0, 250_000_000_000 * 10**9))
def test_a_moment_comes_back_from_its_text(time: int) -> None:
    assert parse_time(format_time(time)) == time


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2023-11-14T22:13:20Z", 1_700_000_000 * 10**9),
        ("2023-11-14T22:13:20", 1_700_000_000 * 10**9),
        ("2023-11-14 22:13:20.5z", 1_700_000_000_500_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000 * 10**9),
        ("2023-11-14T22:13", 1_699_999_980 * 10**9),
        ("2023-11-14", 1_699_920_000 * 10**9),
    ],
)
def test_what_people_write(text: str, time: int) -> None:
    assert parse_time(text) == time


@pytest.mark.parametrize("text", ["", "yesterday", "2023-13-01", "2023-11-14T25:00", "2023-11-14T"])
def test_what_is_no_time_is_said_so(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time; write it like"):
        parse_time(text)
