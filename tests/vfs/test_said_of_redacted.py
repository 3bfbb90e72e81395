"""What was said of a path names it no more once the path was redacted."""

import json
from pathlib import Path

import pytest

from engramfs.vfs.failures import REDACTED, Failures
from engramfs.vfs.recent import Recent

PATHS = {"top/hunter2", "a", "a b"}


def left_of(said: str) -> str:
    recent = Recent()
    recent.add(said)
    recent.redact(PATHS)
    [line] = recent
    return line.partition(" ")[2]


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("top/hunter2 was closed", "(redacted) was closed"),
        ("refused to write top/hunter2: no", "refused to write (redacted): no"),
        ("written to a b, a and c", "written to (redacted), (redacted) and c"),
        ("written to c and top/hunter2/my own, and lost", REDACTED),
    ],
)
def test_the_path_goes_and_with_what_is_below_it_the_whole_line(said: str, left: str) -> None:
    assert left_of(said) == left


@pytest.mark.parametrize("said", ["top/hunter2.md was", "my-top/hunter2 was", "top/hunter was", "top/a is"])
def test_a_line_that_names_another_path_stays(said: str) -> None:
    assert left_of(said) == said


def test_the_file_of_failures_loses_it_and_keeps_what_another_store_has(tmp_path: Path) -> None:
    path = tmp_path / "failures"
    failures = Failures(str(path))
    for store in ("one", "two"):
        failures.add(store, "top/hunter2 was closed")
    failures.redact("one", PATHS)
    failures.add("one", "later")
    expected = [("one", "(redacted) was closed"), ("two", "top/hunter2 was closed"), ("one", "later")]
    assert [(each.store, each.what) for each in failures] == expected
    assert [tuple(json.loads(line)[1:]) for line in path.read_text().splitlines()] == expected
    assert list(Failures(str(path), keep=True)) == list(failures)
