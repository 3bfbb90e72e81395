"""Sizes and durations as people write them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engramfs.errors import UsageError
from engramfs.model.quantities import format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("4096", 4096), ("64MiB", 64 << 20), ("10 GB", 10**10), ("1.5K", 1536), (" 2TiB ", 2 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1XB", "1e3", "1 2", "٣"])
def test_what_is_no_size_is_said_so(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size; write it like"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("50ms", 0.05), ("1s", 1), ("2h", 7200), ("0.5m", 30), ("1d", 86400)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "1", "s", "-1s", "1y"])
def test_what_is_no_duration_is_said_so(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration; write it like"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (64 << 20, "64 MiB"),
        (3 << 40, "3 TiB"),
    ],
)
def test_sizes_for_people(size: int, text: str) -> None:
    assert format_size(size) == text


@settings(deadline=None)
@given(st.integers(0, 1 << 50))
def test_what_is_shown_can_be_written_again_within_rounding(size: int) -> None:
    assert parse_size(format_size(size)) == pytest.approx(size, rel=0.06)
