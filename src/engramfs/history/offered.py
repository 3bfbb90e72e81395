"""What a pending version would change, as differences: of the names that it recorded, not of whole trees."""

from engramfs.history import catalog
from engramfs.history.approval import rows_of
from engramfs.history.diff import Difference, same, with_renames
from engramfs.history.tree import fork_tree, path_to
from engramfs.model.pending import Pending
from engramfs.storage import keys
from engramfs.storage.protocol import Reader


def differences(reader: Reader, pending: Pending) -> list[Difference]:
    """By path. A directory that moved is one; what is in it is not repeated."""
    fork = catalog.get(reader, pending.fork)
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
