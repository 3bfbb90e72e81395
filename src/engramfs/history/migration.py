"""A state directory of an older schema is brought to the present one, after a copy.

    <state>/schema-<n>/    the copy: a state directory that the engramfs of that schema serves

The copy is whole before anything is changed, and the change is one transaction, so a crash in between
leaves the old schema, and the next start begins again. A person removes the copy.

Concurrency. Called by `Repository.open` of the process that holds the store lock, before anybody else
has the repository.
"""

import os
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

from engramfs import telemetry
from engramfs.errors import StorageError
from engramfs.history.backup import backup
from engramfs.storage import keys
from engramfs.storage.durable import make_durable
from engramfs.storage.protocol import Table, Writer

if TYPE_CHECKING:
    from engramfs.history.repository import Repository


def migrate(repository: "Repository", found: int) -> None:
    """Bring `repository` from schema `found` to the present one.

    Raises `StorageError` when there is no way from there, and what `backup` raises when it cannot be copied.
    """
    steps = range(found, keys.SCHEMA)
    if found > keys.SCHEMA or any(step not in _STEPS for step in steps):
        raise StorageError(
            f"{repository.state} has schema {found}, this engramfs reads {keys.SCHEMA}; "
            "use the version of engramfs that wrote it"
        )
    copy = os.path.join(repository.state, f"schema-{found}")
    telemetry.logger("migration").info(
        "migrating", state=repository.state, schema=found, to=keys.SCHEMA, copy=copy
    )
    _copy(repository, copy)

    def body(writer: Writer) -> None:
        for step in steps:
            _STEPS[step](writer)
        writer.put(Table.META, keys.SCHEMA_KEY, keys.u32(keys.SCHEMA))

    repository.transact(body)


def _copy(repository: "Repository", directory: str) -> None:
    """One of an earlier try is whole, since only a whole one has its name; nothing was changed since."""
    if os.path.exists(directory):
        return
    partial = directory + ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    backup(repository, partial)
    os.rename(partial, directory)
    make_durable(repository.state)


def _to_2(_writer: Writer) -> None:
    """Its new tables begin empty, and the rows of schema 1 are read with the defaults of the new fields."""


_STEPS: dict[int, Callable[[Writer], None]] = {1: _to_2}
