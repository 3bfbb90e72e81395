"""One crash costs nothing, several in a row wait longer and longer; kills from outside wait little."""

from engramfs.daemon.crashes import LIMIT, LONGEST, LONGEST_OUTSIDE, SETTLED, Crashes


def test_waits_double_up_to_the_longest_and_the_fifth_crash_in_a_row_is_one_that_nothing_helps() -> None:
    crashes = Crashes()
    waits, hopeless = [], []
    for _ in range(12):
        waits.append(crashes.delay())
        hopeless.append(crashes.is_hopeless)
    assert waits[:5] == [0.0, 0.1, 0.2, 0.4, 0.8]
    assert waits[-1] == LONGEST
    assert hopeless.index(True) == LIMIT - 1


def test_a_worker_that_served_a_while_begins_a_new_row_however_it_ended() -> None:
    crashes = Crashes()
    for _ in range(10):
        crashes.served(SETTLED)
        assert crashes.delay() == 0.0
    crashes.served(SETTLED)
    assert crashes.delay() == 0.0


def test_the_third_crash_in_a_row_puts_the_blame_on_the_connection() -> None:
    crashes = Crashes()
    blamed = []
    for _ in range(3):
        crashes.delay()
        blamed.append(crashes.connection_is_suspect)
    assert blamed == [False, False, True]


def test_kills_from_outside_are_no_fault_of_anything_and_never_wait_long() -> None:
    crashes = Crashes()
    assert [crashes.delay(from_outside=True) for _ in range(4)] == [0.0, 0.1, 0.2, 0.4]
    assert max(crashes.delay(from_outside=True) for _ in range(20)) == LONGEST_OUTSIDE
    assert not crashes.connection_is_suspect
    assert not crashes.is_hopeless
