"""The options that say for whom a session is."""

from collections.abc import Callable
from typing import Any

import click


def identity_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--agent`, `--actor` and `--tenant`."""
    for option in (
        click.option("--tenant", metavar="T", help="The organisation."),
        click.option("--actor", metavar="U", help="The user or service on whose behalf the agent runs."),
        click.option("--agent", metavar="A", help="The program; one that the configuration knows."),
    ):
        function = option(function)
    return function
