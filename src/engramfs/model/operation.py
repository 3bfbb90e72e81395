"""One acknowledged step on the live tree of a store, as the journal keeps it.

Four steps are enough for everything that a filesystem call does to a tree, and each states its result
rather than the way there, so applying one twice is the same as applying it once. A fifth changes no tree.
"""

import msgspec

from engramfs.model.entry import Entry


class Link(msgspec.Struct, frozen=True, array_like=True, tag="l"):
    """`name` in directory `parent` now stands for the node of `entry` (made here, or already known)."""

    parent: int
    name: bytes
    entry: Entry


class Unlink(msgspec.Struct, frozen=True, array_like=True, tag="u"):
    """`name` in directory `parent` stands for nothing."""

    parent: int
    name: bytes
    time: int  # nanoseconds since 1970: the directory's mtime from now on


class Rename(msgspec.Struct, frozen=True, array_like=True, tag="r"):
    """`node` leaves one name for the other, replacing what is there; with `exchange` the two swap."""

    node: int
    parent: int
    name: bytes
    new_parent: int
    new_name: bytes
    exchange: bool
    moved: Entry  # the entry afterwards: ctime and perhaps origin changed


class Update(msgspec.Struct, frozen=True, array_like=True, tag="s"):
    """The node of `entry` has a new content or new attributes, under each of its names."""

    entry: Entry


class Note(msgspec.Struct, frozen=True, array_like=True, tag="n"):
    """The author's next version is about `text`; empty: what was noted before does not hold any more."""

    text: str


Operation = Link | Unlink | Rename | Update | Note
