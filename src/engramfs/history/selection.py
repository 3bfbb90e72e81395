"""Which versions a person asks for: by author, session, time, path, kind of author and flag.

Lazy, newest first: a caller that stops early has read no more.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Literal

import msgspec

from engramfs.history import log
from engramfs.history.lineage import lineage
from engramfs.model.store import Store
from engramfs.model.version import Version
from engramfs.storage.protocol import Reader


class Selection(msgspec.Struct, frozen=True):
    """Every condition that is given has to hold."""

    author: str | None = None  # part of the author's name, in any case of letters
    session: str | None = None  # the beginning of its id
    by: Literal["agent", "person", "system"] | None = None
    flag: str | None = None
    since: int | None = None  # nanoseconds since 1970
    path: bytes = b""  # that, or something below it, was changed
    follow: bool = False  # `path` under the names that it had before as well

    def takes(self, version: Version) -> bool:
        """Whether a version is asked for, as far as its header says."""
        author = version.author
        return (
            (self.author is None or self.author.lower() in author.label().lower())
            and (self.session is None or (author.session or "").startswith(self.session))
            and (self.by is None or author.kind == self.by)
            and (self.flag is None or self.flag in version.flags)
        )


class Selected(msgspec.Struct, frozen=True):
    """A version, and the path that is asked for as it was called then."""

    version: Version
    path: bytes


def select(reader: Reader, store: Store, wanted: Selection, newest: int) -> Iterator[Selected]:
    """What is asked for, from version `newest` down.

    Raises `NotFound` for a path to follow that never was.
    """
    since = wanted.since
    found = _candidates(reader, store, wanted, newest)
    if since is not None:  # a version is never earlier than the one before it
        found = takewhile(lambda one: one.version.time >= since, found)
    return (one for one in found if wanted.takes(one.version))


def _candidates(reader: Reader, store: Store, wanted: Selection, newest: int) -> Iterator[Selected]:
    if not wanted.path:
        yield from (Selected(each, b"") for each in log.versions(reader, store.id, newest=newest))
    elif wanted.follow:
        yield from _followed(reader, store, wanted.path, newest)
    else:
        for number in log.numbers_touching(reader, store, wanted.path, newest):
            version = log.find_version(reader, store.id, number)
            if version is not None:
                yield Selected(version, wanted.path)


def _followed(reader: Reader, store: Store, path: bytes, newest: int) -> Iterator[Selected]:
    for step in lineage(reader, store, path, newest):
        version = log.find_version(reader, store.id, step.number)
        if version is None:
            continue
        changes = list(log.changes(reader, store.id, step.number))
        if any(log.touches(change, step.path) for change in changes):
            yield Selected(version, step.path)
            continue
        for change in changes:  # below the horizon of retention, what it was called is in the changes alone
            if change.origin == step.entry.origin and change.kind is step.entry.kind:
                yield Selected(version, change.path)
                break
