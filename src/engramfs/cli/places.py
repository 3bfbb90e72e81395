"""The options that name where a session is attached: a root directory here, or a running container."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from engramfs.cli.arguments import must_be_directory
from engramfs.errors import UsageError

if TYPE_CHECKING:
    from engramfs.mount.place import Place


def place_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--root` and `--pid`."""
    for option in (
        click.option("--pid", type=click.IntRange(min=1), metavar="PID", help="A process of the container."),
        click.option(
            "--root", type=click.Path(readable=False), metavar="DIR", help="A root directory on this machine."
        ),
    ):
        function = option(function)
    return function


def chosen_place(root: str | None, pid: int | None) -> "Place | None":
    """The place that the options name, or None. Raises `UsageError` and `NotFound`."""
    from engramfs.mount.place import here, of_process

    if root is not None and pid is not None:
        raise UsageError("--root and --pid name two places; give one of them")
    if pid is not None:
        return of_process(pid)
    return here(must_be_directory(root)) if root is not None else None
