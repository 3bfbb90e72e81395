"""What agents wrote reaches a terminal as text, never as control sequences."""

import pytest

from engramfs.cli.output import Cell, Output
from engramfs.cli.patches import print_stat
from engramfs.cli.versions import print_secrets, ranges
from engramfs.history.diff import Difference
from engramfs.history.hygiene.written import FoundAt, Where
from engramfs.model.entry import Entry, Kind


def test_a_table_without_a_terminal_is_plain_aligned_text(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[list[Cell]] = [[("a", "cyan"), "1"], ["long\n", "1,000"]]
    Output(json=False).table(["NAME", "SIZE"], rows, right="SIZE")
    assert capsys.readouterr().out.splitlines() == ["NAME     SIZE", "a           1", r"long\n  1,000"]


def test_columns_are_aligned_by_what_a_terminal_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """A wide character takes two cells, an accent none, an escape all of its characters."""
    names = ["漢字.md", "e\u0301", "a\udcff", "long\tname"]
    Output(json=False).table(["NAME", "SIZE"], [[name, "1"] for name in names], right="SIZE")
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "NAME        SIZE",
        "漢字.md        1",
        "e\u0301              1",
        r"a\xff          1",
        r"long\tname     1",
    ]


def test_a_summary_is_aligned_by_what_a_terminal_shows(capsys: pytest.CaptureFixture[str]) -> None:
    file = Entry(2, Kind.FILE, 0o644, 2, 0, 0, b"d" * 32)
    found = [Difference(path, None, file) for path in (b"b\xff", "漢字".encode(), b"plain")]
    contents = {b"b\xff": b"1\n", "漢字".encode(): b"1\n" * 12, b"plain": b"\0"}
    print_stat(Output(json=False), found, lambda one: (None, contents[one.path]))
    assert capsys.readouterr().out.splitlines() == [
        r"created file b\xff |  1 +",
        "created file 漢字  | 12 ++++++++++++",
        "created file plain | binary",
        "3 changed, 13 lines added, 0 removed",
    ]


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


def test_numbers_that_follow_each_other_are_a_range() -> None:
    assert ranges([]) == []
    assert ranges([1, 2, 4, 5, 6, 9]) == ["1", "2", "4-6", "9"]


def test_where_a_secret_seems_to_be_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    places: list[tuple[str, Where]] = [
        ("", "message"),
        ("notes/a.md", "content"),
        ("notes/key", "name"),
        ("notes/link", "target"),
        ("notes/a.md", "attribute"),
        ("", "attribute"),
    ]
    found = [FoundAt(path, 3, "AWS Access Key", where) for path, where in places]
    print_secrets(Output(json=False), found)
    said = [line.split("  ")[-2].strip() for line in capsys.readouterr().out.splitlines()]
    assert said == [
        "the message",
        "notes/a.md:3",
        "the name notes/key",
        "where notes/link leads",
        "an attribute of notes/a.md",
        "an attribute of .",
    ]
