"""Where an export goes on: which version of the store a repository ends with.

It has to hold this very history. Either its last commit names its version and the chained digest, which has
to be that of the store. Or a version of the store was made of this very commit: then both have its tree.
"""

from collections.abc import Iterator

import msgspec

from engramfs.errors import Conflict
from engramfs.history import log
from engramfs.history.git.destination import Destination
from engramfs.history.git.message import Exported
from engramfs.history.git.original import parent_of
from engramfs.history.git.paths import is_left_out
from engramfs.history.imported import commit_of
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.storage.protocol import Reader

_DO = "export to a new directory"


class LastExported(msgspec.Struct, frozen=True):
    """The version that a repository ends with, and how many redactions it takes account of."""

    number: int
    redactions: int


def last_exported(reader: Reader, store: Store, destination: Destination) -> LastExported | None:
    """None when nothing is there yet. Raises `Conflict` unless it is the history of `store`."""
    if destination.tip is None:
        return None
    said = destination.exported()
    conflict = _not_this_history(reader, store, said, destination)
    if said is not None and conflict is None:
        return LastExported(said.number, said.redactions)
    number = _imported(reader, store, destination.tip.decode())
    if number is None:
        assert conflict is not None
        raise conflict
    _require_no_more(store, destination)
    # Redacted versions are not made the commits that they were, so none of these takes account of one.
    return LastExported(number, 0)


def _not_this_history(
    reader: Reader, store: Store, last: Exported | None, destination: Destination
) -> Conflict | None:
    """None when the newest exported version that the store still has is the same there."""
    shown = destination.shown
    if last is None:
        tip = (destination.tip or b"")[:10].decode()
        return Conflict(
            f"the last commit of main in {shown} ({tip}) did not come from a store; move such commits to "
            f"another branch, or {_DO}"
        )
    if last.store != store.name:
        return Conflict(f"{shown} holds the history of {last.store}, not of {store.name}; {_DO}")
    for exported in destination.earlier():
        found = _digest_of(reader, store, exported.number)
        if found is None:
            continue
        if found.hex() == exported.digest:
            return None
        return Conflict(
            f"{shown} holds another history: its version {exported.number} has the digest "
            f"{exported.digest[:16]}, and that of {store.name} {found.hex()[:16]}; {_DO}"
        )
    return Conflict(
        f"{store.name} has no version any more that {shown} holds, so nothing shows that it is one "
        f"history; {_DO}"
    )


def _digest_of(reader: Reader, store: Store, number: int) -> bytes | None:
    """The chained digest of a version; one that is gone is known by the one that follows from it."""
    version = log.find_version(reader, store.id, number)
    if version is not None:
        return version.digest
    following = log.find_version(reader, store.id, number + 1)
    return following.parent_digest if following is not None else None


def _imported(reader: Reader, store: Store, commit: str) -> int | None:
    """The version that was made of `commit`; one that is gone is known by the one that follows from it."""
    gone = None
    for version in log.versions(reader, store.id):
        if commit_of(version) == commit:
            return version.number
        before = version.number - 1
        if before and parent_of(version) == commit and log.find_version(reader, store.id, before) is None:
            gone = before
    return gone


def _require_no_more(store: Store, destination: Destination) -> None:
    """Raises `Conflict` when the repository holds what the import left out: it would be removed there."""
    left_out = _left_out(destination)
    if (path := next(left_out, None)) is not None:
        raise Conflict(
            f"{destination.shown} holds {printable(path)}, which {store.name} does not, as it keeps neither "
            f"submodules nor .versions; {_DO}"
        )


def _left_out(destination: Destination) -> Iterator[bytes]:
    tree = destination.tree(destination.tip or b"")
    return (path for path, mode in tree.items() if is_left_out(path, mode))
