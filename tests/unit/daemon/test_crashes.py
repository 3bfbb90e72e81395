"""One crash costs nothing, several in a row wait longer and longer, too many end the keeper."""

from engramfs.daemon.crashes import SETTLED, Crashes


def test_waits_double_and_the_fifth_crash_in_a_row_is_the_last() -> None:
    crashes = Crashes()
    assert [crashes.delay(0.0) for _ in range(5)] == [0.0, 0.1, 0.2, 0.4, None]


def test_a_worker_that_served_a_while_begins_a_new_row() -> None:
    crashes = Crashes()
    assert [crashes.delay(SETTLED) for _ in range(10)] == [0.0] * 10


def test_the_third_crash_in_a_row_puts_the_blame_on_the_connection() -> None:
    crashes = Crashes()
    blamed = []
    for _ in range(3):
        crashes.delay(0.0)
        blamed.append(crashes.connection_is_suspect)
    assert blamed == [False, False, True]


def test_a_kill_from_outside_is_no_fault_of_the_connection() -> None:
    crashes = Crashes()
    assert [crashes.delay(0.0, from_outside=True) for _ in range(4)] == [0.0, 0.1, 0.2, 0.4]
    assert not crashes.connection_is_suspect
