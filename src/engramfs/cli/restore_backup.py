"""`engramfs restore-backup BACKUP`: everything as it was, or single stores of it."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from engramfs.cli import offline
from engramfs.cli.arguments import now
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.versions import print_recorded
from engramfs.errors import Busy, Conflict, UsageError
from engramfs.model.names import check_store_name
from engramfs.model.shell_words import shell_word

if TYPE_CHECKING:
    from engramfs.history.repository import Repository


@click.command("restore-backup", cls=Command, short_help="Bring back what a backup holds.")
@click.argument("backup", type=click.Path(), metavar="BACKUP")
@click.option(
    "--store",
    "names",
    multiple=True,
    type=check_store_name,
    metavar="NAME",
    help="Only this one; repeatable.",
)
@click.option("--over", is_flag=True, help="Move what is there aside first.")
@pass_invocation
def command(invocation: Invocation, backup: str, names: tuple[str, ...], over: bool) -> None:
    """Bring back what BACKUP holds, after it was verified.

    Without --store it takes the place of the whole state directory, and no daemon may run. With --store,
    also while one runs, the head of a store becomes a new version, what is pending in the backup is pending
    again and nothing else, and a store that is not there comes with its history.
    """
    if names and over:
        raise UsageError("--over is about the whole state directory; with --store nothing is replaced")
    backup = os.path.abspath(backup)
    if names:
        _restore_stores(invocation, backup, list(dict.fromkeys(names)))
    else:
        _restore_everything(invocation, backup, over=over)


def _restore_everything(invocation: Invocation, backup: str, *, over: bool) -> None:
    from engramfs.history.backup_restore import bring_back

    state = invocation.locations.state
    if _serves(invocation):
        raise Busy(
            f"a daemon serves {state}; engramfs down stops it, then restore the backup; "
            "or take single stores while it runs, with --store NAME"
        )
    with invocation.output.activity("verifying") as show:
        done = bring_back(
            backup, state, now(), over=over, progress=lambda store, rows: show(f"{store} {rows:,} rows")
        )
    if invocation.json:
        invocation.output.document({"state": state, **msgspec.to_builtins(done)})
        return
    counts = f"{done.stores:,} stores, {done.versions:,} versions"
    invocation.output.line(("restored", "green"), f"{backup} → {state}", counts)
    if done.aside is not None:
        invocation.output.note(
            f"what was there is in {done.aside}; --state can name it; remove it when you like"
        )


def _serves(invocation: Invocation) -> bool:
    """Whether a daemon serves this state. One that serves another does not matter: the lock is ours."""
    try:
        return invocation.client.is_running()
    except Conflict:
        return False


def _restore_stores(invocation: Invocation, backup: str, names: Sequence[str]) -> None:
    documents = []
    with _checked(invocation, backup, names) as directory:
        for name in names:
            document = offline.write(
                invocation,
                "engramfs restore-backup",
                partial(
                    invocation.client.call,
                    "store.restore",
                    store=name,
                    backup=directory,
                    shown=backup,
                    timeout=3600,
                ),
                partial(_restore_alone, directory, name, backup),
            )
            documents.append(document)
            if not invocation.json:
                _print(invocation, document, backup)
    if invocation.json:
        invocation.output.document(documents)


def _print(invocation: Invocation, document: dict[str, Any], backup: str) -> None:
    if document["new"]:
        invocation.output.line(("restored", "green"), document["store"], "with its history, as a new store")
    else:
        print_recorded(invocation.output, document["store"], document["version"], "restored")
        _say_what_is_pending(invocation, document["store"], backup, document["pending"])


def _say_what_is_pending(invocation: Invocation, name: str, backup: str, became: dict[str, int]) -> None:
    note = invocation.output.note
    if became["offered"]:
        note(f"{became['offered']} pending of the backup wait again; engramfs pending list {name}")
    if became["rejected"]:
        note(f"{became['rejected']} pending that the backup does not have were rejected, and stay readable")
    if became["left"]:
        note(
            f"{became['left']} pending are still only in the backup: they were made from what is not here; "
            f"engramfs --state {shell_word(backup)} pending show {name} N"
        )


@contextlib.contextmanager
def _checked(invocation: Invocation, backup: str, names: Sequence[str]) -> Iterator[str]:
    """The backup, or a copy of it in which what its journal holds is sealed; the stores are sound there."""
    from engramfs.client.state import has_records
    from engramfs.history import transplant
    from engramfs.history.backup_restore import copied, require_backup, require_sound
    from engramfs.history.repository import Repository
    from engramfs.history.verify import verify

    state = invocation.locations.state
    require_backup(backup, state)

    def check(repository: "Repository") -> None:
        for name in names:
            transplant.find(repository, name, backup)
        require_sound(verify(repository, names), backup)

    if not has_records(os.path.join(backup, "journal")):
        with Repository.open(backup) as repository:
            check(repository)
        yield backup
        return
    os.makedirs(state, mode=0o700, exist_ok=True)
    with copied(backup, state) as copy:
        with Repository.open(copy, write="engramfs restore-backup") as repository:
            offline.seal_journal(invocation, repository)
            check(repository)
        yield copy


def _restore_alone(directory: str, name: str, backup: str, repository: "Repository") -> dict[str, Any]:
    from engramfs.history import catalog, transplant
    from engramfs.history.repository import Repository

    with Repository.open(directory) as source:
        there = transplant.find(source, name, backup)
        with repository.engine.reading() as reader:
            is_new = catalog.find(reader, name) is None
        if is_new:
            transplant.adopt(source, there, repository)
            return {"store": name, "new": True, "version": None}
        transplant.copy_head(source, there, repository)
        restored = repository.transact(
            lambda writer: transplant.restore(source, there, writer, name, offline.person(), now(), backup)
        )
        return transplant.describe(name, restored)
