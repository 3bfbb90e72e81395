"""What was said of a path is not said any more once the path was redacted."""

import json
from pathlib import Path

import pytest

from engramfs.vfs.failures import REDACTED, Failures
from engramfs.vfs.recent import Recent

PATHS = {"top/hunter2", "a b"}


@pytest.mark.parametrize(
    "said", ["top/hunter2 was closed", "refused to write top/hunter2: no", "a b/c, d is"]
)
def test_a_line_that_names_the_path_or_something_below_it_goes(said: str) -> None:
    recent = Recent()
    recent.add(said)
    recent.redact(PATHS)
    [line] = recent
    assert line.endswith(f"Z {REDACTED}")


@pytest.mark.parametrize("said", ["top/hunter2.md was", "my-top/hunter2 was", "a bc was", "top/hunter was"])
def test_a_line_that_names_another_path_stays(said: str) -> None:
    recent = Recent()
    recent.add(said)
    recent.redact(PATHS)
    [line] = recent
    assert line.endswith(f"Z {said}")


def test_the_file_of_failures_loses_it_and_keeps_what_another_store_has(tmp_path: Path) -> None:
    path = tmp_path / "failures"
    failures = Failures(str(path))
    for store in ("one", "two"):
        failures.add(store, "top/hunter2 was closed")
    failures.redact("one", PATHS)
    failures.add("one", "later")
    expected = [("one", REDACTED), ("two", "top/hunter2 was closed"), ("one", "later")]
    assert [(each.store, each.what) for each in failures] == expected
    assert [tuple(json.loads(line)[1:]) for line in path.read_text().splitlines()] == expected
    assert list(Failures(str(path), keep=True)) == list(failures)
