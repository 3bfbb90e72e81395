"""Passages that are in the keyword index get their vectors.

Their text is read again from the log, by the digest that was indexed, and cut into the same passages: so it
does not matter when, and by which process, the keywords were indexed.
"""

from collections import defaultdict
from itertools import accumulate, islice

import numpy
import structlog
import tantivy

from engramfs.errors import Corrupt
from engramfs.search.embedder import Embedder
from engramfs.search.filters import Filter
from engramfs.search.indexed_file import meanings, vector_key
from engramfs.search.keyword_schema import Row
from engramfs.search.passages import LONGEST, weight_of
from engramfs.search.snapshot import Snapshot
from engramfs.search.vectors import VectorFile
from engramfs.storage import blobs
from engramfs.storage.protocol import Engine

_EACH = LONGEST // 4  # weight that each passage of a step may have, on the average
_MOST = 16 * LONGEST  # and all of them together: two seconds for the model in the package

_log = structlog.get_logger("engramfs.search")


def without_vector(snapshot: Snapshot, vectors: VectorFile) -> list[tantivy.DocAddress]:
    """The passages that have text and no vector, each text once, the newest first."""
    addresses = snapshot.addresses(Filter())
    keys = snapshot.vectors(addresses)
    missing = numpy.flatnonzero(vectors.rows(keys) < 0)
    last_of_each = {keys[at]: addresses[at] for at in missing if keys[at]}
    return list(reversed(last_of_each.values()))


def embed_some(
    engine: Engine, snapshot: Snapshot, vectors: VectorFile, embedder: Embedder, at_once: int
) -> int:
    """Embed up to `at_once` passages, fewer if they are long; how many are left.

    Only for who holds the index lock.

    Raises `Unavailable` when the embedder does not answer.
    """
    missing = without_vector(snapshot, vectors)
    rows = [snapshot.row(address) for address in missing[:at_once]]
    texts = _texts(engine, rows)
    if not texts:
        return 0  # their contents are gone from the log; the next change of the log removes them here
    some = _first_of(texts, min(at_once * _EACH, _MOST))
    if not some:
        return len(missing)
    vectors.append(list(some), embedder.passages(list(some.values())))
    return max(0, len(missing) - len(rows) + len(texts) - len(some))


def _first_of(texts: dict[int, str], weight: int) -> dict[int, str]:
    """As many as have that weight together; at least one, where that is the weight of a passage."""
    sums = accumulate(map(weight_of, texts.values()))
    fitting = sum(1 for each in sums if each <= weight)
    return dict(islice(texts.items(), max(int(weight >= LONGEST), fitting)))


def _texts(engine: Engine, rows: list[Row]) -> dict[int, str]:
    """The texts of passages by the keys of their vectors."""
    wanted: dict[tuple[bytes, bytes, int], set[int]] = defaultdict(set)
    for row in rows:
        wanted[row.path, row.digest, row.size].add(row.vector)
    found: dict[int, str] = {}
    for (path, digest, size), keys in wanted.items():
        for text in meanings(path, _content(engine, digest, size)):
            key = vector_key(text)
            if key in keys:
                found[key] = text
    return found


def _content(engine: Engine, digest: bytes, size: int) -> bytes:
    try:
        with engine.reading() as reader:
            return blobs.read(reader, digest, size)
    except Corrupt as error:
        _log.warning("passages without a vector", digest=digest.hex(), reason=error.message)
        return b""
