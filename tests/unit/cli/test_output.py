"""What agents wrote reaches a terminal as text, never as control sequences."""

import pytest

from engramfs.cli.output import Cell, Output


def test_a_table_without_a_terminal_is_plain_aligned_text(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[list[Cell]] = [[("a", "cyan"), "1"], ["long\n", "1,000"]]
    Output(json=False).table(["NAME", "SIZE"], rows, right="SIZE")
    assert capsys.readouterr().out.splitlines() == ["NAME     SIZE", "a           1", r"long\n  1,000"]


def test_a_line_leaves_out_empty_cells_and_colour(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=False).line(("a", "red"), "", ("", "red"), "b")
    assert capsys.readouterr().out == "a  b\n"


def test_a_note_is_json_when_errors_are(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=True).note("something")
    assert capsys.readouterr().err == '{"note": "something"}\n'


def test_progress_without_a_terminal_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Output(json=False).progress("importing") as move:
        move(1, 2, 3, 4)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
