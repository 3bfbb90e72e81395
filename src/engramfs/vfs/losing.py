"""What is lost with the end of a session, or of the daemon: named in `status` and in the log file."""

from typing import TYPE_CHECKING

import structlog

from engramfs.model.names import printable
from engramfs.vfs.open_file import OpenFile

if TYPE_CHECKING:
    from engramfs.vfs.writable_view import WritableView

log = structlog.get_logger("engramfs.losing")


def say_what_is_lost(view: "WritableView") -> None:
    """Name the files of a view that ends whose last bytes are recorded nowhere."""
    failed = view.store.resources.failed_closes
    closed = [file for file in view.files.values() if file in failed]
    dirty = [file for file in view.files.values() if file.spool is not None and file.spool.dirty]
    _say(view, "and not closed", [file for file in dirty if file not in failed])
    _say(view, "and closed: there was no room to record it", closed)
    for file in closed:
        failed.discard(file)


def _say(view: "WritableView", how: str, files: list[OpenFile]) -> None:
    store = view.store
    names = ", ".join(printable(store.tree.path_of(file.node)) for file in files if file.node.places)
    if names:
        said = f"dropped what session {view.author.session} had written to {names} {how}"
        log.warning(said, store=store.store.name)
        store.remember(said)
