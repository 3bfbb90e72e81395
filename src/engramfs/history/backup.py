"""A consistent copy of a state directory, taken while others read and write.

What it holds. The journal is copied first, then the log. Let t be the moment at which the copy of the
journal is whole. Every operation acknowledged before t is in the copy: at t it was in the journal, or its
version was in the log already, and the log only grows until it is copied. What was acknowledged after t is
in the copy when its version was sealed before the log was copied, and is otherwise not; a version is there
whole or not at all.

The other order would lose data: a batch sealed between the two copies would be missing from the log, and
from the journal too, which is cut after sealing.

Records that are in both are harmless. It is the state of a worker that died between sealing a batch and
cutting the journal: `Head.journal_position` says which records are in the log, and a record states a
result. A large content is a blob before its record is written, so the later copy of the log has it.

A caller that wants everything up to now in the log seals first (a barrier).
"""

import errno
import os
from typing import TYPE_CHECKING

from engramfs.errors import Conflict, EngramError, Full, Unavailable, UsageError
from engramfs.history.unmade_directory import unmade
from engramfs.storage.durable import make_durable
from engramfs.storage.journal_scan import copy_journal

if TYPE_CHECKING:
    from engramfs.history.repository import Repository


def backup(repository: "Repository", directory: str) -> None:
    """Copy `repository` into `directory`, which is new or empty and becomes a state directory.

    Bytes of files that are open and not closed (the spool) are no part of it. What was written is synced.
    Raises `NotFound` when its parent does not exist, `Conflict` when it is not empty, `Busy`, `Full`,
    `Unavailable`, `Corrupt`. A copy that failed is left for a person to remove.
    """
    log = os.path.join(directory, "log")
    journal = os.path.join(directory, os.path.basename(repository.journal_path))
    try:
        _prepare(directory)
        copy_journal(repository.journal_path, journal)
        os.mkdir(log, 0o700)
        os.mkdir(os.path.join(directory, os.path.basename(repository.spool_path)), 0o700)
        repository.engine.copy(log)
        for path in (*_files(log), journal, log, directory):
            make_durable(path)
    except OSError as error:
        raise _failed(directory, error) from error


def _prepare(directory: str) -> None:
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        if not os.path.isdir(directory):
            raise UsageError(f"{directory} is not a directory") from None
        if os.listdir(directory):
            raise Conflict(f"{directory} is not empty; name a new directory, or empty it") from None
    except FileNotFoundError:
        raise unmade(os.fsencode(directory)) from None


def _files(directory: str) -> list[str]:
    return [os.path.join(directory, name) for name in os.listdir(directory)]


def _failed(directory: str, error: OSError) -> EngramError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Full(f"no space left for the backup in {directory}; free some, then start it again")
    return Unavailable(f"cannot write the backup in {directory}: {error.strerror}")
