"""The log, opened by a command, as `engramfs.client.state` has it. Notes for a person go to stderr."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from engramfs.cli.invocation import Invocation

if TYPE_CHECKING:
    from engramfs.client.state import State
    from engramfs.history.repository import Repository
    from engramfs.model.author import Author

Result = TypeVar("Result")


@contextlib.contextmanager
def reading(invocation: Invocation) -> Iterator["Repository"]:
    """The log as of now. Raises `NotFound` when there are no stores yet."""
    with contextlib.closing(_state(invocation)) as state, state.reading() as repository:
        yield repository


@contextlib.contextmanager
def writing(invocation: Invocation, purpose: str) -> Iterator["Repository"]:
    """The log with the store lock, while no daemon runs. Raises `Busy` when another process writes."""
    with _state(invocation).writing(purpose) as repository:
        yield repository


def write(
    invocation: Invocation,
    purpose: str,
    by_daemon: Callable[[], Result],
    alone: Callable[["Repository"], Result],
) -> Result:
    """Let the daemon do it when one runs, and otherwise do it under the store lock."""
    return _state(invocation).write(purpose, by_daemon, alone)


def _state(invocation: Invocation) -> "State":
    from engramfs.client.state import State

    return State(invocation.locations, lambda what: invocation.output.note(f"engramfs: {what}"))


def person() -> "Author":
    """Who runs this command, as the author of a version."""
    from engramfs.client.person import person

    return person()


def seal_journal(invocation: Invocation, repository: "Repository") -> None:
    """Seal in `repository` what a daemon that died had acknowledged."""
    _state(invocation).seal_journal(repository)
