"""The keyword index in a directory: opened for queries, and written.

Concurrency. Whoever writes holds the index lock (`engramfs.search.index_directory`), so there is one
writer. Readers need no lock: a commit appears to them whole, at their next `snapshot`.
"""

import contextlib
import os
from collections.abc import Iterator

import tantivy

from engramfs.search.failures import translated
from engramfs.search.filters import place_query
from engramfs.search.index_state import IndexState, encode_state
from engramfs.search.keyword_schema import (
    STATE,
    TOKENIZER,
    Row,
    analyzer,
    document,
    schema,
    state_document,
)
from engramfs.search.snapshot import Snapshot

_HEAP = 32 << 20  # bytes; what a writer gathers before it makes a segment


class KeywordIndex:
    """Raises `IndexDamaged` when it cannot be opened."""

    def __init__(self, directory: str, *, create: bool = False) -> None:
        self._directory = directory
        with translated(directory):
            if create:
                os.makedirs(directory, mode=0o700)
                self._index = tantivy.Index(schema(), directory)
            else:
                self._index = tantivy.Index.open(directory)
            self._index.register_tokenizer(TOKENIZER, analyzer())

    def snapshot(self) -> Snapshot:
        return Snapshot(self._index, self._directory)

    @contextlib.contextmanager
    def writing(self) -> Iterator["KeywordWriter"]:
        """What the block adds and removes is there for others once it committed; otherwise nothing is."""
        with translated(self._directory):
            writer = self._index.writer(heap_size=_HEAP, num_threads=1)
        try:
            yield KeywordWriter(writer, self._directory)
        except BaseException:
            with contextlib.suppress(ValueError):
                writer.rollback()
            raise
        finally:
            with translated(self._directory):
                writer.wait_merging_threads()


class KeywordWriter:
    def __init__(self, writer: tantivy.IndexWriter, directory: str) -> None:
        self._writer = writer
        self._directory = directory

    def add(self, row: Row, terms: str, labels: str) -> None:
        with translated(self._directory):
            self._writer.add_document(document(row, terms, labels))

    def remove(self, store: int, path: bytes) -> None:
        """The passages at and below `path`; of the whole store when it is empty."""
        with translated(self._directory):
            self._writer.delete_documents_by_query(place_query(store, path))

    def commit(self, state: IndexState) -> None:
        with translated(self._directory):
            self._writer.delete_documents_by_term(STATE, STATE)
            self._writer.add_document(state_document(encode_state(state)))
            self._writer.commit()
            self._writer.garbage_collect_files()
