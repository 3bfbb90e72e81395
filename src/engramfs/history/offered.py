"""What a pending version would change, as differences: of the names that it recorded, not of whole trees."""

from engramfs.errors import NotFound
from engramfs.history import catalog
from engramfs.history.approval import rows_of
from engramfs.history.diff import Difference, same, with_renames
from engramfs.history.pending import needed_bases
from engramfs.history.tree import fork_tree, path_to
from engramfs.model.pending import Pending
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader


def require_base(reader: Reader, store: Store, offered: Pending) -> None:
    """Raise `NotFound` unless the tree that it was made from is there as a whole."""
    oldest = catalog.head(reader, store.id).oldest
    if 0 < offered.base < oldest and offered.base not in needed_bases(reader, store.id):
        raise NotFound(
            f"pending {offered.number} was made from {store.name}@{offered.base}, of which retention left "
            f"only part; engramfs pending show {store.name} {offered.number} lists what it changed"
        )


def differences(reader: Reader, pending: Pending) -> list[Difference]:
    """By path. A directory that moved is one; what is in it is not repeated.

    Raises `NotFound` when it was decided, and what it was made from is not kept any more.
    """
    fork = catalog.get(reader, pending.fork)
    require_base(reader, catalog.get(reader, fork.base), pending)
    before = fork_tree(reader, fork, pending.version, pending.base, without=True)
    after = fork_tree(reader, fork, pending.version, pending.base)
    found = []
    for (parent, name), new in rows_of(reader, fork).get(pending.version, {}).items():
        old = before.lookup(parent, name)
        if not same(old, new):
            tree = after if new is not None else before
            path = path_to(tree, parent, name) if parent != keys.NO_PARENT else b""
            found.append(Difference(path, old, new))
    return with_renames(sorted(found, key=lambda one: one.path))
