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


def say_what_waits(view: "WritableView") -> None:
    """In the log file alone: another worker goes on with it, but the keeper may be told to stop first."""
    failed = view.store.resources.failed_closes
    names = _names(view, [file for file in view.files.values() if file in failed])
    if names:
        said = "closed and not recorded yet; the next worker goes on with it, and without one it is lost"
        log.warning(f"{names}: {said}", store=view.store.store.name)


def _names(view: "WritableView", files: list[OpenFile]) -> str:
    tree = view.store.tree
    return ", ".join(printable(tree.path_of(file.node)) for file in files if file.node.places)


def _say(view: "WritableView", how: str, files: list[OpenFile]) -> None:
    store, names = view.store, _names(view, files)
    if names:
        said = f"dropped what session {view.author.session} had written to {names} {how}"
        log.warning(said, store=store.store.name)
        store.remember(said)
