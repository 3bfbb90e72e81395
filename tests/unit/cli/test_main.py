"""Every command loads, takes the global options, and ends with an exit code instead of a traceback."""

import json
from pathlib import Path

import click
import pytest

from engramfs.cli.command import LazyGroup
from engramfs.cli.main import MODULES, root, run
from engramfs.errors import EngramError, UsageError

GLOBAL = {"--state", "--run", "--config", "--json"}


def commands(group: click.Group, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Command]:
    context = click.Context(group)
    found = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found[(*path, name)] = command
        if isinstance(command, click.Group):
            found |= commands(command, (*path, name))
    return found


@pytest.mark.parametrize("path", sorted(commands(root)), ids=" ".join)
def test_every_command_has_help_and_the_global_options(path: tuple[str, ...]) -> None:
    command = commands(root)[path]
    assert command.name == path[-1]
    assert command.help
    options = {name for option in command.params for name in option.opts}
    assert options >= GLOBAL
    assert run([*path, "--help"]) == 0


def test_the_commands_of_the_design_are_there() -> None:
    assert isinstance(root, LazyGroup)
    assert {"up", "down", "daemon", "status", "store", "import", "export", "log", "show"} <= set(MODULES)
    assert {"diff", "restore", "stat", "verify", "backup", "mount", "completion"} <= set(MODULES)


@pytest.mark.parametrize("arguments", [[], ["store"], ["session"]])
def test_without_a_command_the_help_is_printed_as_it_is_and_the_exit_code_is_that_of_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "--help"]) == 0
    asked = capsys.readouterr()
    assert run(arguments) == UsageError.exit_code
    assert capsys.readouterr() == asked
    assert asked.out.startswith("Usage: ")


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make `engramfs version` fail like that."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("engramfs.cli.version.command.callback", fail)


def test_an_error_message_of_several_lines_is_said_in_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, EngramError("one\n  two"))
    assert run(["version"]) == 1
    assert capsys.readouterr().err == "engramfs: one two\n"


def test_an_interrupted_command_exits_130(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    assert run(["version"]) == 130


def test_an_error_of_the_system_names_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, PermissionError(13, "Permission denied", "/x"))
    assert run(["version", "--json"]) == 1
    assert json.loads(capsys.readouterr().err) == {"code": "failed", "message": "/x: Permission denied"}


def test_a_bug_is_one_line_too_and_a_traceback_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, ZeroDivisionError("oops"))
    assert run(["version"]) == 1
    assert "internal error: ZeroDivisionError: oops" in capsys.readouterr().err
    monkeypatch.setenv("ENGRAMFS_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        run(["version"])


def test_version_prints_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version"]) == 0
    assert capsys.readouterr().out.startswith("engramfs ")


def test_the_places_come_from_the_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--run", str(tmp_path), "status", "--state", str(tmp_path)]) == 6
    assert str(tmp_path / "control") in capsys.readouterr().err
