"""Contents that something beside the history needs, or will name in a moment.

Who names contents says so: `holding` around the time between storing a blob and recording its name, `hold`
for a blob that only a message names, `naming` around work that may name anything, `note` for what was
recorded. What versions name that were sealed since the collection began is read from the feed.

Concurrency. Names come from the event loop, and the slices ask in the thread of the log writer. Each step
here is one operation on a dictionary, a set or a deque, so the two need no lock. It is enough that a name is
there before its blob is asked for: the blob is asked for in the thread of the log writer too, so either a
slice sees the name, or it has ended before, and the blob is stored again.
"""

import contextlib
from collections import Counter, deque
from collections.abc import Iterator

import msgspec

from engramfs.history.log import changes
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Reader, Table

_decode_feed = msgspec.msgpack.Decoder(tuple[int, int]).decode
_MOST = 1 << 20  # digests that are noted before a collection is given up


class InUse:
    """One for each process that writes the log; at most one collection goes on at a time."""

    def __init__(self) -> None:
        self._held: Counter[bytes] = Counter()
        self._noted: set[bytes] | None = None  # None: nobody collects
        self._unseen: deque[bytes] = deque()  # noted, and their bases are not
        self._namers = 0
        self._next_feed = 1

    # Who names contents

    @contextlib.contextmanager
    def holding(self, digest: bytes) -> Iterator[None]:
        """The content is about to be stored, and to be named after that."""
        self.hold(digest)
        try:
            yield
        finally:
            self._held[digest] -= 1
            if not self._held[digest]:
                del self._held[digest]

    def hold(self, digest: bytes) -> None:
        """The content is named where no collection looks, for as long as this process lives."""
        self._held[digest] += 1
        self.note(digest)

    @contextlib.contextmanager
    def naming(self) -> Iterator[None]:
        """Any content may be found and named meanwhile: no slice begins. One may be ending yet, so what is
        done next has to wait its turn at the log writer once."""
        self._namers += 1
        try:
            yield
        finally:
            self._namers -= 1

    def note(self, digest: bytes) -> None:
        """The content was named: by a record of the journal, or in memory."""
        noted = self._noted
        if noted is not None and digest and digest not in noted:
            noted.add(digest)
            self._unseen.append(digest)
            if len(noted) > _MOST:
                self.end()

    # Who collects

    def begin(self, reader: Reader) -> None:
        """From now on what is named is noted."""
        counter = reader.get(Table.META, keys.NEXT_FEED_KEY)
        self._next_feed = keys.read_u64(counter) if counter else 1
        self._noted = set()
        self._unseen = deque()
        for digest in list(self._held):
            self.note(digest)

    def end(self) -> None:
        self._noted = None
        self._unseen = deque()

    @property
    def is_collected(self) -> bool:
        """Whether a collection goes on."""
        return self._noted is not None

    @property
    def is_anything_named(self) -> bool:
        return self._namers > 0

    def look(self, reader: Reader) -> None:
        """Take in what was sealed since, and what the noted contents are deltas to."""
        for key, value in reader.scan(Table.FEED, keys.u64(self._next_feed), b"\xff" * 9):
            self._next_feed = keys.read_u64(key) + 1
            for change in changes(reader, *_decode_feed(value)):
                if change.digest:
                    self.note(change.digest)
        while self._unseen:
            digest = self._unseen.popleft()
            for _, base in reader.scan(Table.DELTAS, digest, keys.after(digest)):
                if blobs.is_base(base):
                    self.note(base)

    def __contains__(self, digest: bytes) -> bool:
        noted = self._noted
        return noted is None or digest in noted
