"""What waits for approval, as `pending` and `log --pending` print it."""

from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from engramfs.cli.invocation import Invocation
from engramfs.cli.patches import documents, print_patch, print_stat
from engramfs.cli.show import show_entry
from engramfs.cli.versions import local_time, print_redactions, print_version, summary
from engramfs.errors import NotFound
from engramfs.history import catalog, log, offered, pending
from engramfs.history.patch import content_of
from engramfs.history.redaction_rows import redactions
from engramfs.history.tree import version_tree
from engramfs.model.names import printable

if TYPE_CHECKING:
    from engramfs.history.diff import Difference
    from engramfs.model.pending import Pending
    from engramfs.model.store import Store
    from engramfs.storage.protocol import Reader

_COLOURS = {"open": "yellow", "approved": "green", "rejected": "red"}
_SHOWN = 3  # changes in a line


def print_list(invocation: Invocation, reader: "Reader", store: "Store", *, every: bool = False) -> None:
    """What is open for a store, oldest first, or all that ever was."""
    waiting = (each for _, each in pending.waiting(reader, store.id))
    print_these(invocation, reader, store, pending.every(reader, store.id) if every else waiting)


def print_these(invocation: Invocation, reader: "Reader", store: "Store", found: "Iterable[Pending]") -> None:
    """Pending versions of a store, in the order in which they come."""
    if invocation.json:
        invocation.output.document([pending.describe(reader, store, each) for each in found])
        return
    for each in found:
        _print_line(invocation, reader, each)


def _print_line(invocation: Invocation, reader: "Reader", one: "Pending") -> None:
    version = log.version(reader, catalog.get(reader, one.fork), one.version)
    invocation.output.line(
        (f"{one.number:>4}", "yellow"),
        (f"{one.state:<8}", _COLOURS[one.state]),
        f"on @{one.base}",
        local_time(version.time),
        (version.author.label(), "cyan"),
        *summary(version, list(islice(log.changes(reader, one.fork, one.version), _SHOWN))),
        one.reason,
    )


def print_one(invocation: Invocation, reader: "Reader", store: "Store", one: "Pending") -> None:
    """Everything that is known of a pending version, and its changes."""
    if invocation.json:
        invocation.output.document(pending.describe(reader, store, one))
        return
    output = invocation.output
    output.line((pending.line(one), _COLOURS[one.state]), f"made from {store.name}@{one.base}")
    fork = catalog.get(reader, one.fork)
    version = msgspec.structs.replace(log.version(reader, fork, one.version), number=one.number)
    changes = log.changes(reader, one.fork, one.version)
    tree = version_tree(reader, fork, one.version) if offered.has_base(reader, store, one) else None
    print_version(output, f"{store.name} pending", version, changes, tree=tree)
    print_redactions(output, redactions(reader, one.fork, one.version))


def print_path(invocation: Invocation, reader: "Reader", one: "Pending", path: bytes) -> None:
    """The file or directory at `path` as the pending version would have it. Raises `NotFound`."""
    tree = offered.path_tree(reader, one, path)
    where = f"pending {one.number}"
    show_entry(invocation, reader, tree, path, where, "engramfs pending show lists what it changes")


def print_differences(
    invocation: Invocation, reader: "Reader", one: "Pending", path: bytes, *, stat: bool, binary: bool
) -> None:
    """What the pending version changes at and below `path`. Raises `NotFound` when that is nothing."""
    found = [each for each in offered.differences(reader, one) if _is_at(each, path)]
    if path and not found:
        raise NotFound(f"pending {one.number} does not change {printable(path)}")
    contents = partial(_contents, reader)
    if invocation.json:
        invocation.output.document(documents(found, contents, stat=stat, patch=True, binary=binary))
    elif stat:
        print_stat(invocation.output, found, contents)
    else:
        print_patch(invocation.output, found, contents, binary=binary)


def _is_at(difference: "Difference", path: bytes) -> bool:
    paths = (difference.path, difference.from_path)
    return not path or any(one is not None and (one == path or one.startswith(path + b"/")) for one in paths)


def _contents(reader: "Reader", difference: "Difference") -> tuple[bytes | None, bytes | None]:
    return content_of(reader, difference.old), content_of(reader, difference.new)
