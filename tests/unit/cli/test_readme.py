"""The README names what there is."""

import re
from pathlib import Path

import click

from engramfs.cli.main import MODULES, root

README = (Path(__file__).parents[3] / "README.md").read_text()
COMMANDS = README[README.index("## Commands") : README.index("## What a person does with it")]
SPARE = {"daemon", "version"}  # what `up` starts, and what everybody tries


def test_every_command_is_in_the_table() -> None:
    named = set(re.findall(r"[a-z][a-z-]+", "".join(re.findall(r"`[^`]*`", COMMANDS))))
    assert set(MODULES) - SPARE - named == set()


def test_every_option_in_the_table_is_one() -> None:
    known = {option for name in MODULES for option in _options(root.get_command(click.Context(root), name))}
    assert set(re.findall(r"--[a-z][a-z-]*", COMMANDS)) - known - {"--json"} == set()


def _options(command: click.Command | None) -> set[str]:
    assert command is not None
    below = command.commands.values() if isinstance(command, click.Group) else ()
    own = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return own.union(*(_options(each) for each in below))
