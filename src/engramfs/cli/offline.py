"""The log, opened by a command: behind a running daemon for reading, and alone when none runs.

What a daemon left in the journal when it died belongs to the stores. So whoever opens them without a
daemon first seals it, in `seal_journal`; nothing is read or written past it silently.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from engramfs.cli.invocation import Invocation
from engramfs.errors import Busy, NoDaemon, StorageError

if TYPE_CHECKING:
    from engramfs.history.repository import Repository
    from engramfs.model.author import Author

Result = TypeVar("Result")


@contextlib.contextmanager
def reading(invocation: Invocation) -> Iterator["Repository"]:
    """The log as of now: a running daemon is first asked to seal what is open.

    Raises `NotFound` when there are no stores yet.
    """
    from engramfs.history.repository import Repository

    try:
        invocation.client.call("barrier", stores=None)
    except NoDaemon:
        _seal_left_behind(invocation)
    except StorageError as error:
        invocation.output.note(f"engramfs: showing what is sealed; {error.message}")
    with Repository.open(invocation.locations.state) as repository:
        yield repository


@contextlib.contextmanager
def writing(invocation: Invocation, purpose: str) -> Iterator["Repository"]:
    """The log with the store lock, while no daemon runs. `purpose` tells others who holds the lock.

    Creates what is missing. Raises `Busy` when another process writes.
    """
    from engramfs.history.repository import Repository

    with Repository.open(invocation.locations.state, write=purpose) as repository:
        seal_journal(invocation, repository)
        yield repository


def write(
    invocation: Invocation,
    purpose: str,
    by_daemon: Callable[[], Result],
    alone: Callable[["Repository"], Result],
) -> Result:
    """Let the daemon do it when one runs, and otherwise do it under the store lock."""
    if invocation.client.is_running():
        return by_daemon()
    with writing(invocation, purpose) as repository:
        return alone(repository)


def person() -> "Author":
    """Who runs this command, as the author of a version."""
    import pwd

    from engramfs.model.author import Author

    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Author("person", actor=name)


def _seal_left_behind(invocation: Invocation) -> None:
    from engramfs.history.repository import Repository

    state = invocation.locations.state
    if not has_records(os.path.join(state, "journal")):
        return
    try:
        with Repository.open(state, write="engramfs recovery") as repository:
            seal_journal(invocation, repository)
    except Busy as error:
        invocation.output.note(f"engramfs: showing what is sealed; {error.message}")


def seal_journal(invocation: Invocation, repository: "Repository") -> None:
    """Seal what a daemon that died had acknowledged. The one place where commands do so."""
    if not has_records(repository.journal_path):
        return
    from engramfs import telemetry
    from engramfs.model.transient import TransientNames
    from engramfs.vfs.recovery import recover

    telemetry.configure(level="error")
    found = recover(repository, TransientNames(invocation.configuration().batch.transient))
    note = invocation.output.note
    note(f"engramfs: a daemon left {found.records} journal records; they are sealed now")
    for reason in found.skipped:
        note(f"engramfs: a record could not be applied: {reason}")


def has_records(journal: str) -> bool:
    """Whether a journal has something that may not be in the log."""
    from engramfs.storage.journal import MAGIC

    try:
        return os.path.getsize(journal) > len(MAGIC)
    except FileNotFoundError:
        return False
