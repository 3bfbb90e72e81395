"""What waits for a person comes along with a store of another state directory.

A store that is new here brings its forks and everything that was ever pending, as it is there. In a store
that is here, what is open afterwards is what is open there: what waits in both stays as it is; what waits
here and not there is rejected, and stays readable; what waits there and not here is offered again, under
another number, since a decision that was made here is part of this history. What builds on that comes along.

Functions take the transaction of the store, in which its new head has been written, and one of the other.
"""

import msgspec

from engramfs.history import approval, catalog, commit, forks, log, pending
from engramfs.history.approval import Decided, builds_on
from engramfs.history.offering_again import OfferingAgain
from engramfs.history.store_rows import copy_rows
from engramfs.model.author import Author
from engramfs.model.pending import Pending
from engramfs.model.store import Store
from engramfs.storage.protocol import Reader, Writer

replace = msgspec.structs.replace


class Replaced(msgspec.Struct, frozen=True):
    """`offered` is how many wait again, `left` how many could not come: nothing here is what they change."""

    rejected: list[Decided]
    offered: int
    left: int


def adopt(reader: Reader, there: Store, writer: Writer, store: Store) -> None:
    """Bring everything that was ever pending for `there` to `store`, which is new."""
    here: dict[int, int] = {}
    for fork in catalog.forks(reader, there.id):
        head = catalog.head(reader, fork.id)
        if head.number:
            made = forks.create(writer, store, fork.created, fork.owner)
            catalog.put(writer, replace(fork, id=made.id, base=store.id))
            copy_rows(reader, fork.id, writer, made.id)
            catalog.put_head(writer, made.id, replace(head, journal_position=0))
            here[fork.id] = made.id
    for each in pending.every(reader, there.id):
        pending.enter(writer, store.id, replace(each, fork=here[each.fork]))


def replace_open(
    reader: Reader,
    there: Store,
    writer: Writer,
    store: Store,
    by: Author,
    now: int,
    reason: str,
    shared: int | None,
) -> Replaced:
    """Let what is open for `there` be what is open for `store`.

    `shared` is the newest version that both have: see `shared_version`. What was made from a later one, or
    from any when it is None, means nothing here; so it cannot come.
    """
    here = _Waiting(writer, store)
    divided = [
        _divide(reader, fork, here, -1 if shared is None else shared)
        for fork in catalog.forks(reader, there.id)
    ]
    staying = {number for each in divided for number in each.staying}
    rejected = [
        approval.reject(writer, store, each.number, by, now, reason)
        for _, each in list(pending.waiting(writer, store.id))
        if each.number not in staying
    ]
    again = OfferingAgain(reader, there, writer, store, shared or 0)
    for each in divided:
        if each.coming:
            again.offer(each.coming, by, now)
    count = sum(_is_open(one) for each in divided for one in each.coming)
    return Replaced(rejected, count, sum(each.left for each in divided))


def _is_open(one: Pending) -> bool:
    return one.state == "open"


class _Divided(msgspec.Struct, frozen=True):
    """What is open in a fork there: what waits here too, what comes, and how many can do neither.

    With what comes is what was rejected and what comes builds on.
    """

    staying: set[int]  # numbers here
    coming: list[Pending]
    left: int


def _divide(reader: Reader, fork: Store, here: "_Waiting", shared: int) -> _Divided:
    offered = [one for one in pending.of_fork(reader, fork) if _is_open(one) or pending.is_kept(one)]
    rows = approval.rows_of(reader, fork)

    def builds(one: Pending, *earlier: Pending) -> bool:
        own = rows.get(one.version, {})
        return any(builds_on(reader, fork, own, each, rows.get(each.version, {})) for each in earlier)

    staying: set[int] = set()
    coming: list[Pending] = []
    left: list[Pending] = []
    for one in filter(_is_open, offered):
        number = here.find(reader, one) if shared >= 0 else None
        if number is not None and not builds(one, *coming, *left):
            staying.add(number)
        elif one.base > shared or builds(one, *left):
            left.append(one)
        else:
            coming.append(one)
    needed: list[Pending] = []
    for one in reversed(offered):
        if one in coming or (pending.is_kept(one) and any(builds(later, one) for later in needed)):
            needed.insert(0, one)
    return _Divided(staying, needed, len(left))


class _Waiting:
    """What waits here, to be found by what people are told of it: it may have another number there.

    What was sealed from the journal of a copy has another time and base than what was sealed of it here.
    """

    def __init__(self, reader: Reader, store: Store) -> None:
        self._numbers: dict[bytes, int] = {}
        for _, one in pending.waiting(reader, store.id):
            told, changed, _ = _told(reader, one)
            self._numbers.update({told: one.number, changed: one.number})

    def find(self, reader: Reader, one: Pending) -> int | None:
        """The number here of what is pending there, or None."""
        told, changed, is_recovered = _told(reader, one)
        return self._numbers.get(changed if is_recovered else told)


def _told(reader: Reader, one: Pending) -> tuple[bytes, bytes, bool]:
    """All that people are told, only who changed what, and whether it was sealed from a journal."""
    fork = catalog.get(reader, one.fork)
    version = log.version(reader, fork, one.version)
    changes = [replace(each, origin=0) for each in log.changes(reader, fork.id, one.version)]
    what = (version.author, version.message, changes)
    told = commit.encode((one.base, version.time, *what))
    return told, commit.encode(what), "recovered" in version.flags
