"""What two logs have of one and the same history: a store here, and the store in a copy that went on apart.

Each version's digest is made of all that came before it, so two logs that have one version in common have
all before it in common too. Up to there numbers and nodes mean the same in both; later ones do not.

Functions take a transaction of each log.
"""

from engramfs.history import catalog, log
from engramfs.history.tree import decode_entry
from engramfs.model.entry import ROOT_NODE
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table


def shared_version(reader: Reader, there: Store, other: Reader, store: Store) -> int | None:
    """The newest version of `there` that `store` has too; None when they are of two histories.

    0 says that they are one store, of which neither log has a version that the other has.
    """
    heads = catalog.head(reader, there.id), catalog.head(other, store.id)
    whole = max(head.oldest for head in heads)  # from here on neither misses one
    earlier, later = whole - 1, min(head.number for head in heads) + 1
    while later - earlier > 1:
        middle = (earlier + later) // 2
        is_shared = _is_shared(reader, there, other, store, middle)
        earlier, later = (middle, later) if is_shared else (earlier, middle)
    if earlier >= whole:
        return earlier
    for version in log.versions(reader, there.id, newest=min(earlier, *(head.number for head in heads))):
        if _is_shared(reader, there, other, store, version.number):
            return version.number
    return 0 if there.created == store.created and whole == 1 else None


def _is_shared(reader: Reader, there: Store, other: Reader, store: Store, number: int) -> bool:
    one, same = log.find_version(reader, there.id, number), log.find_version(other, store.id, number)
    return one is not None and same is not None and one.digest == same.digest


def had_node(reader: Reader, store: Store, node: int, number: int) -> bool:
    """Whether the store had the node in any version up to `number`."""
    if node in (keys.NO_PARENT, ROOT_NODE):
        return True
    prefix = keys.node(store.id, node)
    for key in reader.keys(Table.NODES, prefix, keys.after(prefix)):
        _, parent, name = keys.split_place(key)
        start, stop = (keys.history(store.id, parent, name, each) for each in (0, number + 1))
        rows = reader.scan(Table.HISTORY, start, stop, reverse=True)
        if any(value != keys.TOMBSTONE and decode_entry(value).node == node for _, value in rows):
            return True
    return False
