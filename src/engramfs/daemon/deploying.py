"""The program of an agent, from a directory into the store `agents/<agent>`: `instructions.md` and `skills/`.

Nothing else in the store is touched: `memories/agent/AGENTS.md`, the seed of new memories, stays what it is.
"""

import os
import stat
from functools import partial

from engramfs.daemon.attachments import PROGRAM, agent_store
from engramfs.errors import UsageError
from engramfs.history import catalog, importing
from engramfs.history.importing import Gathered, Progress
from engramfs.history.repository import Repository
from engramfs.model.names import check_id, printable
from engramfs.model.store import Limits, Store
from engramfs.storage.protocol import Writer

_IS_RIGHT = {"instructions.md": stat.S_ISREG, "skills": stat.S_ISDIR}


def gather(
    repository: Repository, store: Store, directory: bytes, progress: Progress = lambda *_: None
) -> Gathered:
    """The program of an agent in `directory`, for `importing.plan_gathered`; what is not there goes.

    Raises `UsageError` where the directory has no program, and as an import does.
    """
    _check(directory)
    names = [name.encode() for name in PROGRAM]
    return importing.gather(repository, store, directory, progress, only=names)


def _check(directory: bytes) -> None:
    found = 0
    for name, is_right in _IS_RIGHT.items():
        path = os.path.join(directory, name.encode())
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        if not is_right(mode):
            raise UsageError(f"{printable(path)} is no {'file' if name.endswith('.md') else 'directory'}")
        found += 1
    if not found:
        raise UsageError(f"{printable(directory)} has neither instructions.md nor skills/; nothing to deploy")


def make_store(repository: Repository, agent: str, limits: Limits, now: int) -> tuple[Store, bool]:
    """The store of an agent, and whether it is new. Raises `InvalidName` and `Archived`."""
    name = agent_store(check_id(agent, "agent"))
    with repository.engine.reading() as reader:
        if catalog.find(reader, name) is not None:
            return catalog.writable(reader, name), False
    return repository.transact(partial(_create, name=name, limits=limits, now=now)), True


def _create(writer: Writer, name: str, limits: Limits, now: int) -> Store:
    return catalog.find(writer, name) or catalog.create(writer, name, now=now, limits=limits)
