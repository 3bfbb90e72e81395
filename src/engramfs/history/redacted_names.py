"""The paths that are no more to be read anywhere once something was redacted.

A path that the head has is no secret, whatever an old version held there. Functions take a transaction.
"""

from collections.abc import Iterable, Iterator

from engramfs.history import catalog
from engramfs.history.directory_target import PREFIX
from engramfs.history.redaction_rows import Removed
from engramfs.history.tree import head_tree, path_to, resolve, version_tree
from engramfs.model.store import Store
from engramfs.storage.protocol import Reader


def redacted_names(reader: Reader, store: Store, asked: bytes, removed: Iterable[Removed]) -> set[bytes]:
    """`asked`, and what else `removed` was called, but for what the head has, or is below another of them."""
    names = {asked}
    for one in removed:
        for part in (one, *one.beside):
            names.update(_names(reader, part))
    head = head_tree(reader, store)
    gone = {name for name in names if name and resolve(head, name) is None}
    return {name for name in gone if not any(above in gone for above in _above(name))}


def _above(path: bytes) -> Iterator[bytes]:
    """The directories that lead to a path, the nearest first."""
    while path := path.rpartition(b"/")[0]:
        yield path


def _names(reader: Reader, removed: Removed) -> Iterator[bytes]:
    store = catalog.get(reader, removed.store)
    for span in removed.spans:
        for number in {span.first, span.last}:
            path = path_to(version_tree(reader, store, number), span.parent, span.name)
            if not any(
                name.startswith(PREFIX) for name in path.split(b"/")
            ):  # else it is below one that went
                yield path
