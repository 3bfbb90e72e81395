"""What follows the live tree of a store: the forks of it that are open, told before and after each change.

Before, so that what is unsealed in a fork is sealed as made from what is about to change. After, so that a
fork shows the store's present state wherever it does not differ itself.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from engramfs.history.changes import Name
from engramfs.vfs.node import Node


class Follower(Protocol):
    def before_change(self, names: Sequence[Name], *, replaying: bool) -> None: ...

    def follow(self, names: Sequence[Name]) -> None: ...

    def account(self) -> None: ...

    def stored(self, nodes: Sequence[tuple[Node, bytes]]) -> None: ...


class Followers:
    """The followers of one store."""

    def __init__(self) -> None:
        self._all: list[Follower] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, follower: Follower) -> None:
        self._all.append(follower)

    def discard(self, follower: Follower) -> None:
        self._all = [each for each in self._all if each is not follower]

    def before(self, names: Sequence[Name], *, replaying: bool = False) -> None:
        """What these names stand for is about to change."""
        for each in self._all:
            each.before_change(names, replaying=replaying)

    def follow(self, names: Iterable[Name]) -> None:
        """It has changed."""
        if self._all:
            changed = list(dict.fromkeys(names))
            for each in self._all:
                each.follow(changed)

    def account(self) -> None:
        """A commit from outside is about to come: the log is to have what was made of the state before."""
        for each in self._all:
            each.account()

    def stored(self, nodes: Sequence[tuple[Node, bytes]]) -> None:
        """The contents with these digests, which the nodes had in memory, are in the log."""
        for each in self._all:
            each.stored(nodes)
