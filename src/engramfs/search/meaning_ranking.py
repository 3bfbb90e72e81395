"""The files that say what a query asks, each by its best passage. All that may be found are compared."""

from collections.abc import Iterator

import numpy
from numpy.typing import NDArray

from engramfs.search.filters import Filter
from engramfs.search.keyword_ranking import Hit
from engramfs.search.snapshot import Snapshot
from engramfs.search.vectors import VectorFile


def by_meaning(
    snapshot: Snapshot, vectors: VectorFile, asked: NDArray[numpy.float32], wanted: Filter, depth: int
) -> Iterator[tuple[Hit, float]]:
    """The files of the `depth` passages nearest to the vector `asked`, nearest first, and the cosine."""
    addresses = snapshot.addresses(wanted)
    if not addresses or not vectors.count:
        return
    rows = vectors.rows(snapshot.vectors(addresses))
    known = numpy.flatnonzero(rows >= 0)
    cosines = vectors.likeness(asked, rows[known])
    best = _largest(cosines, depth)
    seen = set()
    for at in best:
        row = snapshot.row(addresses[known[at]])
        if (row.store, row.path) not in seen:
            seen.add((row.store, row.path))
            yield Hit(row, 1.0), float(cosines[at])


def _largest(values: NDArray[numpy.float32], count: int) -> NDArray[numpy.int64]:
    """Where the `count` largest values are, the largest first."""
    chosen = numpy.arange(len(values))
    if len(values) > count:
        chosen = numpy.argpartition(values, -count)[-count:]
    ordered: NDArray[numpy.int64] = chosen[numpy.argsort(-values[chosen], kind="stable")]
    return ordered
