"""Search as one process does it: how long it takes, how fast it indexes, how much memory it needs.

The store has 10,000 records, made of the labelled memories with numbers of their own. That their vectors
are in place takes minutes, so those of the large store are made by chance: a search compares as many,
whatever they are. The rate with meaning is measured on records that are really embedded.

    python -m tests.bench.search_speed STATE      (what `figures` runs, for its memory)
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from statistics import median

import msgspec
import numpy
from tests.bench import labelled
from tests.bench.figures import Figure, Target
from tests.bench.labelled import Memory

from engramfs.history.repository import Repository
from engramfs.search import EmbedderSettings, Query, opened
from engramfs.search.bundled_embedder import BundledEmbedder
from engramfs.search.filters import Filter
from engramfs.search.index_directory import IndexDirectory
from engramfs.search.keyword_index import KeywordIndex
from engramfs.search.searching import Search
from engramfs.search.vectors import VectorFile

RECORDS, EMBEDDED = 10_000, 512
_ROUNDS = 60
_WORDS = EmbedderSettings(semantic=False)


class Measured(msgspec.Struct, frozen=True):
    """In milliseconds and MiB."""

    hybrid: float
    keyword: float
    memory: float


def figures(directory: str) -> Iterator[Figure]:
    large, small = os.path.join(directory, "search-large"), os.path.join(directory, "search-small")
    labelled.write(large, _numbered(RECORDS))
    labelled.write(small, _numbered(EMBEDDED))
    rate = RECORDS / _indexing(large, _WORDS)
    yield Figure("search: index, keywords", "records/s", rate, target=_rate(2000))
    rate = EMBEDDED / _indexing(small, EmbedderSettings())
    yield Figure("search: index, meaning", "records/s", rate, target=_rate(60))
    _vectors_by_chance(large)
    measured = _in_a_process(large)
    yield Figure("search: 10,000 records, warm", "ms", measured.hybrid, target=Target(60))
    yield Figure("search: keywords alone, warm", "ms", measured.keyword, target=Target(10))
    yield Figure("search: memory with meaning", "MiB", measured.memory, target=Target(300))
    yield from _quality(directory)


def _rate(limit: float) -> Target:
    return Target(limit, at_least=True)


def _numbered(count: int) -> list[Memory]:
    numbered = enumerate(islice(cycle(labelled.memories()), count))
    return [
        Memory(f"r{at:05}", one.category, one.tags, f"{one.content} (note {at}, batch {at % 97})")
        for at, one in numbered
    ]


def _indexing(state: str, settings: EmbedderSettings) -> float:
    """Seconds until everything is indexed."""
    with Repository.open(state) as repository:
        search = opened(state, repository.engine, settings)
        if search.has_meaning:
            BundledEmbedder().question("warm")
        started = time.perf_counter()
        assert search.catch_up(600)
        took = time.perf_counter() - started
        search.close()
    return took


def _vectors_by_chance(state: str) -> None:
    directory = IndexDirectory(state)
    generation = directory.current()
    assert generation is not None
    snapshot = KeywordIndex(directory.keywords(generation)).snapshot()
    keys = [key for key in set(snapshot.vectors(snapshot.addresses(Filter()))) if key]
    vectors = numpy.random.default_rng(7).standard_normal((len(keys), 384)).astype(numpy.float32)
    vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)
    VectorFile(directory.vectors(generation), BundledEmbedder.identity).append(keys, vectors)


def _quality(directory: str) -> Iterator[Figure]:
    state = os.path.join(directory, "search-labelled")
    labelled.write(state, labelled.memories())
    with Repository.open(state) as repository:
        search = opened(state, repository.engine)
        assert search.catch_up(600)
        for kind, target in (("hybrid", _rate(0.9)), ("semantic", None), ("keyword", None)):
            found = labelled.recall(search, kind, 5)  # type: ignore[arg-type]
            yield Figure(f"search: recall at 5, {kind}", "of 1", found, target=target)
            first = labelled.first_is_right(search, kind)  # type: ignore[arg-type]
            yield Figure(f"search: an answer comes first, {kind}", "of 1", first)
        search.close()


def _in_a_process(state: str) -> Measured:
    command = [sys.executable, "-m", "tests.bench.search_speed", state]
    ended = subprocess.run(command, check=True, capture_output=True, timeout=120)
    return msgspec.json.decode(ended.stdout, type=Measured)


def _measure(state: str) -> Measured:
    with Repository.open(state) as repository:
        search = opened(state, repository.engine)
        hybrid = _median(search, lambda text: Query(text))
        keyword = _median(search, lambda text: Query(text, kind="keyword"))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        search.close()
    return Measured(hybrid, keyword, peak)


def _median(search: Search, query: Callable[[str], Query]) -> float:
    """Milliseconds of one search, which looks whether the index is up to date as well."""
    times = []
    for one in islice(cycle(labelled.questions()), _ROUNDS):
        started = time.perf_counter()
        search.find(query(one.question))
        times.append(time.perf_counter() - started)
    return median(times) * 1000


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(_measure(sys.argv[1])))
