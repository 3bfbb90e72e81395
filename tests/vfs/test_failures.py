"""What went wrong is kept for the next worker: the newest, whatever becomes of the file."""

from pathlib import Path

from engramfs.vfs.failures import KEPT, Failures


def test_the_next_worker_has_the_newest_and_the_file_stays_small(tmp_path: Path) -> None:
    path = str(tmp_path / "failures")
    first = Failures(path)
    for number in range(10 * KEPT):
        first.add("contexts/a", f"refused \udcff {number}")
    assert len(Path(path).read_bytes().splitlines()) <= 4 * KEPT
    second = Failures(path, keep=True)
    assert list(second) == list(first)
    assert [each.what for each in second][-1] == f"refused \udcff {10 * KEPT - 1}"
    second.add("", "one more")
    assert list(Failures(path, keep=True)) == list(second)
    assert list(Failures(path)) == []
    assert list(Failures(path, keep=True)) == []


def test_a_line_that_was_cut_short_and_a_file_that_cannot_be_written_stop_nothing(tmp_path: Path) -> None:
    path = tmp_path / "failures"
    Failures(str(path)).add("", "whole")
    path.write_bytes(path.read_bytes() + b'[1, "cut sh')
    again = Failures(str(path), keep=True)
    again.add("", "after")
    assert [each.what for each in Failures(str(path), keep=True)] == ["whole", "after"]
    nowhere = Failures(str(tmp_path / "absent" / "failures"))
    nowhere.add("", "said all the same")
    assert [each.what for each in nowhere] == ["said all the same"]
