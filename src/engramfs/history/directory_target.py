"""Which directory a redaction is about, what stands against it, and what the directory was called.

Functions take a transaction and hold none.
"""

from engramfs.errors import NotFound, Redacted, Refused, UsageError
from engramfs.history import catalog, pending
from engramfs.history.kept import is_partial, not_known
from engramfs.history.log import changes
from engramfs.history.redaction_target import spans
from engramfs.history.repository import Repository
from engramfs.history.tree import VersionTree, head_tree, path_to, resolve, tree_at, version_tree
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable
from engramfs.model.shell_words import path_word
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table

PREFIX = b"redacted-"  # of the name that stands in the place of one that was redacted


def is_directory(repository: Repository, name: str, number: int, path: bytes) -> bool:
    """Whether `path` is a directory in that version. Raises `NotFound` for an unknown store or version."""
    with repository.engine.reading() as reader:
        store = catalog.named(reader, name)
        if not is_partial(reader, store, number):
            entry = resolve(tree_at(reader, store, number), path)
        else:
            entry = resolve(VersionTree(reader, store, number), path)
            if entry is None and _is_told_of(reader, store, number, path):
                return True
        return entry is not None and entry.kind is Kind.DIRECTORY


def is_pending_directory(repository: Repository, name: str, number: int, path: bytes) -> bool:
    """Whether `path` is a directory in that pending version. Raises `NotFound` for an unknown one."""
    with repository.engine.reading() as reader:
        offered = pending.get(reader, catalog.named(reader, name), number)
        tree = version_tree(reader, catalog.get(reader, offered.fork), offered.version)
        entry = resolve(tree, path) if path else None
    return entry is not None and entry.kind is Kind.DIRECTORY


def require_directory_past(reader: Reader, store: Store, number: int, path: bytes) -> None:
    """Raise what `redact_directory` would."""
    found = find_directory(reader, store, number, path)
    if found is not None:
        require_past(reader, store, found[0], path)


def find_directory(reader: Reader, store: Store, number: int, path: bytes) -> tuple[int, Entry] | None:
    """The directory that holds it, and its entry; None where only changes tell of it."""
    if not path:
        raise UsageError(f"the root of {store.name} has no name; name what is in it")
    partial = is_partial(reader, store, number)
    tree = VersionTree(reader, store, number) if partial else tree_at(reader, store, number)
    above, entry = resolve(tree, path.rpartition(b"/")[0]), resolve(tree, path)
    if entry is not None and above is not None:
        if is_redacted_name(path.rpartition(b"/")[2], entry):
            raise Redacted(f"the name of {printable(path)} in {store.name}@{number} was redacted before")
        return above.node, entry
    if not partial:
        raise NotFound(f"{printable(path)} is not in {store.name}@{number}")
    if not _is_told_of(reader, store, number, path):
        raise not_known(reader, store, number, path)
    if resolve(head_tree(reader, store), path) is not None:
        raise _at_head(store, path)
    return None


def find_pending_directory(reader: Reader, store: Store, number: int, path: bytes) -> tuple[int, Entry]:
    """The same of a directory that something pending made or renamed."""
    offered = pending.get(reader, store, number)
    fork, where = catalog.get(reader, offered.fork), f"pending {number} of {store.name}"
    tree, name = version_tree(reader, fork, offered.version), path.rpartition(b"/")[2]
    above, entry = resolve(tree, path.rpartition(b"/")[0]), resolve(tree, path)
    if entry is not None and is_redacted_name(name, entry):
        raise Redacted(f"the name of {printable(path)} in {where} was redacted before")
    row = keys.history(fork.id, above.node, name, offered.version) if above is not None else b""
    if above is None or entry is None or reader.get(Table.HISTORY, row) is None:
        raise NotFound(f"{where} did not write {printable(path)}; redact the version that did")
    return above.node, entry


def is_redacted_name(name: bytes, entry: Entry) -> bool:
    """Whether a directory has a name that stands in the place of one that was redacted."""
    instead = PREFIX + b"%d" % entry.node
    return name == instead or name.startswith(instead + b"-")


def _is_told_of(reader: Reader, store: Store, number: int, path: bytes) -> bool:
    """Whether a change of a version has a path that leads through `path`."""
    paths = [one for each in changes(reader, store.id, number) for one in (each.path, each.from_path or b"")]
    return any(one.startswith(path + b"/") for one in paths)


def require_past(reader: Reader, store: Store, parent: int, path: bytes) -> None:
    shown, name = printable(path), path.rpartition(b"/")[2]
    if reader.get(Table.LIVE, keys.live(store.id, parent, name)) is not None:
        raise _at_head(store, path)
    for fork in catalog.forks(reader, store.id):
        if reader.get(Table.LIVE, keys.live(fork.id, parent, name)) is not None:
            raise Refused(
                f"what waits for {store.name} has the name {shown} too; decide on that first: "
                f"{_deciding(reader, store, fork, parent, name)}"
            )
    for span in spans(reader, store, parent, name):
        if span.entry.kind is not Kind.DIRECTORY and not span.entry.is_redacted:
            raise Refused(
                f"{shown} was a file in {store.name}@{span.first}; redact that first: "
                f"engramfs redact {store.name} {span.first} {path_word(path)} --reason TEXT"
            )


def _deciding(reader: Reader, store: Store, fork: Store, parent: int, name: bytes) -> str:
    """The commands that reject what says what a name stands for, the newest first."""
    numbers = [
        one.number
        for one in pending.of_fork(reader, fork)
        if one.state == "open" and reader.get(Table.HISTORY, keys.history(fork.id, parent, name, one.version))
    ]
    reject = f"engramfs pending reject {store.name}"
    commands = [f"{reject} {number} --reason TEXT" for number in reversed(numbers)]
    return "; ".join(commands) or f"engramfs pending list {store.name} shows it"


def _at_head(store: Store, path: bytes) -> Refused:
    return Refused(
        f"{printable(path)} in {store.name} still has that name at the head; rename or remove it first, so "
        "that there is a newer version, then redact the old one"
    )


def free_name(reader: Reader, store: Store, parent: int, node: int) -> bytes:
    """One that nothing in the directory has or ever had."""
    name = wanted = PREFIX + b"%d" % node
    count = 1
    while _is_taken(reader, store, parent, name):
        count += 1
        name = wanted + b"-%d" % count
    return name


def _is_taken(reader: Reader, store: Store, parent: int, name: bytes) -> bool:
    stem = keys.live(store.id, parent, name)
    row = reader.at_or_after(Table.HISTORY, stem + b"\0")
    is_known = row is not None and row[0].startswith(stem + b"\0")
    return is_known or reader.get(Table.LIVE, stem) is not None


def paths_of(reader: Reader, store: Store, version: int, parent: int, name: bytes) -> set[bytes]:
    """What the directory was called in a version and in the one before it.

    Below the horizon of retention nobody knows that for sure, so what it is called there counts as well.
    """
    oldest = catalog.head(reader, store.id).oldest
    numbers = {version, max(version - 1, 0)} | ({oldest} if version < oldest else set())
    trees = [version_tree(reader, store, number) for number in numbers]
    found = (tree.lookup(parent, name) for tree in trees)
    return {
        path_to(tree, parent, name)
        for tree, entry in zip(trees, found, strict=True)
        if entry is not None and entry.kind is Kind.DIRECTORY
    }
