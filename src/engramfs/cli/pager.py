"""A pager around what a command prints on a terminal, as git does it.

`ENGRAMFS_PAGER`, else `PAGER`, else `less` with the options `FRX`: what fits on the screen is just printed.
The pager gets the standard output itself, so that everything reaches it as it is printed, file contents
included; click's own takes text alone, and knows neither the variable nor the options.
"""

import contextlib
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from engramfs.cli.invocation import Invocation
from engramfs.cli.output import PAGED

if TYPE_CHECKING:
    import subprocess

_DEFAULT = "less"
_OPTIONS = {"LESS": "FRX", "LV": "-c"}  # where the person has not chosen any

no_pager = click.option("--no-pager", is_flag=True, help="Print on a terminal without a pager.")


@contextlib.contextmanager
def paged(invocation: Invocation, *, unless: bool = False) -> Iterator[None]:
    """Let the block print through a pager: on a terminal, without `--json`, and not with `unless`."""
    command = _command() if sys.stdout.isatty() and not invocation.json and not unless else []
    if not command:
        yield
        return
    import subprocess

    context = click.get_current_context()
    if context.color is None:
        context.color = True  # the pipe to the pager is no terminal, but what it shows is one
    context.meta[PAGED] = True
    pager = subprocess.Popen(command, stdin=subprocess.PIPE, env={**_OPTIONS, **os.environ})
    assert pager.stdin is not None
    sys.stdout.flush()
    terminal = os.dup(sys.stdout.fileno())
    os.dup2(pager.stdin.fileno(), sys.stdout.fileno())
    pager.stdin.close()
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        pass  # the person has seen enough
    finally:
        _give_back(terminal)
        _wait(pager)


def _command() -> list[str]:
    """The pager and its arguments; none when there is no such program, or when it would only copy."""
    chosen = os.environ.get("ENGRAMFS_PAGER", os.environ.get("PAGER", _DEFAULT))
    try:
        command = shlex.split(chosen)
    except ValueError:
        return []
    return [] if not command or command == ["cat"] or not shutil.which(command[0]) else command


def _give_back(terminal: int) -> None:
    """Let the standard output be the terminal again; what the pager did not take is gone."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    os.dup2(terminal, sys.stdout.fileno())
    os.close(terminal)


def _wait(pager: "subprocess.Popen[bytes]") -> None:
    """Ctrl-C is for the pager: it stays until it is told to quit."""
    while True:
        try:
            pager.wait()
            return
        except KeyboardInterrupt:
            continue
