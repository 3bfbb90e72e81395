"""A file of a store as rows of the index, and the texts that stand for its meaning."""

import hashlib
from collections.abc import Iterator

import msgspec

from engramfs.model.entry import Entry
from engramfs.search.document import Document, read_document
from engramfs.search.keyword_schema import Row
from engramfs.search.passages import Passage, passages
from engramfs.search.terms import index_terms


class IndexedPassage(msgspec.Struct, frozen=True):
    """`terms` and `labels` are joined by blanks."""

    row: Row
    terms: str
    labels: str


def index_file(store: int, path: bytes, entry: Entry, content: bytes) -> list[IndexedPassage]:
    """The passages of a file, at least one. None for what is not searched: too large, or no text."""
    document = read_document(path, content)
    return [] if document is None else list(_indexed(store, path, entry, document))


def nothing_of(store: int, path: bytes, entry: Entry) -> IndexedPassage:
    """What says that a file was looked at and has nothing that is searched. No query finds it."""
    return IndexedPassage(_row(store, path, entry, Document(""), Passage(0, 0, ""), 0), "", "")


def meanings(path: bytes, content: bytes) -> Iterator[str]:
    """The texts of a file that are embedded, one for each passage with text."""
    document = read_document(path, content)
    for passage in _passages(document) if document is not None else []:
        if document is not None and passage.text:
            yield _meaning(document, passage)


def vector_key(text: str) -> int:
    """The key of the vector of a text that is embedded; never 0."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") or 1


def _indexed(store: int, path: bytes, entry: Entry, document: Document) -> Iterator[IndexedPassage]:
    for passage in _passages(document):
        vector = vector_key(_meaning(document, passage)) if passage.text else 0
        yield IndexedPassage(
            row=_row(store, path, entry, document, passage, vector),
            terms=" ".join(index_terms(passage.text)),
            labels=" ".join(index_terms("\n".join((*document.labels, *passage.headings)))),
        )


def _passages(document: Document) -> list[Passage]:
    """A file without text is still found by its name."""
    return passages(document.body, document.first_line) or [Passage(1, 1, "")]


def _meaning(document: Document, passage: Passage) -> str:
    above = f"{' > '.join(passage.headings)}\n" if passage.headings else ""
    tags = f" ({', '.join(document.tags)})" if document.tags else ""
    return f"{above}{passage.text}{tags}"


def _row(store: int, path: bytes, entry: Entry, document: Document, passage: Passage, vector: int) -> Row:
    created = document.created or document.updated or entry.mtime
    return Row(
        store=store,
        path=path,
        digest=entry.digest,
        size=entry.size,
        first=passage.first,
        last=passage.last,
        vector=vector,
        created=created,
        updated=max(created, document.updated or document.created or entry.mtime),
        category=document.category,
        agent=document.agent,
        session=document.session,
    )
