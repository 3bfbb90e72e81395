"""What agents read of the lately happened says nothing of where it is kept on the host."""

import pytest

from engramfs.vfs.failures import Failure
from engramfs.vfs.recent import Recent

STATE = "/var/lib/engramfs"


@pytest.mark.parametrize(
    ("what", "shown"),
    [
        (
            "no space left for the log in /var/lib/engramfs, tried again",
            "no space left for the log in {}, tried again",
        ),
        ("the journal /var/lib/engramfs/journal: full", "the journal {}/journal: full"),
        ("a is not b: /var/lib/engramfs", "a is not b: {}"),
        ("a/var/lib/engramfs2 was closed", "a/var/lib/engramfs2 was closed"),
    ],
)
def test_the_state_directory_is_not_named(what: str, shown: str) -> None:
    recent, earlier = Recent(state=STATE), Recent([Failure(0, "memory/x", what)], state=STATE)
    assert recent.add(what)
    assert not recent.add(what), "it is the same line again"
    for each in (recent, earlier):
        [line] = each
        assert line.partition(" ")[2] == shown.format("(state directory)")


def test_one_that_was_given_by_a_name_alone_is_no_place_on_the_host() -> None:
    recent = Recent(state="state")
    recent.add("memory/digest/state was closed")
    assert next(iter(recent)).endswith(" memory/digest/state was closed")
