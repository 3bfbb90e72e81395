"""The paths that are no more to be read anywhere once something was redacted.

A path that the head has is no secret, whatever an old version held there. Functions take a transaction.
"""

from collections.abc import Iterable, Iterator

from engramfs.history import catalog
from engramfs.history.redaction_rows import Removed
from engramfs.history.tree import head_tree, path_to, resolve, version_tree
from engramfs.model.store import Store
from engramfs.storage.protocol import Reader


def redacted_names(reader: Reader, store: Store, asked: bytes, removed: Iterable[Removed]) -> set[bytes]:
    """`asked`, and what else `removed` was known as, but for what the head has."""
    names = {asked}
    for one in removed:
        for part in (one, *one.beside):
            names.update(_names(reader, part))
    head = head_tree(reader, store)
    return {name for name in names if name and resolve(head, name) is None}


def _names(reader: Reader, removed: Removed) -> Iterator[bytes]:
    store = catalog.get(reader, removed.store)
    for span in removed.spans:
        for number in {span.first, span.last}:
            yield path_to(version_tree(reader, store, number), span.parent, span.name)
