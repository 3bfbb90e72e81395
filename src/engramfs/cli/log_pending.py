"""`engramfs log STORE --pending`: what waits for approval, under the conditions of `log`."""

from itertools import islice
from typing import TYPE_CHECKING

from engramfs.cli.invocation import Invocation
from engramfs.cli.pending_printing import print_these
from engramfs.errors import UsageError
from engramfs.history import catalog, log, pending

if TYPE_CHECKING:
    from engramfs.history.selection import Selection
    from engramfs.model.pending import Pending
    from engramfs.model.reference import Reference
    from engramfs.storage.protocol import Reader


def check(wanted: "Reference", given: dict[str, bool]) -> None:
    """Raises `UsageError` for what says nothing of a pending version; `given`: option → whether it is."""
    refused = [option for option, is_given in given.items() if is_given]
    if wanted.version is not None:
        refused.append(f"@{wanted.version}")
    if refused:
        raise UsageError(
            f"--pending does not go with {', '.join(refused)}; "
            f"engramfs pending diff {wanted.store} N shows what one would change"
        )


def print_selected(
    invocation: Invocation, reader: "Reader", wanted: "Reference", selection: "Selection", limit: int | None
) -> None:
    """What is open and meets every condition, oldest first: the newest `limit` of it."""
    store = catalog.named(reader, wanted.store)
    found = [one for _, one in pending.waiting(reader, store.id)]
    newest_first = (one for one in reversed(found) if _is_selected(reader, one, selection))
    print_these(invocation, reader, store, list(islice(newest_first, limit))[::-1])


def _is_selected(reader: "Reader", one: "Pending", selection: "Selection") -> bool:
    version = log.version(reader, catalog.get(reader, one.fork), one.version)
    if not selection.takes(version) or (selection.since is not None and version.time < selection.since):
        return False
    changes = log.changes(reader, one.fork, one.version)
    return not selection.path or any(log.touches(change, selection.path) for change in changes)
