"""What is lost with the end of a session, or of the daemon: named in `status`, and counted in the log file.

Nothing can be taken out of a log file any more, so no path goes there that may be redacted one day; the file
`failures` in the run directory has it as well.
"""

from typing import TYPE_CHECKING

import structlog

from engramfs.model.names import printable
from engramfs.vfs.open_file import OpenFile

if TYPE_CHECKING:
    from engramfs.vfs.writable_view import WritableView

NOT_CLOSED = "and not closed"
CLOSED = "and closed: there was no room to record it"
log = structlog.get_logger("engramfs.losing")


def say_what_is_lost(view: "WritableView") -> None:
    """Name the files of a view that ends whose last bytes are recorded nowhere."""
    failed = view.store.resources.failed_closes
    closed = [file for file in view.files.values() if file in failed]
    dirty = [file for file in view.files.values() if file.spool is not None and file.spool.dirty]
    _say(view, NOT_CLOSED, [file for file in dirty if file not in failed])
    _say(view, CLOSED, closed)
    for file in closed:
        failed.discard(file)


def say_what_waits(view: "WritableView") -> None:
    """In the log file: another worker goes on with it, but the keeper may be told to stop first."""
    failed = view.store.resources.failed_closes
    files = [file for file in view.files.values() if file in failed and file.node.places]
    if files:
        said = "closed and not recorded yet; the next worker goes on with it, and without one it is lost"
        log.warning(said, store=view.store.store.name, files=len(files))


def _say(view: "WritableView", how: str, files: list[OpenFile]) -> None:
    store, named = view.store, [file for file in files if file.node.places]
    if named:
        names = [printable(store.tree.path_of(file.node)) for file in named]
        session = view.author.session or ""
        log.warning(
            f"dropped what was written {how}", store=store.store.name, session=session, files=len(named)
        )
        store.remember(dropped(session, names, how))


def dropped(session: str, names: list[str], how: str) -> str:
    """What `status` says of files whose bytes are lost."""
    who = f"session {session}" if session else "a session that is not known any more"
    return f"dropped what {who} had written to {', '.join(names)} {how}"
