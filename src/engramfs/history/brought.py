"""What a change of a fork renames, or gives another name, has to be at the head as it was.

The change does not show the content of such a file, nor what is in such a directory. Where the head has it
not, or has it otherwise, nobody ever approved that; so these names stand against the change.
"""

from collections.abc import Iterable, Iterator

from engramfs.history.changes import Name
from engramfs.history.later_names import is_same_thing
from engramfs.history.three_way import Rows, ThreeWay, entry_in, is_same
from engramfs.history.tree import Tree
from engramfs.model.entry import Entry


def lost_sources(rows: Rows, names: Iterable[Name], made_from: Tree, head: ThreeWay) -> Iterator[Name]:
    """Where `names` of the change took something from, of which the head does not have what was taken."""
    left = dict(_left(rows, made_from))
    for name in names:
        old, new, now = entry_in(made_from, name), rows[name], head.present(name)
        if new is None or (old is not None and old.node == new.node) or is_same(new, now):
            continue  # nothing comes from elsewhere
        sources = [source for source, was in left.items() if _is_taken(was, old, new)]
        yield from (source for source in sources if not is_same(left[source], head.present(source)))
        if not sources:
            yield from _lost_link(new, made_from, head)


def _left(rows: Rows, made_from: Tree) -> Iterator[tuple[Name, Entry]]:
    """The names that do not stand for what they did, and what that was."""
    for name, new in rows.items():
        old = entry_in(made_from, name)
        if old is not None and (new is None or new.node != old.node):
            yield name, old


def _is_taken(was: Entry, old: Entry | None, new: Entry) -> bool:
    """Whether `new`, in the place of `old`, is what left another name; it may have been saved anew first."""
    is_saved_in_place = old is not None and is_same_thing(old, new)
    return was.node == new.node or (is_same_thing(was, new) and not is_saved_in_place)


def _lost_link(new: Entry, made_from: Tree, head: ThreeWay) -> Iterator[Name]:
    """The other name of a file that got one more, when it is another file at the head.

    When it is gone there, all of it comes with the change, which shows it as created.
    """
    was, now = made_from.node(new.node), head.head.node(new.node)
    if was is not None and now is not None and not is_same(was[2], now[2]):
        yield was[:2]
