"""One version is undone by a new one; later versions stay.

For each name that the version changed: where the head still has what it left, what was before comes back. A
file that changed since is merged line by line; one that the version renamed goes back with what it holds now;
one that was renamed since is changed under its new name. Where that is not possible, nothing is done.
"""

from collections.abc import Iterator

import msgspec

from engramfs.errors import Conflict, Redacted
from engramfs.history import log
from engramfs.history.changes import Name
from engramfs.history.commit import Commit
from engramfs.history.imported import text_of
from engramfs.history.kept import require_predecessor
from engramfs.history.later_names import is_same_thing, later_names
from engramfs.history.three_way import ThreeWay, path_in
from engramfs.history.tree import HasNodes, VersionTree, places, resolve
from engramfs.model.author import Author
from engramfs.model.entry import Entry, Kind
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.model.version import Change, ChangeKind
from engramfs.storage import keys
from engramfs.storage.protocol import Reader

replace = msgspec.structs.replace
_ROOT = (keys.NO_PARENT, b"")
_NAMED = 5  # paths in a message


def plan(reader: Reader, store: Store, number: int, author: Author, now: int) -> Commit:
    """The commit that undoes version `number`. Without changes when the head has nothing of it any more.

    `reader` must be the transaction that the commit is written in, unless nobody else can write meanwhile.

    Raises `NotFound` when the version, or the one before it, is not there, `Redacted` when something was
    taken out of it, `Conflict`, which names the paths that stand against it, and `QuotaExceeded`.
    """
    version = log.version(reader, store, number)
    changes = list(log.changes(reader, store.id, number))
    if any(change.is_redacted or change.from_path == b"" for change in changes):
        raise Redacted(
            f"version {number} of {store.name} was redacted, so what it did is not known any more; "
            f"engramfs restore brings back an older one"
        )
    advice = f"it cannot be undone; engramfs restore {store.name}@N PATH brings single files back"
    require_predecessor(reader, store, number, advice)
    planned = _Revert(reader, store, number, now).commit(changes)
    about = f": {text}" if (text := text_of(version)) else ""
    return replace(planned, author=author, message=f"revert of {store.name}@{number}{about}")


class _Revert:
    def __init__(self, reader: Reader, store: Store, number: int, now: int) -> None:
        self._reader = reader
        self._store = store
        self._number = number
        self._now = now
        self._before = VersionTree(reader, store, number - 1)
        self._left = VersionTree(reader, store, number)
        self._head = ThreeWay(reader, store, now)

    def commit(self, changes: list[Change]) -> Commit:
        found = dict.fromkeys(name for change in changes for name in self._names(change))
        names = [name for name in found if self._differs(name)]
        self._require_unredacted(names)
        moved = self._moved(names)
        refused = [there for name in names if (there := self._undo(name, moved)) is not None]
        refused = refused or self._head.after.problems()
        if refused:
            raise self._conflict(refused)
        return self._head.commit("revert")

    # What the version did

    def _names(self, change: Change) -> Iterator[Name]:
        """Every name that a change may have given another meaning."""
        for path in (change.path, change.from_path):
            if path is None:
                continue
            entries = resolve(self._before, path), resolve(self._left, path)
            for tree in (self._before, self._left):
                if not path:
                    yield _ROOT
                elif above := resolve(tree, path.rpartition(b"/")[0]):
                    yield above.node, path.rpartition(b"/")[2]
            if change.op is not ChangeKind.RENAMED and _nodes_differ(*entries):
                for tree, entry in zip((self._before, self._left), entries, strict=True):
                    yield from _below(tree, entry)

    def _differs(self, name: Name) -> bool:
        before, left = self._before.lookup(*name), self._left.lookup(*name)
        return before is not left if before is None or left is None else not left.looks_like(before)

    def _require_unredacted(self, names: list[Name]) -> None:
        """Raise `Redacted` when what would come back has no content any more."""
        entries = [(name, self._before.lookup(*name)) for name in names]
        gone = [name for name, entry in entries if entry is not None and entry.is_redacted]
        if gone:
            shown = self._shown(gone, self._left, self._before)
            store = self._store.name
            raise Redacted(
                f"what {shown} held before version {self._number} of {store} was redacted, so that version "
                f"cannot be undone; nothing was done; engramfs restore {store}@N PATH brings one file back"
            )

    def _moved(self, names: list[Name]) -> dict[Name, Name]:
        """Where the version took something to → where it took it from."""
        left = {name: self._left.lookup(*name) for name in names}
        here = {entry.node: name for name, entry in left.items() if entry is not None}
        moved = {}
        for name in names:
            was = self._before.lookup(*name)
            target = here.get(was.node) if was is not None else None
            still = left[name]
            if was is None or target is None or target == name or (still and still.node == was.node):
                continue
            there_before = self._before.lookup(*target)
            if there_before is None or there_before.node != was.node:
                moved[target] = name
        return moved

    # Undoing it

    def _undo(self, name: Name, moved: dict[Name, Name]) -> Name | None:
        """Give a name back what it stood for; where that is not possible, the name that stands against it."""
        if name in moved or name in moved.values():
            return None if self._undo_at(name, name, moved) else name
        there = self._renamed_to(name)
        return None if self._undo_at(name, there, moved) else there

    def _renamed_to(self, name: Name) -> Name:
        """Where what the version changed or created is now, if it does not have its name any more."""
        left, before = self._left.lookup(*name), self._before.lookup(*name)
        present = self._head.present(name)
        if left is None or (present is not None and is_same_thing(present, left)):
            return name
        if before is not None and not is_same_thing(left, before):
            return name
        for there in later_names(self._reader, self._store, name, left, self._number):
            now, then = self._head.present(there), self._left.lookup(*there)
            was_there = then is not None and is_same_thing(then, left)  # a link, which nobody renamed
            if now is not None and is_same_thing(now, left) and not was_there:
                return there
        return name

    def _undo_at(self, name: Name, there: Name, moved: dict[Name, Name]) -> bool:
        """Whether the name `there`, which is mostly `name`, could be given back what `name` stood for."""
        old, now, new = self._left.lookup(*name), self._head.present(there), self._before.lookup(*name)
        if name in moved and now is not None and old is not None and is_same_thing(now, old):
            old = now  # it goes back with what it holds now
        target = next((there for there, source in moved.items() if source == name), None)
        if target is not None:
            new = self._brought_back(target, new)
            return new is not None and self._head.take(name, old, new, merge=False)
        if name == _ROOT:
            new = self._before.root()
        elif new is not None and new.kind is Kind.DIRECTORY and self._is_elsewhere(new.node, there):
            return False
        return self._head.take(there, old, self._living(there, new), merge=True)

    def _is_elsewhere(self, directory: int, name: Name) -> bool:
        return any(place[:2] != name for place in self._places(directory))

    def _places(self, node: int) -> Iterator[tuple[int, bytes, Entry]]:
        return places(self._reader, self._store.id, self._head.head, node)

    def _brought_back(self, target: Name, before: Entry | None) -> Entry | None:
        """What a file or directory that was renamed to `target` is when it goes back; None for a conflict."""
        left, now = self._left.lookup(*target), self._head.present(target)
        if before is None or left is None or now is None or not is_same_thing(now, left):
            return None
        if left.digest == before.digest or left.kind is not Kind.FILE:
            mode = before.mode if now.mode == left.mode else now.mode
            xattrs = before.xattrs if now.xattrs == left.xattrs else now.xattrs
            return replace(now, mode=mode, xattrs=xattrs, origin=before.origin, ctime=self._now)
        merged = self._head.merged(left, now, before)
        return replace(merged, origin=before.origin) if merged is not None else None

    def _living(self, name: Name, entry: Entry | None) -> Entry | None:
        """An entry to bring back. Of a file that has other names still, it is one more, as they are now."""
        if entry is None:
            return None
        entry = replace(entry, ctime=self._now)
        others = [place for place in self._places(entry.node) if place[:2] != name]
        if not others:
            return entry
        is_one_of_them = self._left.node(entry.node) is not None
        return others[0][2] if is_one_of_them else replace(entry, node=self._head.new_node())

    def _conflict(self, names: list[Name]) -> Conflict:
        shown, store = self._shown(names, self._head.head, self._left), self._store.name
        return Conflict(
            f"version {self._number} of {store} cannot be undone, {shown} changed since; nothing was "
            f"done; engramfs diff {store}@{self._number} shows what changed"
        )

    def _shown(self, names: list[Name], after: HasNodes, before: HasNodes) -> str:
        paths = (path_in(after, before, name) for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return ", ".join(printable(path) or "the root" for path in paths) + more


def _nodes_differ(before: Entry | None, left: Entry | None) -> bool:
    """Whether what lies below a directory is found under other names of the log than before."""
    directories = [entry for entry in (before, left) if entry is not None and entry.kind is Kind.DIRECTORY]
    return bool(directories) and (before is None or left is None or before.node != left.node)


def _below(tree: VersionTree, entry: Entry | None) -> Iterator[Name]:
    waiting = [entry] if entry is not None and entry.kind is Kind.DIRECTORY else []
    while waiting:
        directory = waiting.pop()
        for name, child in tree.children(directory.node):
            yield directory.node, name
            if child.kind is Kind.DIRECTORY:
                waiting.append(child)
