"""The index as a process that searches holds it: opened once, and again when another took its place."""

from typing import TYPE_CHECKING

import msgspec

from engramfs.search.failures import IndexDamaged
from engramfs.search.index_directory import IndexDirectory
from engramfs.search.indexer import Indexer
from engramfs.search.keyword_index import KeywordIndex
from engramfs.search.snapshot import Snapshot

if TYPE_CHECKING:
    from engramfs.search.vectors import VectorFile

_ATTEMPTS = 5  # to open an index that another process replaces meanwhile
_PATIENCE = 2.0  # seconds to wait for another process that makes the first one


class Present(msgspec.Struct, frozen=True):
    """What is there to be searched now. Without an embedder there are no vectors."""

    keywords: Snapshot
    vectors: "VectorFile | None"


class OpenIndex:
    """Use from one thread at a time. `identity` is that of the embedder, if there is one."""

    def __init__(self, directory: IndexDirectory, indexer: Indexer, identity: str | None) -> None:
        self._directory = directory
        self._indexer = indexer
        self._identity = identity
        self._generation = 0
        self._index: KeywordIndex | None = None
        self._vectors: VectorFile | None = None

    def present(self) -> Present:
        """The index as of the last commit. One that is missing or damaged is begun anew, and empty at first.

        Raises `IndexDamaged` when that does not help.
        """
        for _ in range(_ATTEMPTS):
            generation = self._directory.current()
            if generation is None:
                self._indexer.step(_PATIENCE, at_once=0)
                continue
            try:
                return self._open(generation)
            except IndexDamaged:
                self.close()
                if self._directory.current() == generation:
                    self._indexer.begin_anew(generation)
        raise IndexDamaged(
            f"the search index in {self._directory.path} cannot be opened; remove the directory"
        )

    def _open(self, generation: int) -> Present:
        if self._index is None or self._generation != generation:
            self._index = KeywordIndex(self._directory.keywords(generation))
            self._vectors = None
            self._generation = generation
        return Present(self._index.snapshot(), self._open_vectors(generation))

    def _open_vectors(self, generation: int) -> "VectorFile | None":
        if self._identity is None:
            return None
        if self._vectors is not None:
            self._vectors.follow()
        else:
            from engramfs.search.vectors import VectorFile

            self._vectors = VectorFile(self._directory.vectors(generation), self._identity)
        return self._vectors

    def close(self) -> None:
        self._index = self._vectors = None
