"""One crash costs nothing, several in a row wait longer and longer, too many end the keeper."""

from engramfs.daemon.crashes import Crashes


def test_waits_double_and_the_fifth_crash_within_ten_seconds_is_the_last() -> None:
    crashes = Crashes()
    assert [crashes.delay(float(second)) for second in range(5)] == [0.0, 0.1, 0.2, 0.4, None]


def test_crashes_far_apart_are_each_the_first() -> None:
    crashes = Crashes()
    assert [crashes.delay(float(second)) for second in range(0, 200, 20)] == [0.0] * 10
